"""How a task ended: by a code, by a signal, or by what kept it from running."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple


class Outcome(NamedTuple):
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    final: bool = True  # another start would change nothing
    told: bool = False  # to stop, before it ended

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


def not_started(problem: str) -> Outcome:
    return Outcome(reason=f"could not start: {problem}")


def decode(status: int) -> Outcome:
    if os.WIFSIGNALED(status):
        return Outcome(signal=os.WTERMSIG(status))
    return Outcome(exit_code=os.WEXITSTATUS(status))
