"""submit, run and submit_job against a real server: which folder goes, and what is said to a person and to a script."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli.command import Command
from tests.unit.server.running import Running, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data") as made:
        yield made


@pytest.fixture
def command(server: Running, tmp_path: Path) -> Command:
    (tmp_path / "home").mkdir()
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "run.sh").write_text("true\n")
    return Command(tmp_path, {"PADDLECLOUD_SERVER": server.url, "PADDLECLOUD_TOKEN": server.ann})


def on_a_terminal(command: Command, *words: str) -> str:
    """All that a person sees."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "paddlecloud", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=command.folder,
        env=command.environment,
    ) as begun:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # how Linux tells that nobody writes to a terminal any more
            pass
        assert begun.wait(timeout=60) == 0, seen
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    "words",
    [
        ["submit", "job", "--", "go on"],
        ["submit_job", "--files=job", "--start_cmd=go on"],
    ],
)
def test_a_person_is_told_what_to_type_next_and_a_script_gets_the_id_alone(command: Command, words: list[str]) -> None:
    seen = on_a_terminal(command, *words)
    assert "submitted tmp_job as job-" in seen
    assert "paddlecloud logs -f job-" in seen
    said = command.type(*words)
    assert said.stdout.startswith("job-")
    assert len(said.stdout.split()) == 1
    assert "paddlecloud" not in said.stderr


def test_other_formats_are_followed_by_nothing_even_on_a_terminal(command: Command) -> None:
    seen = on_a_terminal(command, "submit", "--no-files", "-o", "name", "--", "go on")
    assert seen.startswith("job-")
    assert len(seen.split()) == 1


def test_pservers_are_counted_with_the_trainers(command: Command) -> None:
    seen = on_a_terminal(command, "submit", "--no-files", "--nodes", "5", "--distribute", "PSERVER", "--", "go on")
    assert ": 5 pservers and 5 trainers" in seen


def test_a_job_without_a_folder_is_asked_for_one_with_the_line_to_type(command: Command) -> None:
    for verb in ("submit", "run"):
        said = command.type(verb, "--", "sh", "my run.sh", code=2)
        assert f"paddlecloud {verb} . -- sh 'my run.sh'" in said.stderr
    assert "nothing to run" in command.type("submit", code=2).stderr
    assert "leave one out" in command.type("submit", "--no-files", "job", "--", "x", code=2).stderr
    (command.folder / "job.yaml").write_text("run: go on\n")
    assert "add `workdir: .`" in command.type("submit", "-f", "job.yaml", code=2).stderr
    command.type("submit", "--no-files", "-f", "job.yaml")


def test_a_wrong_parameter_is_named_before_the_folder_is_sent(command: Command) -> None:
    os.mkfifo(command.folder / "job" / "fifo")  # whoever reads the folder is refused for that
    for words in (
        ["submit", "job", "--cluster", "nowhere", "--", "x"],
        ["submit_job", "--files=job", "--start_cmd=x", "--cluster=nowhere"],
    ):
        assert "cluster 'nowhere'" in command.type(*words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["submit", "job", "--time-limit", "2", "--", "x"], "--time-limit 2 has no unit: write 2s, 2m or 00:30:00"),
        (["submit_job", "--files=job", "--start_cmd=x", "--wall_time=30"], "--wall_time 30 has no unit"),
        (["submit", "job", "--memory", "1", "--", "x"], "memory 1 is 1 bytes"),
        (["submit", "job", "--cpus", "0", "--", "x"], "cpus 0 is too few"),
        (["submit", "job", "--gpus", "1", "--", "x"], "asks for 1 GPU, and there are none in local"),
        (["submit", "job", "--name", os.fsdecode(b"\xff"), "--", "x"], "name is not UTF-8"),
        (["submit_job", "--files=job", "--start_cmd=x", "--instance_count=0"], "--instance_count 0 is too small"),
        (["show", os.fsdecode(b"\xff")], "not UTF-8"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_the_words_that_were_typed(
    command: Command, words: list[str], says: str
) -> None:
    said = command.type(*words, code=2)
    assert says in said.stderr
    assert said.stdout == ""


def test_a_name_that_several_live_jobs_have_is_killed_by_its_id_only(command: Command, server: Running) -> None:
    older, newer = (command.out("submit", "--no-files", "--name", "k2", "--", "go on").strip() for _ in range(2))
    assert f"2 live jobs are called 'k2': this is the newest, {newer}" in command.type("show", "k2").stderr
    for words in (["kill", "k2"], ["kill_job", "--job_id=k2"]):
        assert f"{newer}, {older}; name one by its id" in command.type(*words, code=1).stderr
    assert "kill" not in server.state(older) + server.state(newer)


def test_a_second_download_into_the_same_folder_is_told_what_to_type(command: Command) -> None:
    job = command.out("submit_job", "--files=job", "--start_cmd=true").strip()
    command.type("wait", job)
    command.type("get_files", f"--job_id={job}", "--download=1")
    said = command.type("get_files", f"--job_id={job}", "--download=1", code=2)
    assert "'output' exists: name a new folder, such as --download_dir=output-2" in said.stderr
    command.type("get_files", f"--job_id={job}", "--download=1", "--download_dir=output-2")


def test_a_seed_000_config_without_a_server_is_told_to_name_one(tmp_path: Path) -> None:
    conf = tmp_path / "home" / "bin" / "paddlecloud" / "conf" / "client.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("[main]\nuserid: me\nak: 0123\nsk: 4567\n")
    command = Command(tmp_path)
    said = command.type("ls", code=1)
    assert f"{conf} has an access key but names no server: add its [openapi] host and port" in said.stderr
    assert not (tmp_path / "data").exists()
