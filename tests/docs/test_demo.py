"""`make demo` shows what it promises, with an empty HOME."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import ROOT
from tests.frameworks import SETTINGS, needs


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of someone who has just installed the command, on a machine that has PaddlePaddle."""
    command = tmp_path / "bin" / "paddlecloud"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m paddlecloud "$@"\n')
    command.chmod(0o755)
    home = tmp_path / "home"
    data = home / ".local/share/paddlecloud"
    data.mkdir(parents=True, mode=0o700)
    (data / "server.toml").write_text(SETTINGS)  # else it would install PaddlePaddle each time
    env = {
        "HOME": str(home),
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "LANG": "C.UTF-8",
        "RESULTS": str(tmp_path / "results"),
    }
    yield env
    subprocess.run([command, "down"], env=env, check=True, capture_output=True, timeout=60)


@needs("paddle")
def test_the_demo_goes_from_nothing_to_the_results_of_both_ranks(tmp_path: Path, shell: dict[str, str]) -> None:
    demo = ROOT / "tools" / "demo.sh"
    ran = subprocess.run(
        ["sh", demo], env=shell, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200
    )
    assert ran.returncode == 0, ran.stdout
    job = re.findall(r"job-[0-9a-f]{32}", ran.stdout)[0]
    for shown in (
        "started the embedded server",
        "uploading",
        "fit-a-line",
        "trainer-0 | pass 1 ",
        "trainer-1 | pass 1 ",
        "2 of 2 ranks hold the weights",
        "job_status: success",
        "What to type next",
    ):
        assert shown in ran.stdout
    models = [(tmp_path / "results" / job / f"rank-{rank}" / "model.pdparams").read_bytes() for rank in range(2)]
    assert models[0] == models[1]
    first, last = re.findall(r"^pass \d+  loss ([\d.]+)$", ran.stdout, re.MULTILINE)
    assert float(last) < 5 < 100 < float(first)
