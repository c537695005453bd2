"""What users have used: how long their jobs ran in a day, and how many wait; from the records, by cluster."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Float, case, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from paddlecloud.model.state import WAITING, JobState
from paddlecloud.store.batches import batches
from paddlecloud.store.columns import UtcTime
from paddlecloud.store.db import Database
from paddlecloud.store.history import last as newest_event
from paddlecloud.store.schema import attempts, history
from paddlecloud.store.schema import jobs as job_table

_RUN = (JobState.RUNNING.value, JobState.KILLING.value)


class UseRecords:
    def __init__(self, db: Database) -> None:
        self._db = db

    def seconds(self, users: Collection[str], start: datetime, end: datetime) -> Mapping[str, Mapping[str, float]]:
        """By user and cluster, how long attempts that have stopped ran between two times.

        An attempt counts from its job's move to `running` until nothing of it runs any more, `killing` included: a task
        may go on as if nothing were asked of it. Of that only the part between counts.
        """
        begun, stopped = _later(attempts.c.running_at, start), _earlier(attempts.c.stopped_at, end)
        query = (
            select(attempts.c.user, attempts.c.cluster, func.sum(_SecondsBetween(begun, stopped)).label("seconds"))
            .where(attempts.c.stopped_at > start, attempts.c.running_at < end)
            .where(attempts.c.running_at < attempts.c.stopped_at)
            .group_by(attempts.c.user, attempts.c.cluster)
        )
        found: dict[str, dict[str, float]] = {}
        with self._db.read() as connection:
            for some in batches(sorted(users)):
                for row in connection.execute(query.where(attempts.c.user.in_(some))):
                    found.setdefault(row.user, {})[row.cluster] = float(row.seconds)
        return found

    def waiting(self, user: str) -> Mapping[str, int]:
        """By the cluster that was asked for, how many of the user's jobs wait."""
        query = (
            select(job_table.c.cluster, func.count().label("count"))
            .where(job_table.c.user == user, job_table.c.state.in_([state.value for state in WAITING]))
            .group_by(job_table.c.cluster)
        )
        with self._db.read() as connection:
            return {row.cluster: int(row[1]) for row in connection.execute(query)}


class UseOfDay:
    """How long users' jobs ran in the day that it is, kept in mind.

    A round asks for everybody who waits: only those of whom an attempt has stopped since the last time are read again.
    """

    def __init__(self, db: Database, use: UseRecords) -> None:
        self._db = db
        self._use = use
        self._lock = threading.Lock()
        self._day: tuple[datetime, datetime] | None = None
        self._event = 0  # what happened up to this one is in `_known`
        self._known: dict[str, Mapping[str, float]] = {}

    def seconds(self, users: Collection[str], start: datetime, end: datetime) -> Mapping[str, Mapping[str, float]]:
        """As UseRecords.seconds says."""
        with self._lock:
            event = self._forget_stopped()
            if self._day != (start, end):
                self._day, self._known = (start, end), {}
            unknown = [user for user in users if user not in self._known]
            read = self._use.seconds(unknown, start, end) if unknown else {}
            self._known.update((user, read.get(user, {})) for user in unknown)
            self._event = event
            return {user: self._known[user] for user in users}

    def _forget_stopped(self) -> int:
        """Forget those of whom an attempt has stopped; the newest event. It is read first, so none is missed."""
        with self._db.read() as connection:
            newest = newest_event(connection)
            if self._known and newest > self._event:
                stopped = select(history.c.user).where(history.c.from_state.in_(_RUN)).distinct()
                for user in connection.execute(stopped.where(history.c.seq > self._event)).scalars():
                    self._known.pop(user, None)
        return newest


def _later(column: ColumnElement[Any], moment: datetime) -> ColumnElement[Any]:
    return case((column < moment, literal(moment, UtcTime)), else_=column)


def _earlier(column: ColumnElement[Any], moment: datetime) -> ColumnElement[Any]:
    return case((column > moment, literal(moment, UtcTime)), else_=column)


class _SecondsBetween(FunctionElement[float]):
    """Two times apart; the two databases have no expression for it in common."""

    type = Float()
    name = "seconds_between"
    inherit_cache = True


@compiles(_SecondsBetween, "sqlite")
def _in_sqlite(element: _SecondsBetween, compiler: SQLCompiler, **options: Any) -> str:
    start, end = (compiler.process(clause, **options) for clause in element.clauses)
    return f"(julianday({end}) - julianday({start})) * 86400.0"


@compiles(_SecondsBetween, "postgresql")
def _in_postgresql(element: _SecondsBetween, compiler: SQLCompiler, **options: Any) -> str:
    start, end = (compiler.process(clause, **options) for clause in element.clauses)
    return f"EXTRACT(EPOCH FROM ({end}) - ({start}))"
