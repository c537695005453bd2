"""How a task ended: by a code, by a signal, or by what kept it from running."""

from __future__ import annotations

import errno
import os
import signal
from typing import NamedTuple


class Outcome(NamedTuple):
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    final: bool = True  # another start would change nothing
    told: bool = False  # to stop, before it ended
    lost: bool = False  # another attempt may do better

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0

    @property
    def words(self) -> str:
        if self.reason:
            return self.reason
        if self.signal is None:
            return f"exit code {self.exit_code}"
        known = self.signal in set(signal.Signals)
        return f"killed by {signal.Signals(self.signal).name if known else f'signal {self.signal}'}"


# What keeps a task from its start for a while: too many open files, a full or a failing disk, no memory.
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EAGAIN})
_MARK = "\0"  # before what a child tells its supervisor of something that can pass


def not_started(problem: str, error: BaseException | None = None) -> Outcome:
    """`error` is what the problem is, where that is known."""
    lost = problem.startswith(_MARK) or _can_pass(error)
    return Outcome(reason=f"could not start: {problem.lstrip(_MARK)}", lost=lost)


def mark(error: BaseException) -> str:
    return _MARK if _can_pass(error) else ""


def _can_pass(error: BaseException | None) -> bool:
    return isinstance(error, OSError) and error.errno in _PASSING


def decode(status: int) -> Outcome:
    if os.WIFSIGNALED(status):
        return Outcome(signal=os.WTERMSIG(status))
    return Outcome(exit_code=os.WEXITSTATUS(status))
