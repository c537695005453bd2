"""What kept a task from its start: another attempt may do better only where that can pass."""

from __future__ import annotations

import errno
import os

import pytest

from paddlecloud.runtime.outcome import mark, not_started


@pytest.mark.parametrize(
    ("number", "lost"),
    [
        (errno.EMFILE, True),
        (errno.ENFILE, True),
        (errno.ENOSPC, True),
        (errno.EDQUOT, True),
        (errno.EIO, True),
        (errno.ENOENT, False),
        (errno.EACCES, False),
    ],
)
def test_what_can_pass_loses_a_task_and_what_cannot_fails_it(number: int, lost: bool) -> None:
    error = OSError(number, os.strerror(number))
    words = os.strerror(number)
    for outcome in (not_started(words, error), not_started(mark(error) + words)):  # in the supervisor, in its child
        assert (outcome.lost, outcome.reason) == (lost, f"could not start: {words}")
