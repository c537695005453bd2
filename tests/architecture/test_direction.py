"""The direction of imports is kept by a machine, and the machine is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_point_down_and_neighbours_are_strangers() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [program, "--no-logo", "--no-cache"],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
