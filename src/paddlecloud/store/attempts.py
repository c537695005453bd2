"""Records jobs' attempts and their tasks, as last reported by the backends.

Invariant: once a task's end is known, a later report that knows less never erases it.
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
_NOT_CLEANED = select(attempts).where(attempts.c.cleaned == false()).order_by(attempts.c.job, attempts.c.attempt)
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
_SIGNAL_EXIT_BASE = 128  # a shell reports a signal as 128 plus its number
_REPORTED = [field.name for field in fields(TaskReport)]
_DECIDED = frozenset({TaskState.SUCCEEDED, TaskState.FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An attempt that is not cleaned up: its backend may still hold traces of it."""

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
    """The row of a newly placed attempt."""
    return {
        "job": job.id,
        "attempt": job.attempt,
        "handle": job.handle,
        "cluster": cluster(job),
        "user": job.user,
    }


def set_running(connection: Connection, running: Iterable[tuple[str, datetime]]) -> None:
    """Record since when these handles run."""
    _set_times(connection, _SET_RUNNING, running)


def set_stopped(connection: Connection, stopped: Iterable[tuple[str, datetime]]) -> None:
    """Record when these handles stopped running."""
    _set_times(connection, _SET_STOPPED, stopped)


def held(connection: Connection) -> list[Held]:
    return [Held(handle=row.handle, cluster=row.cluster, job=row.job) for row in connection.execute(_NOT_CLEANED)]


def set_cleaned(connection: Connection, handles: Iterable[str]) -> None:
    rows = [{"of": handle} for handle in handles]
    if rows:
        connection.execute(_SET_CLEANED, rows)


def latest_tasks(connection: Connection, job: str) -> list[TaskReport]:
    """The tasks of the job's newest attempt, in the backend's order."""
    newest = (
        select(attempts.c.handle).where(attempts.c.job == job).order_by(attempts.c.attempt.desc()).limit(1)
    ).scalar_subquery()
    query = select(tasks).where(tasks.c.handle == newest).order_by(tasks.c.position)
    return [_report(found) for found in connection.execute(query)]


def tasks_of(connection: Connection, handle: str) -> list[TaskReport]:
    """The tasks of one attempt, in the backend's order."""
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
    """By job, the exit code of the first task that failed in its newest attempt, as a shell reports it."""
    found: dict[str, int] = {}
    for some in batches(ids):
        for job, code, signal in connection.execute(_FAILED_TASKS, {"ids": some}):
            exit_code = code if signal is None else _SIGNAL_EXIT_BASE + signal
            if exit_code is not None:
                found.setdefault(job, exit_code)
    return found


def record(connection: Connection, reports: Mapping[str, Report]) -> None:
    """Write what is new in these reports; handles without an attempt are ignored."""
    if not reports:
        return
    known = _known_tasks(connection, reports)
    added: list[Values] = []
    changed: list[Values] = []
    for handle, known_by_name in known.items():
        for position, reported in enumerate(reports[handle].tasks):
            earlier = known_by_name.get(reported.name)
            if earlier is None:
                added.append({"handle": handle, "position": position} | _columns(reported))
            elif (now_known := merged(earlier, reported)) != earlier:
                changed.append({"of": handle, "task": reported.name} | _columns(now_known))
    if added:
        connection.execute(_ADD_TASK, added)
    if changed:
        connection.execute(_SET_TASK, changed)


def merged(known: TaskReport, said: TaskReport) -> TaskReport:
    """Merge a new report into what is known of a task: first times stay, and so does a known end.

    A restart begins a new run: of earlier runs only the first start time is kept.
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
    """Recorded tasks by handle and name, for reports whose attempt exists."""
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
