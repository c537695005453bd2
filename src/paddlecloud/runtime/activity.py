"""Whether a task still does something: writes into its log, or uses a CPU or a GPU.

A deadlock says nothing and computes nothing, for ever; so does a job that waits for what never comes.
"""

from __future__ import annotations

import os
import time
from typing import Callable, NamedTuple

from paddlecloud.runtime import processes
from paddlecloud.runtime.taskfile import TaskFile

_LOOKS = 10  # in the time after which a task is called quiet
_LONGEST_LOOK_SECONDS = 30.0
_BUSY_SHARE = 0.01  # of one CPU: what waits in a loop with pauses uses less
_TICKS = os.sysconf("SC_CLK_TCK")


class _Seen(NamedTuple):
    at: float
    log_bytes: int
    cpu_seconds: float


class Activity:
    """Looked at now and then; `quiet_since` is None for as long as the task does something."""

    def __init__(self, task: TaskFile, log: int, clock: Callable[[], float]) -> None:
        self._task = task
        self._log = log
        self._clock = clock
        # Nothing is known of it yet: a task that ends at once is not to pay for a look at all processes.
        self._seen = _Seen(time.monotonic(), 0, 0.0)
        self._active_at = clock()
        self._active_moment = self._seen.at
        self.quiet_since: float | None = None

    @property
    def next_look(self) -> float:
        """When to look again, as time.monotonic has it."""
        return self._seen.at + min(self._task.quiet_seconds / _LOOKS, _LONGEST_LOOK_SECONDS)

    def look(self) -> bool:
        """Look again; whether `quiet_since` has changed."""
        before, now = self._seen, self._look()
        self._seen, was = now, self.quiet_since
        if self._did_something(before, now):
            self._active_at, self._active_moment = self._clock(), now.at
        quiet = now.at - self._active_moment >= self._task.quiet_seconds
        self.quiet_since = self._active_at if quiet else None
        return self.quiet_since != was

    def _look(self) -> _Seen:
        own = processes.own_identity().pid
        return _Seen(time.monotonic(), os.fstat(self._log).st_size, processes.ticks_below(own) / _TICKS)

    def _did_something(self, before: _Seen, now: _Seen) -> bool:
        if now.log_bytes != before.log_bytes:
            return True
        # Less than before: one has ended, which is something too.
        used = now.cpu_seconds - before.cpu_seconds
        return used < 0 or used > _BUSY_SHARE * (now.at - before.at) or _gpus_are_used(self._task.gpus)


def _gpus_are_used(gpus: list[int], program: str = "nvidia-smi") -> bool:
    if not gpus:
        return False
    import subprocess  # few tasks have GPUs, and of these few are idle

    asked = [program, "--query-gpu=index,utilization.gpu", "--format=csv,noheader,nounits"]
    try:
        said = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10, check=True).stdout
        used = dict(line.split(b",") for line in said.splitlines())
        return any(int(used.get(b"%d" % gpu, b"0")) > 0 for gpu in gpus)
    except (OSError, subprocess.SubprocessError, ValueError):
        return False  # who cannot be asked tells nothing
