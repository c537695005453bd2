"""The command as a process: exit codes, what goes to which stream, and how quickly it starts."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddlecloud.cli import exits
from paddlecloud.model.errors import (
    BY_CODE,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    UnauthenticatedError,
    UnreachableError,
)
from tests.unit.cli.command import Command
from tests.unit.server.running import Running, running
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data") as made:
        yield made


@pytest.fixture
def command(server: Running, tmp_path: Path) -> Command:
    """Typed by Ann, who has configured the server by variables."""
    (tmp_path / "home").mkdir()
    return Command(tmp_path, {"PADDLECLOUD_SERVER": server.url, "PADDLECLOUD_TOKEN": server.ann})


@pytest.fixture
def alone(tmp_path: Path) -> Command:
    return Command(tmp_path)


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
    program = (
        "import sys; from paddlecloud.cli.main import main; code = main(sys.argv[1:]); "
        "heavy = {'urllib3', 'msgspec', 'rich', 'yaml', 'fastapi'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else code)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], env=alone.environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


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
    said = command.type("submit", "--name", "streams", "--", "true")
    assert said.stdout.startswith("job-")
    assert len(said.stdout.split()) == 1
    assert f"paddlecloud logs -f {said.stdout.strip()}" in said.stderr
    assert json.loads(command.out("ls", "--name", "streams", "-o", "json"))[0]["id"] == said.stdout.strip()
    assert command.out("ls", "--name", "streams", "-o", "name") == said.stdout
    assert command.out("ls", "--name", "streams", "-o", "yaml").startswith("- id: job-")


@pytest.mark.parametrize(
    ("words", "state", "code"),
    [("true", "success", 0), ("exit 3", "failed", 100), ("kill -9 $$", "failed", 100)],
)
def test_wait_tells_the_end_by_its_exit_code(command: Command, words: str, state: str, code: int) -> None:
    job = command.out("submit", "--", words).strip()
    assert command.type("wait", job, code=code).stdout.split() == [job, state]


def test_a_jobs_own_exit_code_is_passed_on_when_asked_for(command: Command) -> None:
    job = command.out("submit", "--", "exit 3").strip()
    command.type("wait", "--exit-code", "job", job, code=3)
    job = command.out("submit", "--", "kill -9 $$").strip()
    command.type("wait", "--exit-code", "job", job, code=137)


def test_wait_that_gives_up_exits_with_101_and_a_killed_job_with_103(command: Command) -> None:
    job = command.out("submit", "--", "go on").strip()
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
    job = command.out("submit", "-f", "job.yaml", "--env", "B=flag", "--env", "FROM_SHELL", "--time-limit", "1h")
    spec = json.loads(command.out("show", "-o", "json", job.strip()))["job"]["spec"]
    assert spec["name"] == "filed"
    assert spec["env"] == {"A": "file", "B": "flag", "FROM_SHELL": "shell"}
    assert spec["wall_time_seconds"] == 3600
    assert "no such variable" in command.type("submit", "--env", "NOT_SET", "--", "x", code=2).stderr


def test_watch_mode_prints_each_change_of_state_with_its_time(command: Command) -> None:
    (command.folder / "job").mkdir()
    said = command.type("submit_job", "--files=job", "--start_cmd=exit 3", "--watch_mode=1", code=100)
    job, *changes = said.stdout.splitlines()
    states = [line.split("  ")[2] for line in changes]
    assert all(line.split("  ")[1] == job for line in changes)
    assert (states[0], states[-2:]) == ("submit", ["running", "failed"])


def test_an_interrupted_run_detaches_and_the_job_goes_on(command: Command, server: Running) -> None:
    begun = command.begin("run", "--name", "interrupted", "--", "go on")
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
        command.out("submit", "--name", "piped", "--", "true")
    with command.begin("events", "-f", "--after", "0") as begun:
        assert begun.stdout is not None
        assert begun.stderr is not None
        begun.stdout.readline()
        begun.stdout.close()
        command.out("submit", "--name", "piped", "--", "true")
        assert begun.wait(timeout=20) == 141
        assert begun.stderr.read() == ""


def test_login_remembers_the_server_for_its_owner_only(server: Running, alone: Command) -> None:
    home = alone.folder / "home"
    home.mkdir()
    alone.type("login", "--server", server.url, "--token", server.bob)
    config = home / ".config" / "paddlecloud" / "config.toml"
    assert config.stat().st_mode & 0o777 == 0o600
    assert alone.type("ls").stdout == ""
    shown = alone.out("config")
    assert "bob" in shown
    assert server.bob not in shown
    assert str(config) in shown


def test_without_the_server_parts_the_command_to_install_them_is_said(tmp_path: Path) -> None:
    # -S and -I leave site-packages out, as on a machine where only the client is installed.
    src = Path(__file__).parents[3] / "src"
    program = (
        f"import sys; sys.path.append({str(src)!r})\nfrom paddlecloud.cli import serve\nserve._require_server_parts()"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'paddlecloud[server]'" in ran.stderr
