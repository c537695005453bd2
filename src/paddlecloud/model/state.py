"""The ten states of a job, every move between them, and what ends a job: the whole table on one page."""

from __future__ import annotations

from enum import StrEnum


class JobState(StrEnum):
    """Seed 002's words; `label` is how they print."""

    SUBMIT = "submit"
    QUEUE = "queue"
    SCHEDULE = "schedule"
    RUNNING = "running"
    KILLING = "killing"
    SUCCESS = "success"
    FAILED = "failed"
    TIMEOUT = "timeout"
    SCHEDULE_TIMEOUT = "schedule_timeout"
    KILLED = "killed"

    @property
    def label(self) -> str:
        return self.value.replace("_", " ")

    @property
    def final(self) -> bool:
        return not MOVES[self]

    @property
    def waiting(self) -> bool:
        return self in WAITING

    @property
    def held(self) -> bool:
        """Whether a backend may hold something for a job in this state."""
        return self in HELD


class StopReason(StrEnum):
    """Why a job is being stopped; it decides the state that `killing` ends in."""

    ASKED = "asked"
    DONE = "done"
    TASK_FAILED = "task_failed"
    RESTART_ME = "restart_me"  # a task ended with the exit code that asks for another attempt
    NODE_LOST = "node_lost"
    PREEMPTED = "preempted"
    WALL_TIME = "wall_time"
    HUNG = "hung"
    MOVED_ON = "moved_on"  # another cluster of its list may start it sooner
    QUEUE_TIME = "queue_time"


_S = JobState

MOVES: dict[JobState, frozenset[JobState]] = {
    _S.SUBMIT: frozenset({_S.QUEUE, _S.SCHEDULE, _S.SCHEDULE_TIMEOUT, _S.KILLED}),
    _S.QUEUE: frozenset({_S.SCHEDULE, _S.SCHEDULE_TIMEOUT, _S.KILLED}),
    _S.SCHEDULE: frozenset({_S.RUNNING, _S.KILLING, _S.FAILED, _S.QUEUE}),
    _S.RUNNING: frozenset({_S.RUNNING, _S.SUCCESS, _S.FAILED, _S.KILLING, _S.QUEUE}),
    _S.KILLING: frozenset({_S.SUCCESS, _S.FAILED, _S.TIMEOUT, _S.SCHEDULE_TIMEOUT, _S.KILLED, _S.QUEUE}),
    _S.SUCCESS: frozenset(),
    _S.FAILED: frozenset(),
    _S.TIMEOUT: frozenset(),
    _S.SCHEDULE_TIMEOUT: frozenset(),
    _S.KILLED: frozenset(),
}

# A job that stops for one of these is started again, as often as its `retry` says.
RETRIED = frozenset({StopReason.TASK_FAILED, StopReason.RESTART_ME, StopReason.NODE_LOST, StopReason.PREEMPTED})

ENDS: dict[StopReason, JobState] = {
    StopReason.ASKED: _S.KILLED,
    StopReason.DONE: _S.SUCCESS,
    StopReason.TASK_FAILED: _S.FAILED,
    StopReason.RESTART_ME: _S.FAILED,
    StopReason.NODE_LOST: _S.FAILED,
    StopReason.PREEMPTED: _S.FAILED,
    StopReason.WALL_TIME: _S.TIMEOUT,
    StopReason.HUNG: _S.FAILED,
    StopReason.QUEUE_TIME: _S.SCHEDULE_TIMEOUT,
    StopReason.MOVED_ON: _S.QUEUE,
}

WAITING = frozenset({_S.SUBMIT, _S.QUEUE})
HELD = frozenset({_S.SCHEDULE, _S.RUNNING, _S.KILLING})
LIVE = WAITING | HELD
FINAL = frozenset(_S) - LIVE
