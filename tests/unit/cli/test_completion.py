"""Completion, asked the way the shells ask."""

from __future__ import annotations

import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paddlecloud.cli.completion import SHELLS, script
from tests.unit.cli.command import Command
from tests.unit.server.running import Running


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
    assert bash("show", "-", command=command)[0] == "-h"
    assert not (command.folder / "hurt").exists()


def test_completion_starts_no_server_and_does_not_wait_for_one_that_is_silent(alone: Command) -> None:
    assert bash("show", "", command=alone) == []
    assert not (alone.folder / "data").exists()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        alone.variables = {"PADDLECLOUD_SERVER": url, "PADDLECLOUD_TOKEN": "x"}
        began = time.monotonic()
        assert bash("show", "", command=alone) == []
    assert time.monotonic() - began < 5.0


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
        pytest.skip(f"{shell} is not installed")
    subprocess.run(program, input=text, text=True, check=True)
