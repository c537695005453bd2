"""What a task finds of its job's inputs, with and without namespaces: its share, which it cannot change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paddlecloud.backends.base import InputAt
from paddlecloud.model.job import Input
from paddlecloud.model.task import TaskState
from tests.contract.local import Room, log

SHOW = "find . -mindepth 1 | LC_ALL=C sort; cat *.list 2>/dev/null; true"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of a user, in the data folder that tasks do not see."""
    root = tmp_path / "data/pfs/home/ann/set"
    (root / "deep/er").mkdir(parents=True)
    for number in range(7):
        (root / f"part-{number}").write_text(f"{number}\n")
    (root / "deep/er/more").write_text("more\n")
    return root


@pytest.fixture(params=[True, False], ids=["isolated", "bare"])
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    data = tmp_path / "data"
    data.mkdir(exist_ok=True)
    with Room(data, isolated=request.param, hidden=(data,)) as room:
        if request.param and not room.backend.isolated:
            pytest.skip(room.backend.isolation)
        yield room


def an_input(source: Path, target: str = "in", **more: object) -> InputAt:
    home = source.parent
    asked = Input(source=f"/pfs/dc/home/ann/{source.name}", target=target, **more)  # type: ignore[arg-type]
    return InputAt(input=asked, folder=home, path=source.name)


def test_a_folder_comes_with_all_below_it_and_a_list_of_its_files(room: Room, source: Path) -> None:
    launch = room.launch(
        f"cat in/a/part-3 in/a/deep/er/more; {SHOW}", inputs=[an_input(source, "in/a", list="all.list")]
    )
    assert room.run(launch).state is TaskState.SUCCEEDED
    files = ["deep/er/more", *(f"part-{number}" for number in range(7))]
    found = log(launch).splitlines()
    assert found[:2] == ["3", "more"]
    assert found[-8:] == [f"./in/a/{file}" for file in files]
    assert set(found) >= {"./all.list", "./in", "./in/a", "./in/a/deep", *found[-8:]}


def test_files_are_dealt_to_trainers_by_their_rank_and_to_nobody_else(room: Room, source: Path) -> None:
    show = "cat train.list; for f in $(cat train.list); do cat $f; done; ls in"
    given = [an_input(source, deal=True, list="train.list"), an_input(source / "part-6", "whole/one")]
    launch = room.launch(show, show, show, pservers=["ls in; cat train.list whole/one"], inputs=given)
    room.run(launch)
    for rank in range(3):
        files = ["deep/er/more", *(f"part-{number}" for number in range(7))][rank::3]
        assert [line for line in log(launch, f"trainer-{rank}").splitlines() if line.startswith("./")] == [
            f"./in/{file}" for file in files
        ]
        assert sorted({file.split("/")[0] for file in files}) == log(launch, f"trainer-{rank}").split()[-len(files) :]
    assert log(launch, "pserver-0") == "6\n"


@pytest.mark.parametrize("room", [True], ids=["isolated"], indirect=True)  # else the files' modes are all there is
def test_nothing_that_a_task_does_changes_the_source(room: Room, source: Path) -> None:
    seen = "$(dirname $(readlink in/part-1))"
    harm = "; ".join(
        [
            "echo x > in/part-0; echo x >> one; chmod 777 in/part-2",
            f"rm -f {seen}/part-1; touch {seen}/new {seen}/../new; mv {seen} {seen}/../away",
            f"rm -rf {source}; mount -o remount,bind,rw {seen}; umount {seen}; echo x > in/part-3",
        ]
    )
    launch = room.launch(
        f"({harm}) 2> /dev/null; cat in/part-0 one; rm in/part-5; echo mine > in/part-5; cat in/part-5",
        inputs=[an_input(source), an_input(source / "part-6", "one")],
    )
    room.run(launch)
    assert log(launch) == "0\n6\nmine\n"
    assert [(source / f"part-{number}").read_text() for number in range(7)] == [f"{number}\n" for number in range(7)]
    assert sorted(path.name for path in source.iterdir()) == ["deep", *(f"part-{number}" for number in range(7))]
    assert (source / "part-2").stat().st_mode & 0o777 != 0o777


def test_a_task_sees_no_more_of_its_users_folder_than_its_inputs(room: Room, source: Path) -> None:
    (source.parent / "secret").write_text("secret")
    launch = room.launch(
        "cat $(readlink in/part-0)/../../secret $(readlink in)/../../secret; ls in", inputs=[an_input(source)]
    )
    room.run(launch)
    assert "secret\n" not in log(launch)


