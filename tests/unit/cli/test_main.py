"""The command as a process: exit codes, what goes to which stream, and how quickly it starts."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys

import pytest

from paddlecloud.cli import exits
from paddlecloud.model.errors import (
    BY_CODE,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    RateError,
    UnauthenticatedError,
    UnreachableError,
)
from tests.unit.cli.command import Command
from tests.unit.server.running import Running
from tests.waiting import wait_until


def test_alone_it_prints_a_short_help_in_groups(alone: Command) -> None:
    for words in ([], ["--help"], ["-h"], ["help"]):
        said = alone.out(*words)
        assert "submit_job" in said
        assert "Jobs:" in said


def test_help_of_a_verb_is_had_both_ways(alone: Command) -> None:
    assert alone.out("help", "submit") == alone.out("submit", "--help")
    assert alone.out("--version") == alone.out("version")


@pytest.mark.parametrize("words", [["--help"], ["submit_job", "--help"], ["run", "--help"], ["user", "add", "--help"]])
def test_help_imports_nothing_heavy(alone: Command, words: list[str]) -> None:
    assert imported(alone, words) & {"http.client", "msgspec", "rich", "yaml", "fastapi"} == set()


def test_a_question_about_a_job_imports_only_what_answers_it(command: Command) -> None:
    job = command.out("submit", "--no-files", "--", "go on").strip()
    loaded = imported(command, ["query_job", f"--job_id={job}"])
    assert "http.client" in loaded
    unneeded = {"logging", "tempfile", "concurrent.futures", "subprocess", "tomllib", "yaml", "urllib3"}
    unneeded |= {f"paddlecloud.sdk.{name}" for name in ("accounts", "bundle", "download", "transfer")}
    unneeded |= {f"paddlecloud.model.{name}" for name in ("accounts", "audit", "space", "tree", "user")}
    assert loaded & unneeded == set()


def imported(command: Command, words: list[str]) -> set[str]:
    """The modules that a command has loaded when it ends."""
    program = (
        "import sys; from paddlecloud.cli.main import main; code = main(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], env=command.environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stderr.split())


def test_a_misspelt_verb_or_option_exits_with_2_and_a_hint(alone: Command) -> None:
    assert "did you mean 'submit'?" in alone.type("submt", code=2).stderr
    said = alone.type("submit_job", "--fils=job", code=2)
    assert "did you mean '--files'?" in said.stderr
    assert said.stdout == ""


def test_every_kind_of_error_has_its_exit_code() -> None:
    kinds: dict[type[PaddleCloudError], int] = {
        InvalidError: 2,
        UnauthenticatedError: 3,
        ForbiddenError: 3,
        RateError: 3,
        UnreachableError: 4,
        NotFoundError: 102,
    }
    for error in BY_CODE.values():
        expected = next((code for kind, code in kinds.items() if issubclass(error, kind)), 1)
        assert exits.exit_code(error("x")) == expected


def test_an_unreachable_server_exits_with_4_and_is_named(alone: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    alone.variables = {"PADDLECLOUD_SERVER": url, "PADDLECLOUD_TOKEN": "x"}
    assert url in alone.type("ls", code=4).stderr


def test_nobody_is_told_how_to_become_somebody(server: Running, alone: Command) -> None:
    alone.variables = {"PADDLECLOUD_SERVER": server.url}
    assert "paddlecloud login" in alone.type("ls", code=3).stderr
    alone.variables["PADDLECLOUD_TOKEN"] = "pct_wrong"
    alone.type("ls", code=3)


def test_data_goes_to_stdout_and_talk_to_stderr(command: Command) -> None:
    said = command.type("submit", "--no-files", "--name", "streams", "--", "true")
    assert said.stdout.startswith("job-")
    assert len(said.stdout.split()) == 1
    assert said.stderr == ""
    assert "submitted tmp_job" in command.type("run", "--no-files", "--no-download", "--", "true").stderr
    assert json.loads(command.out("ls", "--name", "streams", "-o", "json"))[0]["id"] == said.stdout.strip()
    assert command.out("ls", "--name", "streams", "-o", "name") == said.stdout
    assert command.out("ls", "--name", "streams", "-o", "yaml").startswith("- id: job-")


@pytest.mark.parametrize(
    ("words", "state", "code"),
    [("true", "success", 0), ("exit 3", "failed", 100), ("kill -9 $$", "failed", 100)],
)
def test_wait_tells_the_end_by_its_exit_code(command: Command, words: str, state: str, code: int) -> None:
    job = command.out("submit", "--no-files", "--", words).strip()
    assert command.type("wait", job, code=code).stdout.split() == [job, state]


def test_a_jobs_own_exit_code_is_passed_on_when_asked_for(command: Command) -> None:
    job = command.out("submit", "--no-files", "--", "exit 3").strip()
    command.type("wait", "--exit-code", "job", job, code=3)
    job = command.out("submit", "--no-files", "--", "kill -9 $$").strip()
    command.type("wait", "--exit-code", "job", job, code=137)


def test_wait_that_gives_up_exits_with_101_and_a_killed_job_with_103(command: Command) -> None:
    job = command.out("submit", "--no-files", "--", "go on").strip()
    command.type("wait", "--timeout", "1s", job, code=101)
    command.type("kill", "--wait", job)
    command.type("wait", job, code=103)
    assert "has ended already" in command.type("kill", job, code=1).stderr


def test_a_job_that_is_not_there_exits_with_102(command: Command) -> None:
    for verb in ("show", "wait", "kill", "logs"):
        command.type(verb, "job-" + "0" * 32, code=102)
        command.type(verb, "no-such-name", code=102)


def test_a_job_file_and_flags_make_one_job_and_flags_win(command: Command) -> None:
    (command.folder / "job.yaml").write_text("name: filed\nrun: go on\nenv: {A: file, B: file}\ntime_limit: 10m\n")
    command.variables["FROM_SHELL"] = "shell"
    job = command.out(
        "submit", "--no-files", "-f", "job.yaml", "--env", "B=flag", "--env", "FROM_SHELL", "--time-limit", "1h"
    )
    spec = json.loads(command.out("show", "-o", "json", job.strip()))["job"]["spec"]
    assert spec["name"] == "filed"
    assert spec["env"] == {"A": "file", "B": "flag", "FROM_SHELL": "shell"}
    assert spec["wall_time_seconds"] == 3600
    assert "no such variable" in command.type("submit", "--no-files", "--env", "NOT_SET", "--", "x", code=2).stderr


def test_watch_mode_prints_each_change_of_state_with_its_time(command: Command) -> None:
    (command.folder / "job").mkdir()
    said = command.type("submit_job", "--files=job", "--start_cmd=exit 3", "--watch_mode=1", code=100)
    job, *changes = said.stdout.splitlines()
    states = [line.split("  ")[2] for line in changes]
    assert all(line.split("  ")[1] == job for line in changes)
    assert (states[0], states[-2:]) == ("submit", ["running", "failed"])


def test_an_interrupted_run_detaches_and_the_job_goes_on(command: Command, server: Running) -> None:
    begun = command.begin("run", "--no-files", "--name", "interrupted", "--", "go on")
    wait_until(lambda: command.out("ls", "--name", "interrupted", "--state", "running", "-o", "name"), "it runs")
    begun.send_signal(signal.SIGINT)
    _, err = begun.communicate(timeout=20)
    job = command.out("ls", "--name", "interrupted", "-o", "name").strip()
    assert begun.returncode == 130
    assert f"paddlecloud logs -f {job}" in err
    assert "Traceback" not in err
    assert server.state(job) == "running"


def test_a_reader_that_has_had_enough_ends_it_quietly(command: Command) -> None:
    for _ in range(2):
        command.out("submit", "--no-files", "--name", "piped", "--", "true")
    with command.begin("events", "-f", "--after", "0") as begun:
        assert begun.stdout is not None
        assert begun.stderr is not None
        begun.stdout.readline()
        begun.stdout.close()
        command.out("submit", "--no-files", "--name", "piped", "--", "true")
        assert begun.wait(timeout=20) == 141
        assert begun.stderr.read() == ""


def test_a_path_that_was_typed_and_is_not_there_exits_with_2(command: Command) -> None:
    for words in (["-f", "nope.yaml"], ["--file=nope.yaml"]):
        assert "nope.yaml" in command.type("submit", "--no-files", *words, code=2).stderr
