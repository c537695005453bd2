"""The command as a process: exit codes, what goes to which stream, and how quickly it starts."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

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
from paddlecloud.server.app import utc_now
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
    assert alone.out("help", "--help") == alone.out("help", "help") == alone.out("help")


@pytest.mark.parametrize("words", [["--help"], ["submit_job", "--help"], ["run", "--help"], ["user", "add", "--help"]])
def test_help_imports_nothing_heavy(alone: Command, words: list[str]) -> None:
    assert imported(alone, words) & {"http.client", "rich", "yaml", "fastapi"} == set()


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
    said = alone.type("-files=job", "submit_job", code=2)
    assert "which comes first: paddlecloud submit_job" in said.stderr
    assert "kill_job" not in said.stderr


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


def _interrupt(begun: subprocess.Popen[str]) -> str:
    """Press Ctrl-C, as often as it takes: one that comes while Python runs a finalizer is lost. What was said."""
    for _ in range(4):
        begun.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return begun.communicate(timeout=10)[1]
    begun.kill()
    raise AssertionError(f"it went on, and said: {begun.communicate()[1]}")


def test_an_interrupted_run_detaches_and_the_job_goes_on(command: Command, server: Running) -> None:
    begun = command.begin("run", "--no-files", "--name", "interrupted", "--", "go on")
    wait_until(lambda: command.out("ls", "--name", "interrupted", "--state", "running", "-o", "name"), "it runs")
    err = _interrupt(begun)
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
    home = command.environment["HOME"]
    assert f"{home}/nope.yaml" in command.type("submit", "--no-files", "--file=~/nope.yaml", code=2).stderr


def test_a_job_file_may_name_its_folder_by_the_home_folder(command: Command) -> None:
    (command.folder / "home" / "job").mkdir(exist_ok=True)
    (command.folder / "job.yaml").write_text("workdir: ~/job\nrun: go on\n")
    assert command.out("submit", "-f", "job.yaml").startswith("job-")


def test_a_data_folder_that_is_a_file_is_told_as_what_it_is(alone: Command) -> None:
    (alone.folder / "data").touch()
    for words in (["ls"], ["up"], ["status"]):
        said = alone.type(*words, code=1).stderr
        assert f"PADDLECLOUD_DATA: {alone.folder / 'data'} is a file, and data is kept in a folder: name one" in said


@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_to_download_into_that_has_no_name_of_its_own_is_answered_with_one(
    command: Command, folder: str
) -> None:
    job = command.out("submit", "--no-files", "--", "true").strip()
    command.type("wait", job)
    said = command.type("get_files", f"--job_id={job}", "--download=1", f"--download_dir={folder}", code=2).stderr
    assert f"{folder!r} exists: name a new folder, such as --download_dir=" in said
    said = command.type("cp", job, folder, code=2).stderr
    assert f"{folder!r} exists: name a new folder, such as" in said


CONF = "[main]\nuserid: xxx\nak: {ak}\nsk: {sk}\n\n[openapi]\nhost = {host}\nport = {port}\n"


def client_conf(command: Command, server: Running, ak: str, sk: str) -> Path:
    """The manual's file, as somebody has filled it in."""
    file = command.folder / "home" / "bin" / "paddlecloud" / "conf" / "client.conf"
    file.parent.mkdir(parents=True, exist_ok=True)
    host, _, port = server.url.removeprefix("http://").partition(":")
    file.write_text(CONF.format(ak=ak, sk=sk, host=host, port=port))
    return file


@pytest.mark.parametrize(
    ("ak", "sk", "says"),
    [
        ("xxxxxxxx", "xxxxxxxx", "in [main] ak is still a placeholder and sk is still a placeholder"),
        ("0123abcd", "", "in [main] sk is missing"),
        ("", "xxxxxxxx", "in [main] ak is missing and sk is still a placeholder"),
    ],
)
def test_a_client_conf_that_is_not_filled_in_is_named_with_what_it_lacks(
    server: Running, alone: Command, ak: str, sk: str, says: str
) -> None:
    file = client_conf(alone, server, ak, sk)
    said = alone.type("ls", code=3).stderr
    assert f"{file} does not say who you are at {server.url}: {says}" in said
    assert "paddlecloud gen_token --email=" in said


def test_a_key_that_is_refused_is_named_with_its_file_and_what_to_do(server: Running, alone: Command) -> None:
    key, sk = server.users.add_key("bob", utc_now())
    file = client_conf(alone, server, key.ak, "wrong")
    told = f"The key is in {file}: correct it there, or have another sent: paddlecloud gen_token --email="
    said = alone.type("ls", code=3).stderr
    assert "the signature is wrong for access key" in said
    assert told in said
    client_conf(alone, server, key.ak, sk)
    alone.type("login", "--server", server.url, "--ak", key.ak, stdin=f"{sk}\n")
    server.users.revoke_key(key.ak, "bob")
    config = alone.folder / "home" / ".config" / "paddlecloud" / "config.toml"
    assert f"The key is in {config}: log in with another" in alone.type("ls", code=3).stderr
    config.unlink()
    said = alone.type("ls", code=3).stderr
    assert "is not known here" in said
    assert told in said


def test_a_token_that_is_refused_is_named_with_where_it_is(server: Running, alone: Command) -> None:
    alone.variables = {"PADDLECLOUD_SERVER": server.url, "PADDLECLOUD_TOKEN": "pct_wrong"}
    assert "The token is in the environment: log in again: paddlecloud login" in alone.type("ls", code=3).stderr


def test_a_disabled_user_is_not_told_to_get_another_key(server: Running, alone: Command) -> None:
    server.add_user("gone")
    key, sk = server.users.add_key("gone", utc_now())
    server.users.change("gone", disabled=True)
    client_conf(alone, server, key.ak, sk)
    said = alone.type("ls", code=3).stderr
    assert "gone is disabled" in said
    assert "gen_token" not in said


@pytest.mark.parametrize(("verb", "longer"), [("serve", False), ("ls", True)])
def test_a_server_keeps_pythons_own_pace_of_collecting_garbage(verb: str, longer: bool) -> None:
    program = (
        "import atexit, gc, sys; usual = gc.get_threshold()\n"
        "atexit.register(lambda: print(gc.get_threshold() == usual))\n"
        f"sys.argv = ['paddlecloud', {verb!r}, '--help']\n"
        "from paddlecloud.cli.main import start; start()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.endswith(f"{not longer}\n")
