"""The Python that jobs of tests train with, and what it has: `make frameworks` makes it, as `make test` does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.absent import absent_unless

PYTHON = Path(sys.prefix) / "frameworks/bin/python"
SETTINGS = f'[jobs]\npython = "{PYTHON}"\n'  # of a server whose tasks find it as theirs


def needs(package: str) -> pytest.MarkDecorator:
    """A mark for a test that needs a framework."""
    found = any((PYTHON.parents[1] / "lib").glob(f"python3.*/site-packages/{package}/__init__.py"))
    return absent_unless(found, f"{package} is not in {PYTHON.parents[1]}: type `make frameworks`")
