"""An engine or framework that is missing is skipped, and fails the run where CI is set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("ci", "said"), [("", "1 skipped"), ("true", "1 error")])
def test_a_missing_engine(ci: str, said: str) -> None:
    assert said in run("tests/contract/test_slurm_engine.py::test_four_nodes_are_idle", ci)


@pytest.mark.parametrize(("ci", "said"), [("", "1 skipped"), ("true", "1 error")])
def test_a_missing_framework(ci: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "test_framework.py"
    file.write_text(
        "from tests.frameworks import needs\n\n\n@needs('no_such_framework')\ndef test_it() -> None:\n    pass\n"
    )
    assert said in run(str(file), ci, "-p", "tests.conftest")


def run(test: str, ci: str, *more: str) -> str:
    """What pytest says of a test where no command of an engine is found."""
    env = {**os.environ, "CI": ci, "PATH": "/nowhere"}
    words = ["-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    words += [*more, test]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=100
    )
    return done.stdout + done.stderr
