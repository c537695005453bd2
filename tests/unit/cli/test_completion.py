"""Completion, asked the way the shells ask."""

from __future__ import annotations

import os
import pty
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from paddlecloud.cli.completion import SHELLS, script
from paddlecloud.model.pfs import Who
from tests.absent import absent
from tests.unit.cli.command import Command
from tests.unit.sdk.answering import Answer, Asked, web
from tests.unit.server.running import Running
from tests.waiting import wait_until


def bash(*words: str, command: Command | None = None, folder: Path | None = None) -> list[str]:
    """What bash would offer for the last of these words, in a folder and with the real command."""
    line = " ".join(shlex.quote(word) for word in ("paddlecloud", *words))
    ours = f'paddlecloud() {{ {shlex.quote(sys.executable)} -m paddlecloud "$@"; }}\n' if command else ""
    typed = f"COMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n_paddlecloud\n"
    program = script("bash") + ours + typed + 'printf "%s\\n" "${COMPREPLY[@]}"'
    environment = command.environment if command else {"PATH": "/usr/bin:/bin"}
    ran = subprocess.run(
        ["bash", "-c", program], capture_output=True, text=True, check=True, cwd=folder, env=environment
    )
    assert ran.stderr == ""
    return [line for line in ran.stdout.split("\n") if line]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["sub"], ["submit", "submit_job"]),
        (["get_f"], ["get_files"]),
        (["help", "sub"], ["submit", "submit_job"]),
        (["user", "pa"], ["passwd"]),
        (["db", "re"], ["restore"]),
        (["db", "backup", "--co"], ["--config"]),
        (["db", "migrate", "--"], ["--help", "--to", "--force", "--config", "--output", "--json"]),
        (["user", "quota", "--wal"], ["--wall-time"]),
        (["submit_job", "--public"], ["--public_bcc", "--public_bos"]),
        (["submit_job", "--job_type", "=", ""], ["gpu", "cpu"]),
        (["submit_job", "--job_type", "="], ["gpu", "cpu"]),
        (["submit_job", "--job_type", "=", "g"], ["gpu"]),
        (["submit_job", "--job_type", "c"], ["cpu"]),
        (["ls", "--state", "k"], ["killing", "killed"]),
        (["ls", "--json", "--state", "live", "-o", "y"], ["yaml"]),
        (["user", "add", "bob", "--role", ""], ["admin", "user"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["completion", "-"], ["-h", "--help"]),
        (["mkdir", ""], ["/pfs/"]),
        (["rm", "/p"], ["/pfs/"]),
        (["publish", "/etc"], []),
        (["get_files", "--prefix", ""], []),
        (["nonsense", ""], []),
    ],
)
def test_bash_offers_what_the_parsers_take(words: list[str], offered: list[str]) -> None:
    assert bash(*words) == offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["submit", ""], ["a job", "other"]),
        (["run", "--name", "x", "o"], ["other"]),
        (["submit_job", "--files", "=", "a"], ["a job"]),
        (["submit", "-f", "job"], ["job.yaml"]),
        (["run", "other", "--", "run"], ["run.sh"]),
        (["run", "--no-download", "o"], ["other"]),
        (["db", "restore", "run"], ["run.sh"]),
        (["db", "restore", ""], ["a job", "job.yaml", "other", "run.sh"]),
    ],
)
def test_bash_offers_folders_and_files_where_they_are_taken(
    words: list[str], offered: list[str], tmp_path: Path
) -> None:
    (tmp_path / "a job").mkdir()
    (tmp_path / "other").mkdir()
    for name in ("job.yaml", "run.sh"):
        (tmp_path / name).touch()
    assert sorted(bash(*words, folder=tmp_path)) == offered


def test_bash_offers_jobs_by_name_and_id_but_none_that_the_shell_would_run(command: Command, server: Running) -> None:
    job = server.submit("true", name="completed")
    odd = server.submit("true", name="训练 $(touch hurt)")
    assert bash("show", "comp", command=command, folder=command.folder) == ["completed"]
    assert set(bash("logs", "-f", "", command=command)) >= {job, odd, "completed"}
    assert bash("query_job", "--job_id", "=", job[:12], command=command) == [job]
    for words in (("get", "workers"), ("kill",), ("logs", "-n", "3"), ("ls",), ("cp",)):
        assert "completed" in bash(*words, "comp", command=command, folder=command.folder)
    assert bash("show", "-", command=command)[0] == "-h"
    assert not (command.folder / "hurt").exists()


