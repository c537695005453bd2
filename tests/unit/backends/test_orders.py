"""A launch becomes task files by a pure function."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.backends.base import Mount, RefusedError
from paddlecloud.backends.orders import Here, render
from tests.launches import make_launch

HERE = Here(
    folder=Path("/root/job-1-1"),
    mounts=True,
    account="me",
    search_path=["/bin"],
    grace_seconds=3,
    gate_seconds=4,
    build_seconds=5,
    interpreter="/usr/bin/python3",
    environments=Path("/envs"),
    uv=None,
    pids_limit=9,
    hidden=[],
    whole_machine=False,
    visible=[],
    visible_writable=[],
    wake=Path("/root"),
    boot="a boot",
)


def test_each_task_is_told_its_own_and_the_others_endpoints() -> None:
    launch = make_launch(
        Path("/results"), "a", "b", pservers=["c"], ports=[1, 2, 3], address="127.0.0.9", distribute="PSERVER"
    )
    found = render(launch, HERE)
    assert set(found) == {"trainer-0", "trainer-1", "pserver-0"}
    second = found["trainer-1"]
    assert (second.command, second.rank, second.port, second.trainer_count) == ("b", 1, 2, 2)
    assert second.trainers == ["127.0.0.9:1", "127.0.0.9:2"]
    assert second.pservers == ["127.0.0.9:3"]
    assert (found["pserver-0"].command, found["pserver-0"].rank) == ("c", 0)


def test_each_of_a_tasks_ports_has_its_use() -> None:
    launch = make_launch(Path("/results"), "a", "b", address="127.0.0.9", distribute="NCCL2")
    places = [replace(task, ports=(10 + n, 20 + n, 30 + n, 40 + n)) for n, task in enumerate(launch.placement.tasks)]
    launch = dataclasses.replace(launch, placement=replace(launch.placement, tasks=tuple(places)))
    for task in render(launch, HERE).values():
        assert task.trainers == ["127.0.0.9:10", "127.0.0.9:11"]
        assert task.workers == ["127.0.0.9:20", "127.0.0.9:21"]
        assert (task.master, task.coordinator) == ("127.0.0.9:30", "127.0.0.9:40")


def test_results_are_laid_out_as_seed_000_shows() -> None:
    [task] = render(make_launch(Path("/results"), "a"), HERE).values()
    assert task.output == "/results/rank-0"
    assert task.log_file == "/results/log/trainer-0.log"
    assert task.log_folder == "/results/log/trainer-0"


@pytest.mark.parametrize(
    ("mounts", "tree", "expected"),
    [
        (True, Path("/t"), "/root/job-1-1/trainer-0/mount"),
        (False, Path("/t"), "/t"),
        (False, None, "/root/job-1-1/trainer-0/mount"),
    ],
)
def test_without_mounts_the_tree_itself_is_the_mount_path(mounts: bool, tree: Path | None, expected: str) -> None:
    [task] = render(make_launch(Path("/results"), "a", tree=tree), dataclasses.replace(HERE, mounts=mounts)).values()
    assert task.mount == expected


PFS = [
    Mount(source=Path("/data/pfs/a/home/u"), target="/pfs/a/home/u", writable=True),
    Mount(source=Path("/results/u"), target="/pfs/a/home/u/output", writable=False),
]


@pytest.mark.parametrize(
    ("root", "cwd", "expected"),
    [
        (True, None, (None, "/pfs")),
        (True, "/pfs/a/home/u", ("/pfs/a/home/u", "/pfs")),
        (False, None, (None, "/data/pfs")),
        (False, "/pfs/a/home/u", ("/data/pfs/a/home/u", "/data/pfs")),
        (False, "/pfs/a/home/u/jobs/x", ("/data/pfs/a/home/u/jobs/x", "/data/pfs")),
        (False, "/pfs/a/home/u/output/x", ("/results/u/x", "/data/pfs")),
    ],
)
def test_without_a_root_of_its_own_a_task_is_told_where_its_folders_are(
    root: bool, cwd: str | None, expected: tuple[str | None, str]
) -> None:
    launch = make_launch(Path("/results"), "a", mounts=PFS, cwd=cwd, pfs=Path("/data/pfs"))
    [task] = render(launch, dataclasses.replace(HERE, mounts=root)).values()
    assert (task.cwd, task.pfs) == expected
    assert task.mounts == {"/pfs/a/home/u": "/data/pfs/a/home/u", "/pfs/a/home/u/output": "/results/u"}
    assert task.writable == ["/pfs/a/home/u"]


@pytest.mark.parametrize("cwd", ["/pfs/a/home/us", "/pfs/a/home", "/"])
def test_a_folder_to_start_in_that_no_task_sees_is_refused(cwd: str) -> None:
    with pytest.raises(RefusedError, match="in none of the folders"):
        render(make_launch(Path("/results"), "a", mounts=PFS, cwd=cwd), HERE)


def test_every_task_is_told_what_the_trainers_run_and_have() -> None:
    launch = make_launch(Path("/results"), "train", pservers=["serve"], cpus=2.5)
    told = {name: (task.command, task.entry, task.trainer_devices) for name, task in render(launch, HERE).items()}
    assert told == {"trainer-0": ("train", "train", 2), "pserver-0": ("serve", "train", 2)}


def test_a_launch_that_contradicts_its_placement_is_refused() -> None:
    launch = make_launch(Path("/results"), "a", "b")
    with pytest.raises(RefusedError, match="do not match"):
        render(dataclasses.replace(launch, tasks=launch.tasks[:1]), HERE)


@pytest.mark.parametrize(("awaited", "seconds"), [(None, 4), (2.0, 2.0), (10.0, 4)])
def test_trainers_wait_for_pservers_as_the_server_says_or_less_if_their_role_does(
    awaited: float | None, seconds: float
) -> None:
    launch = make_launch(Path("/results"), "train", pservers=["serve"])
    roles = tuple(replace(role, awaited_seconds=awaited) for role in launch.roles)
    assert render(dataclasses.replace(launch, roles=roles), HERE)["trainer-0"].gate_seconds == seconds


def test_a_note_begins_the_log_of_the_first_trainer_alone() -> None:
    launch = dataclasses.replace(make_launch(Path("/results"), "a", "b", pservers=["c"]), note="mind this")
    assert [task.note for task in render(launch, HERE).values()] == ["mind this", "", ""]
