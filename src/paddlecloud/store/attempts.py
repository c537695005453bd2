"""Attempts of jobs and their tasks: what backends may still hold, and what they last said.

What was once known of a task's end is never lost to a later report that knows less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import fields, replace
from sqlalchemy import Connection, Row, Update, bindparam, false, insert, select, true, update

from paddlecloud.model.job import Job
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.store.batches import batches
from paddlecloud.store.records import Values, cluster
from paddlecloud.store.schema import attempts, jobs, tasks

_SET_RUNNING = update(attempts).where(attempts.c.handle == bindparam("of")).values(running_at=bindparam("at"))
_SET_STOPPED = update(attempts).where(attempts.c.handle == bindparam("of")).values(stopped_at=bindparam("at"))
_SET_CLEANED = update(attempts).where(attempts.c.handle == bindparam("of")).values(cleaned=true())
_HELD = select(attempts).where(attempts.c.cleaned == false()).order_by(attempts.c.job, attempts.c.attempt)
_KNOWN_HANDLES = select(attempts.c.handle).where(attempts.c.handle.in_(bindparam("handles", expanding=True)))
_KNOWN_TASKS = select(tasks).where(tasks.c.handle.in_(bindparam("handles", expanding=True)))
_ADD_TASK = insert(tasks)
_SET_TASK = update(tasks).where(tasks.c.handle == bindparam("of"), tasks.c.name == bindparam("task"))
_FAILED_TASKS = (
    select(jobs.c.id, tasks.c.exit_code, tasks.c.signal)
    .join(attempts, (attempts.c.job == jobs.c.id) & (attempts.c.attempt == jobs.c.attempt))
    .join(tasks, tasks.c.handle == attempts.c.handle)
    .where(jobs.c.id.in_(bindparam("ids", expanding=True)), tasks.c.state == TaskState.FAILED.value)
    .order_by(jobs.c.id, tasks.c.ended_at, tasks.c.position)
)
_SIGNALLED = 128
_REPORTED = [field.name for field in fields(TaskReport)]
_DECIDED = frozenset({TaskState.SUCCEEDED, TaskState.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An attempt that has not been cleaned: its backend may still hold something of it."""

    handle: str
    cluster: str
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One attempt of a job, and when it ran."""

    attempt: int
    handle: str
    cluster: str
    running_at: datetime | None
    stopped_at: datetime | None


def row(job: Job) -> Values:
    """The row of an attempt that was just placed."""
    return {
        "job": job.id,
        "attempt": job.attempt,
        "handle": job.handle,
        "cluster": cluster(job),
        "user": job.user,
    }


def set_running(connection: Connection, running: Iterable[tuple[str, datetime]]) -> None:
    """These handles run since these times."""
    _set_times(connection, _SET_RUNNING, running)


def set_stopped(connection: Connection, stopped: Iterable[tuple[str, datetime]]) -> None:
    """These handles have run until these times."""
    _set_times(connection, _SET_STOPPED, stopped)


def held(connection: Connection) -> list[Held]:
    return [Held(handle=row.handle, cluster=row.cluster, job=row.job) for row in connection.execute(_HELD)]


def set_cleaned(connection: Connection, handles: Iterable[str]) -> None:
    rows = [{"of": handle} for handle in handles]
    if rows:
        connection.execute(_SET_CLEANED, rows)


def latest_tasks(connection: Connection, job: str) -> list[TaskReport]:
    """The tasks of the job's newest attempt, in the order its backend names them."""
    newest = (
        select(attempts.c.handle).where(attempts.c.job == job).order_by(attempts.c.attempt.desc()).limit(1)
    ).scalar_subquery()
    query = select(tasks).where(tasks.c.handle == newest).order_by(tasks.c.position)
    return [_report(found) for found in connection.execute(query)]