@pytest.fixture
def filled(server: Running) -> str:
    """A folder of Ann's with two files, and folders whose names bash would break, or run."""
    folder = "/pfs/local/home/ann/completed"
    for name in ("part-0", "part-1", "you@x.org/a:b=c/only", "$(touch hurt)", "a b", "数据"):
        server.services.pfs.write(Who(user="ann"), f"{folder}/{name}", [b""], size=0)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["cp", "data"],
        ["ls"],
        ["mv"],
        ["rm", "-r"],
        ["mkdir"],
        ["file", "put", "x"],
        ["file", "ls"],
        ["publish"],
        ["submit"],
    ],
)
def test_bash_offers_paths_of_the_pfs(command: Command, filled: str, words: list[str]) -> None:
    assert bash(*words, "/pfs/", command=command) == ["/pfs/local/", "/pfs/public/"]
    parts = [f"{filled}/part-0", f"{filled}/part-1"]
    assert bash(*words, f"{filled}/part", command=command, folder=command.folder) == parts


def test_paths_that_the_shell_would_run_are_left_out_and_those_of_others_are_nothing(
    command: Command, filled: str
) -> None:
    offered = bash("ls", f"{filled}/", command=command, folder=command.folder)
    assert offered == [f"{filled}/{name}" for name in ("part-0", "part-1", "you@x.org/", "数据")]
    assert not (command.folder / "hurt").exists()
    for path in ("/pfs/local/home/bob/", f"{filled}/part-0/", f"{filled}/../../bob/x"):
        assert bash("ls", path, command=command) == []


def test_a_path_is_completed_behind_what_a_real_bash_breaks_words_at(command: Command, filled: str) -> None:
    """Typed on a terminal: bash breaks words at @, : and =, and what is put in must fit behind them."""
    rc = command.folder / "rc"
    ours = f'paddlecloud() {{ {shlex.quote(sys.executable)} -m paddlecloud "$@"; }}'
    rc.write_text(f"{script('bash')}\n{ours}\nPS1='ready> '\n")
    screen, terminal = pty.openpty()
    typing = subprocess.Popen(
        ["bash", "--noprofile", "--rcfile", str(rc), "-i"],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        cwd=command.folder,
        env={**command.environment, "TERM": "dumb", "INPUTRC": "/dev/null"},
        start_new_session=True,
    )
    try:
        wait_until(lambda: b"ready> " in os.read(screen, 4096), "bash is ready")
        os.write(screen, f"paddlecloud ls {filled}/you@x\t\t\t".encode())
        os.write(screen, b"\x01echo \x05> seen\n")  # before the line, and behind it
        seen = command.folder / "seen"
        wait_until(lambda: seen.is_file() and seen.read_text(), "the line is run")
    finally:
        typing.kill()
        typing.wait()
        os.close(screen)
        os.close(terminal)
    assert seen.read_text() == f"paddlecloud ls {filled}/you@x.org/a:b=c/only\n"


def test_completion_starts_no_server_and_does_not_wait_for_one_that_is_silent(alone: Command) -> None:
    assert bash("show", "", command=alone) == []
    assert not (alone.folder / "data").exists()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        alone.variables = {"PADDLECLOUD_SERVER": url, "PADDLECLOUD_TOKEN": "x"}
        began = time.monotonic()
        assert bash("show", "", command=alone) == []
    assert time.monotonic() - began < 5.0


def test_completion_does_not_wait_for_a_server_that_answers_only_at_first(alone: Command) -> None:
    done = threading.Event()

    def respond(asked: Asked) -> Answer:
        if asked.path != "/readyz":
            done.wait(30)
        return Answer()

    with web(respond) as there:
        alone.variables = {"PADDLECLOUD_SERVER": there.url, "PADDLECLOUD_TOKEN": "x"}
        began = time.monotonic()
        assert bash("ls", "/pfs/local/", command=alone) == []
        took = time.monotonic() - began
        done.set()
    assert [asked.path.partition("?")[0] for asked in there.asked] == ["/readyz", "/v1/folders/pfs/local"]
    assert took < 15.0


def test_fish_offers_the_actions_of_a_verb_until_one_is_typed() -> None:
    actions = "backup restore migrate status"
    (line,) = [line for line in script("fish").splitlines() if f'-a "{actions}"' in line]
    assert f"__fish_seen_subcommand_from db; and not __fish_seen_subcommand_from {actions}'" in line


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_is_one_that_its_shell_can_read(shell: str) -> None:
    text = script(shell)
    assert "submit_job" in text
    program = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}[shell]
    if shutil.which(shell) is None:
        absent(f"{shell} is not installed")
    subprocess.run(program, input=text, text=True, check=True)
