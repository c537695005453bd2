"""What a task's folder says, as a report."""

from __future__ import annotations

from datetime import UTC, datetime

from paddlecloud.model.task import BUILDING, TaskReport, TaskState
from paddlecloud.runtime.folder import Begun, Ended, SoFar


def running(name: str, begun: Begun, so_far: SoFar) -> TaskReport:
    """Of a task that was begun: until its environment is built, its program has not."""
    if so_far.building:
        return TaskReport(name=name, state=TaskState.STARTING, reason=f"{BUILDING}: {so_far.building}")
    return TaskReport(
        name=name,
        state=TaskState.RUNNING,
        started_at=_time(so_far.started_at(begun.started_at)),
        restarts=so_far.restarts,
        quiet_since=_time(so_far.quiet_since),
    )


def ended(name: str, ended: Ended) -> TaskReport:
    finished = TaskState.SUCCEEDED if ended.exit_code == 0 else TaskState.FAILED
    return TaskReport(
        name=name,
        state=TaskState.LOST if ended.lost else finished,
        exit_code=ended.exit_code,
        signal=ended.signal,
        reason=ended.reason,
        started_at=_time(ended.started_at),
        ended_at=_time(ended.ended_at),
        restarts=ended.restarts,
        tail=ended.tail,
    )


def by_role_and_number(name: str) -> tuple[str, int]:
    """The order that tasks are reported in."""
    role, _, number = name.rpartition("-")
    return role, int(number) if number.isdigit() else 0


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
