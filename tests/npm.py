"""Clients of other systems from npm, as `make engines` puts them into the environment; without them tests say so."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

FOLDER = Path(sys.prefix) / "npm"


def modules() -> Path:
    """The folder of what npm has installed; skips the test where there is none."""
    found = FOLDER / "node_modules"
    if shutil.which("node") is None or not (FOLDER / ".made").exists():
        pytest.skip(f"there are no clients from npm in {FOLDER}: type `make engines`")
    return found
