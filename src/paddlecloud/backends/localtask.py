"""One task as the local backend sees it: what its folder says became of it, and what no one is left to write there.

`exit`: ended · `pid` of a living supervisor: running · of a dead one: lost · neither: starting
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from datetime import datetime

from paddlecloud.backends import taskreports
from paddlecloud.backends.leftovers import end_leftovers
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.runtime import processes
from paddlecloud.runtime.cgroups import remove as remove_groups
from paddlecloud.runtime.folder import Begun, Ended, SoFar, TaskFolder


class LocalTask:
    """What was read once is kept: `pid` and `exit` never change. `so-far` does, while the task runs."""

    def __init__(self, folder: TaskFolder, clock: Callable[[], datetime]) -> None:
        self.name = folder.task
        self.folder = folder
        self._clock = clock
        self._begun: Begun | None = None
        self._so_far = SoFar()
        self._report = TaskReport(name=self.name, state=TaskState.STARTING)

    def look(self) -> TaskReport:
        if self._report.state.ended:
            return self._report
        if self._begun is None:
            self._begun = self.folder.begun
        ended = self.folder.ended or self._settle()
        if ended is not None:
            self._report = taskreports.ended(self.name, ended)
        elif self._begun is not None:
            self._report = self._report_run(self._begun)
        return self._report

    def _report_run(self, begun: Begun) -> TaskReport:
        so_far = self.folder.so_far
        if self._report.state is TaskState.RUNNING and so_far == self._so_far:
            return self._report
        self._so_far = so_far
        return taskreports.running(self.name, begun, so_far)

    def terminate(self) -> None:
        """Tell its supervisor to end it; one that comes later finds the stop file."""
        if not self.look().state.ended and self._begun is not None:
            processes.send([self._begun.identity.pid], signal.SIGTERM)

    def remove_groups(self) -> None:
        if self._begun is not None:
            remove_groups(self._begun.groups)

    def lose(self) -> None:
        """Write the end of a task of an earlier boot, of which nothing can run any more, if it has left none."""
        self._begun = self.folder.begun
        if self.folder.ended is None:
            self._write_lost("this machine was restarted")

    def _settle(self) -> Ended | None:
        """The end of a task that has no one to write it: stopped before it started, or its supervisor was killed."""
        if self._begun.identity.alive if self._begun else not self.folder.stopped:
            return None
        lock = self.folder.lock()
        if lock is None:
            return None  # its supervisor is about to write what we look for
        try:
            if self.folder.begun != self._begun or self.folder.ended is not None:
                return self.folder.ended
            if self._begun is None:
                return self._write(Ended(reason="stopped before it started", ended_at=self._clock().timestamp()))
            if end_leftovers(self.folder, self._begun):
                return self._write_lost("its supervisor was killed")
            return None
        finally:
            os.close(lock)

    def _write_lost(self, reason: str) -> Ended:
        so_far = self.folder.so_far
        started_at = None if self._begun is None else so_far.started_at(self._begun.started_at)
        return self._write(
            Ended(
                reason=reason,
                started_at=started_at,
                ended_at=self._clock().timestamp(),
                lost=True,
                restarts=so_far.restarts,
            )
        )

    def _write(self, ended: Ended) -> Ended:
        self.folder.write_ended(ended)
        return ended
