"""What a backend says about the tasks of a job."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from paddlecloud.model.state import StopReason

BUILDING = "building packages"  # what a reason begins with while a job's environment is built


class TaskState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"  # gone without a word: its node, or what watched it, died

    @property
    def ended(self) -> bool:
        return self not in (TaskState.STARTING, TaskState.RUNNING)


class TaskReport(Struct, frozen=True, kw_only=True):
    """One task as its backend sees it. `tail` is the last lines of its log, once it has failed."""

    name: str
    state: TaskState
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    restarts: int = 0
    quiet_since: datetime | None = None  # it runs, but writes no log and uses neither CPU nor GPU
    tail: str = ""

    @property
    def building(self) -> str:
        """What is built before its program begins; "": nothing."""
        return self.reason if self.state is TaskState.STARTING else ""

    @property
    def outcome(self) -> str:
        """How it ended, in words: "exit code 3", "killed by SIGSEGV (segmentation fault)", "out of memory"."""
        if self.reason:
            return self.reason
        if self.signal is not None:
            return f"killed by {describe_signal(self.signal)}"
        if self.exit_code is not None and self.exit_code > 128 and _known(self.exit_code - 128):
            # A shell reports its child's signal this way.
            return f"exit code {self.exit_code}: {describe_signal(self.exit_code - 128)}"
        if self.exit_code is not None:
            return f"exit code {self.exit_code}"
        return self.state.value


class Report(Struct, frozen=True, kw_only=True):
    """All tasks of one handle, at one look; and what a cluster with a queue of its own says of them together."""

    tasks: tuple[TaskReport, ...]
    waits: str = ""  # why that cluster has not started it yet
    about_at: datetime | None = None  # when it expects to
    stop: StopReason | None = None  # the cluster itself has ended it, for this
    why: str = ""

    @property
    def started(self) -> bool:
        return all(task.state is not TaskState.STARTING for task in self.tasks)

    @property
    def building(self) -> str:
        """What is built before its programs begin; "": nothing."""
        return next((task.building for task in self.tasks if task.building), "")

    @property
    def ended(self) -> bool:
        return all(task.state.ended for task in self.tasks)

    @property
    def started_at(self) -> datetime | None:
        """When the last of its tasks had started."""
        times = [task.started_at for task in self.tasks if task.started_at is not None]
        return max(times, default=None)


# Linux's, where tasks run: other systems of clients have other numbers, or none.
_SIGNALS = (
    "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG "
    "XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
).split()
_WORDS = {
    "SIGSEGV": "segmentation fault",
    "SIGABRT": "abort",
    "SIGFPE": "floating point error",
    "SIGBUS": "bus error",
    "SIGILL": "illegal instruction",
    "SIGPIPE": "broken pipe",
}


def signal_number(name: str) -> int:
    """Of a signal by its name on Linux, such as "KILL"."""
    return _SIGNALS.index(name) + 1


def describe_signal(number: int) -> str:
    if not _known(number):
        return f"signal {number}"
    name = f"SIG{_SIGNALS[number - 1]}"
    words = _WORDS.get(name)
    return f"{name} ({words})" if words else name


def _known(number: int) -> bool:
    return 0 < number <= len(_SIGNALS)
