"""A backend in memory that passes the contract of the real ones, and lets a test decide what happens to its tasks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime

from msgspec.structs import replace

from paddlecloud.backends.base import BusyError, Launch, TaskLaunch
from paddlecloud.model.errors import ConflictError, UnreachableError
from paddlecloud.model.job import Resources
from paddlecloud.model.task import Report, TaskReport, TaskState

_SOME_TIME = datetime(2026, 1, 1, tzinfo=UTC)
_EXIT = re.compile(r"exit (\d+)")
_SIGNAL = re.compile(r"kill -(\d+) \$\$")


class FakeBackend:
    """Runs nothing. It understands `true`, `exit N` and `kill -N $$`; any other command runs until a test ends it."""

    def __init__(
        self,
        capacity: Resources | None = None,
        *,
        clock: Callable[[], datetime] = lambda: _SOME_TIME,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.total = capacity
        self.reachable = True
        self.slow_to_start = False  # tasks stay `starting` until `begin`
        self.waits = ""  # why tasks that are `starting` wait in a queue of the cluster's own
        self.about_at: datetime | None = None  # and when they are expected to start
        self.slow_to_stop = False  # stopped tasks run on until `end`
        self.taken_ports: set[int] = set()
        self.launches: list[Launch] = []  # every launch that was started, in order
        self.stops: list[str] = []
        self.held: dict[str, dict[str, TaskReport]] = {}  # handle -> task name -> its report
        self._clock = clock
        self._wake = wake
        self._tasks: dict[str, dict[str, TaskLaunch]] = {}

    def capacity(self) -> Resources | None:
        self._answer()
        return self.total

    def start(self, launch: Launch) -> None:
        self._answer()
        if launch.handle in self.held:
            return
        for task in launch.placement.tasks:
            if taken := self.taken_ports & set(task.ports):
                raise BusyError(f"port {min(taken)}, meant for {task.name}, is taken")
        self.launches.append(launch)
        self.held[launch.handle] = {
            task.name: TaskReport(name=task.name, state=TaskState.STARTING) for task in launch.tasks
        }
        self._tasks[launch.handle] = {task.name: task for task in launch.tasks}
        if not self.slow_to_start:
            self.begin(launch.handle)

    def report(self, handles: Collection[str]) -> Mapping[str, Report]:
        self._answer()
        return {handle: self._report(handle) for handle in handles if handle in self.held}

    def _report(self, handle: str) -> Report:
        tasks = tuple(self.held[handle].values())
        if self.waits and all(task.state is TaskState.STARTING for task in tasks):
            return Report(tasks=tasks, waits=self.waits, about_at=self.about_at)
        return Report(tasks=tasks)

    def stop(self, handle: str) -> None:
        self._answer()
        self.stops.append(handle)
        for task in list(self.held.get(handle, {}).values()):
            if task.state is TaskState.STARTING:
                self._end(handle, task.name, TaskState.FAILED, reason="stopped before it started")
            elif not task.state.ended and not self.slow_to_stop:
                self.end(handle, task.name, signal=15)
        self._wake()

    def clean(self, handles: Collection[str]) -> None:
        self._answer()
        for handle in handles:
            if self.running(handle):
                raise ConflictError(f"{handle} has not ended; stop it, and clean it once nothing of it runs")
        for handle in handles:
            self.held.pop(handle, None)

    def close(self) -> None:
        return

    @property
    def starts(self) -> list[str]:
        return [launch.handle for launch in self.launches]

    def running(self, handle: str) -> bool:
        return any(not task.state.ended for task in self.held.get(handle, {}).values())

    def begin(self, handle: str) -> None:
        """Let the tasks of a handle start."""
        for name, task in self.held[handle].items():
            if task.state is TaskState.STARTING:
                self.held[handle][name] = replace(task, state=TaskState.RUNNING, started_at=self._clock())
                self._obey(handle, name)
        self._wake()

    def end(
        self, handle: str, task: str | None = None, *, exit_code: int | None = None, signal: int | None = None
    ) -> None:
        """End one running task of a handle, or all of them; without a code or signal it succeeds."""
        if exit_code is None and signal is None:
            exit_code = 0
        state = TaskState.SUCCEEDED if exit_code == 0 else TaskState.FAILED
        for name in [task] if task else list(self.held[handle]):
            if not self.held[handle][name].state.ended:
                self._end(handle, name, state, exit_code=exit_code, signal=signal)
        self._wake()

    def fail(self, handle: str, task: str, *, exit_code: int | None = None, signal: int | None = None) -> None:
        """Let one running task fail, and start it again if it may be."""
        said, limit = self.held[handle][task], self._tasks[handle][task].restarts
        if said.restarts < limit:
            self.held[handle][task] = replace(said, restarts=said.restarts + 1)
            self._wake()
            self._obey(handle, task)
            return
        self.end(handle, task, exit_code=exit_code, signal=signal)
        if limit:
            reason = f"{self.held[handle][task].outcome}, after {limit} of {limit} restarts"
            self.held[handle][task] = replace(self.held[handle][task], reason=reason)

    def lose(self, handle: str, task: str | None = None) -> None:
        """One task, or all of them, vanish as with their node."""
        for name in [task] if task else list(self.held[handle]):
            if not self.held[handle][name].state.ended:
                self._end(handle, name, TaskState.LOST)
        self._wake()

    def forget(self, handle: str) -> None:
        """The handle is gone as if the machine had been set up anew."""
        self.held.pop(handle, None)

    def _answer(self) -> None:
        if not self.reachable:
            raise UnreachableError("the fake backend does not answer")

    def _obey(self, handle: str, name: str) -> None:
        command = self._tasks[handle][name].command
        if command in ("true", "exit 0"):
            self.end(handle, name)
        elif found := _EXIT.fullmatch(command):
            self.fail(handle, name, exit_code=int(found[1]))
        elif found := _SIGNAL.fullmatch(command):
            self.fail(handle, name, signal=int(found[1]))

    def _end(
        self,
        handle: str,
        name: str,
        state: TaskState,
        *,
        exit_code: int | None = None,
        signal: int | None = None,
        reason: str = "",
    ) -> None:
        self.held[handle][name] = replace(
            self.held[handle][name],
            state=state,
            exit_code=exit_code,
            signal=signal,
            reason=reason,
            ended_at=self._clock(),
        )
