"""Waiting for a condition with a deadline, instead of sleeping for luck."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T | None], what: str, *, seconds: float = 60.0) -> T:
    """The first true answer of `condition`; AssertionError with `what` after the deadline."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.05)
    return answer
