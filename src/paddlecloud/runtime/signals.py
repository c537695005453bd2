"""Signals that a supervisor waits for, one after the other, instead of being interrupted by them."""

from __future__ import annotations

import os
import signal
import time

AWAITED = frozenset({signal.SIGCHLD, signal.SIGTERM})


def await_next(deadline: float | None) -> int | None:
    """The next signal for us, or None once the deadline has passed."""
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        found = signal.sigwaitinfo(AWAITED) if left is None else signal.sigtimedwait(AWAITED, left)
        if found is None:
            return None
        # A stop comes from outside, whence a PID namespace shows no sender: the task itself cannot ask for it.
        if found.si_signo == signal.SIGCHLD or os.getpid() != 1 or found.si_pid == 0:
            return found.si_signo
