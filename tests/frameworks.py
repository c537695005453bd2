"""The Python that jobs of tests train with, and what it has: `make frameworks` makes it, as `make test` does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

PYTHON = Path(sys.prefix) / "frameworks/bin/python"
SETTINGS = f'[jobs]\npython = "{PYTHON}"\n'  # of a server whose tasks find it as theirs


def needs(package: str) -> pytest.MarkDecorator:
    """Skips a test whose framework is not there."""
    found = any((PYTHON.parents[1] / "lib").glob(f"python3.*/site-packages/{package}/__init__.py"))
    return pytest.mark.skipif(not found, reason=f"{package} is not in {PYTHON.parents[1]}: type `make frameworks`")
