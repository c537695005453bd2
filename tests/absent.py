"""The one way to do without an engine, framework or client that tests use: a skip, or a failure where CI is set.

Invariant: a run that reports success in CI has left out no engine.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def absent(what: str) -> NoReturn:
    """`what` is missing, and how it is installed."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} (CI is set, so it is not skipped)", pytrace=False)
    pytest.skip(what)


def absent_unless(found: bool, what: str) -> pytest.MarkDecorator:
    """A mark for tests that need it: tests/conftest.py looks at it before each."""
    return pytest.mark.absent("" if found else what)
