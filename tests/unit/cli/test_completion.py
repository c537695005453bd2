"""Completion, asked the way the shells ask."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from paddlecloud.cli.completion import SHELLS, script


def bash(*words: str) -> list[str]:
    """What bash would offer for the last of these words."""
    line = " ".join(f'"{word}"' for word in ("paddlecloud", *words))
    typed = f"COMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n_paddlecloud\n"
    program = script("bash") + typed + 'printf "%s\\n" "${COMPREPLY[@]}"'
    return subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["sub"], ["submit", "submit_job"]),
        (["get_f"], ["get_files"]),
        (["user", "pa"], ["passwd"]),
        (["user", "quota", "--w"], ["--wall-time"]),
        (["submit_job", "--public"], ["--public_bcc", "--public_bos"]),
        (["completion", ""], ["-h", "--help", "bash", "zsh", "fish"]),
        (["nonsense", ""], []),
    ],
)
def test_bash_offers_what_the_parsers_take(words: list[str], offered: list[str]) -> None:
    assert bash(*words) == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_every_script_is_one_that_its_shell_can_read(shell: str) -> None:
    text = script(shell)
    assert "submit_job" in text
    program = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run(program, input=text, text=True, check=True)
