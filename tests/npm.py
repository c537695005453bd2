"""Clients of other systems from npm, as `make engines` puts them into the environment; without them tests say so."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.absent import absent

FOLDER = Path(sys.prefix) / "npm"


def modules() -> Path:
    """The folder of what npm has installed; where there is none, tests/absent.py decides."""
    found = FOLDER / "node_modules"
    if shutil.which("node") is None or not (FOLDER / ".made").exists():
        absent(f"there are no clients from npm in {FOLDER}: type `make engines`")
    return found