def test_a_restarted_task_finds_its_inputs_and_what_it_made_of_them(room: Room, source: Path) -> None:
    command = "cat in/part-1 all.list | tail -n 1; test -e made && exit 0; rm in/part-0; touch made in/mine; exit 1"
    launch = room.launch(
        f"ls in | wc -l; cat in/part-1; {command}", restarts=1, inputs=[an_input(source, list="all.list")]
    )
    report = room.run(launch)
    assert (report.state, report.restarts) == (TaskState.SUCCEEDED, 1)
    assert [line for line in log(launch).splitlines() if line in ("8", "1")] == ["8", "1", "8", "1"]


def test_no_link_in_a_source_is_followed(room: Room, source: Path, tmp_path: Path) -> None:
    (tmp_path / "data/key").write_text("secret")
    (source / "stolen").symlink_to(tmp_path / "data/key")
    (source / "all").symlink_to(tmp_path / "data")
    (source.parent / "away").symlink_to(tmp_path / "data")
    launch = room.launch(SHOW, inputs=[an_input(source)])
    room.run(launch)
    assert "stolen" not in log(launch)
    assert "/all" not in log(launch)
    through = replace(an_input(source.parent / "away"), path="away/key")
    assert "there is no /pfs/dc/home/ann/away" in room.run(room.launch("true", inputs=[through])).reason
    assert (
        "neither a file nor a folder" in room.run(room.launch("true", inputs=[an_input(source.parent / "away")])).reason
    )


def test_inputs_take_the_place_of_the_jobs_own_files_and_never_of_its_folders(
    room: Room, source: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "in").mkdir(parents=True)
    (tree / "in/part-0").write_text("old\n")
    (tree / "in/own").write_text("own\n")
    (tree / "train.list").write_text("old\n")
    launch = room.launch(
        "cat in/part-0 in/own; cat train.list", tree=tree, inputs=[an_input(source, list="train.list")]
    )
    room.run(launch)
    assert log(launch).splitlines()[:3] == ["0", "own", "./in/deep/er/more"]
    (tree / "in/part-0").unlink()
    (tree / "in/part-0").mkdir()
    assert "./in/part-0 is a folder of the job's own" in room.run(replace(launch, handle="job-2-1")).reason
    (tree / "to").symlink_to(tmp_path)
    led = room.launch("true", tree=tree, inputs=[an_input(source, "to/x")])
    assert "a link or a file is in the way" in room.run(led).reason
    assert not (tmp_path / "x").exists()


def test_what_is_not_there_is_left_out_only_if_it_may_be(room: Room, source: Path) -> None:
    gone = an_input(source.parent / "gone", "gone")
    assert "there is no /pfs/dc/home/ann/gone" in room.run(room.launch("true", inputs=[gone])).reason
    (source.parent / "empty").mkdir()
    empty = an_input(source.parent / "empty", "empty")
    assert "there are no files in /pfs/dc/home/ann/empty" in room.run(room.launch("true", inputs=[empty])).reason
    optional = [
        replace(one, input=Input(source="x", target=one.path, optional=True, list="l.list")) for one in (gone, empty)
    ]
    launch = room.launch(f"{SHOW}; wc -c l.list", inputs=optional)
    room.run(launch)
    assert log(launch).splitlines()[-1] == "0 l.list"


def test_files_may_go_to_the_working_directory_itself(room: Room, source: Path) -> None:
    given = [an_input(source, ".", list="x/all.list")]
    launch = room.launch("cat part-4 deep/er/more; tail -n 1 x/all.list", inputs=given)
    room.run(launch)
    assert log(launch) == "4\nmore\n./part-6\n"
    alone = room.launch("cat part-5", inputs=[an_input(source / "part-5", ".")])
    room.run(alone)
    assert log(alone) == "5\n"


def test_a_copy_is_the_tasks_own_to_change_and_has_another_name_beside_it(room: Room, source: Path) -> None:
    (source / "run.sh").write_text("echo ran > made; cat made\n")
    (source / "link").symlink_to("/etc/passwd")
    command = "cd 'ann~job' && sh run.sh && echo more >> part-1 && rm part-2 && cat part-1 deep/er/more && ls"
    launch = room.launch(command, command, inputs=[an_input(source, "code", copy=True, alias="ann~job")])
    room.run(launch)
    for number in range(2):
        lines = log(launch, f"trainer-{number}").splitlines()
        assert lines[:4] == ["ran", "1", "more", "more"]
        assert lines[4:] == ["deep", "made", "part-0", "part-1", "part-3", "part-4", "part-5", "part-6", "run.sh"]
    assert (source / "part-1").read_text() == "1\n"
    assert (source / "part-2").exists()
    assert not (source / "made").exists()


def test_a_copy_of_one_file_is_a_file(room: Room, source: Path) -> None:
    given = [an_input(source / "part-3", "in/one", copy=True)]
    launch = room.launch("cat in/one; echo 4 > in/one; cat in/one", inputs=given)
    assert room.run(launch).state is TaskState.SUCCEEDED
    assert log(launch).splitlines() == ["3", "4"]