def tasks_of(connection: Connection, handle: str) -> list[TaskReport]:
    """The tasks of one attempt, in the order its backend names them."""
    query = select(tasks).where(tasks.c.handle == handle).order_by(tasks.c.position)
    return [_report(found) for found in connection.execute(query)]


def spans(connection: Connection, job: str) -> list[Span]:
    """The attempts of a job, oldest first, and when each ran."""
    query = select(attempts).where(attempts.c.job == job).order_by(attempts.c.attempt)
    return [
        Span(
            attempt=found.attempt,
            handle=found.handle,
            cluster=found.cluster,
            running_at=found.running_at,
            stopped_at=found.stopped_at,
        )
        for found in connection.execute(query)
    ]


def exit_codes(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """Of each of these jobs, what the first task to fail in its newest attempt ended with, as a shell tells it."""
    found: dict[str, int] = {}
    for some in batches(ids):
        for job, code, signal in connection.execute(_FAILED_TASKS, {"ids": some}):
            told = code if signal is None else _SIGNALLED + signal
            if told is not None:
                found.setdefault(job, told)
    return found


def record(connection: Connection, reports: Mapping[str, Report]) -> None:
    """Write what these reports add; handles that no attempt has are left out."""
    if not reports:
        return
    known = _known_tasks(connection, reports)
    added: list[Values] = []
    changed: list[Values] = []
    for handle, before in known.items():
        for position, said in enumerate(reports[handle].tasks):
            earlier = before.get(said.name)
            if earlier is None:
                added.append({"handle": handle, "position": position} | _columns(said))
            elif (now_known := merged(earlier, said)) != earlier:
                changed.append({"of": handle, "task": said.name} | _columns(now_known))
    if added:
        connection.execute(_ADD_TASK, added)
    if changed:
        connection.execute(_SET_TASK, changed)


def merged(known: TaskReport, said: TaskReport) -> TaskReport:
    """What is known of a task after its backend said `said`: first times stay, and so does a decided end.

    A restart begins a new run: of the runs before it only the first start is kept.
    """
    started_at = known.started_at or said.started_at
    if said.restarts > known.restarts:
        return replace(said, started_at=started_at)
    if known.state in _DECIDED and said.state not in _DECIDED:
        return replace(known, started_at=started_at)
    ended_at = known.ended_at or said.ended_at
    times = replace(said, started_at=started_at, ended_at=ended_at, restarts=known.restarts)
    if known.state is not said.state:
        return times
    return replace(
        times,
        exit_code=known.exit_code if said.exit_code is None else said.exit_code,
        signal=known.signal if said.signal is None else said.signal,
        reason=said.reason or known.reason,
        tail=said.tail or known.tail,
    )


def _set_times(connection: Connection, statement: Update, times: Iterable[tuple[str, datetime]]) -> None:
    rows = [{"of": handle, "at": at} for handle, at in times]
    if rows:
        connection.execute(statement, rows)


def _known_tasks(connection: Connection, reports: Mapping[str, Report]) -> dict[str, dict[str, TaskReport]]:
    """By handle and name, the tasks recorded so far of those reports whose attempt exists."""
    found: dict[str, dict[str, TaskReport]] = {}
    for some in batches(list(reports)):
        for handle in connection.execute(_KNOWN_HANDLES, {"handles": some}).scalars():
            found[handle] = {}
        for task in connection.execute(_KNOWN_TASKS, {"handles": some}):
            found[task.handle][task.name] = _report(task)
    return found


def _columns(report: TaskReport) -> Values:
    return {field: getattr(report, field) for field in _REPORTED} | {"state": report.state.value}


def _report(found: Row[Any]) -> TaskReport:
    return TaskReport(
        name=found.name,
        state=TaskState(found.state),
        exit_code=found.exit_code,
        signal=found.signal,
        reason=found.reason,
        started_at=found.started_at,
        ended_at=found.ended_at,
        restarts=found.restarts,
        quiet_since=found.quiet_since,
        tail=found.tail,
    )
