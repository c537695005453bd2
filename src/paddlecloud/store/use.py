"""Computes users' usage from the records, by cluster: how long jobs ran in a day, and how many wait."""

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
        """How long stopped attempts ran between two times, by user and cluster.

        An attempt counts from its job's move to `running` until nothing of it runs any more. `killing` is included,
        since a task may ignore the request to stop. Only the part between the two times counts.
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
        """The number of the user's waiting jobs, by requested cluster."""
        query = (
            select(job_table.c.cluster, func.count().label("count"))
            .where(job_table.c.user == user, job_table.c.state.in_([state.value for state in WAITING]))
            .group_by(job_table.c.cluster)
        )
        with self._db.read() as connection:
            return {row.cluster: int(row[1]) for row in connection.execute(query)}


class UseOfDay:
    """Caches how long users' jobs ran today.

    Each round asks for every waiting user; only users with a newly stopped attempt are read again.
    """

    def __init__(self, db: Database, use: UseRecords) -> None:
        self._db = db
        self._use = use
        self._lock = threading.Lock()
        self._day: tuple[datetime, datetime] | None = None
        self._event = 0  # `_cached` includes all events up to this one
        self._cached: dict[str, Mapping[str, float]] = {}

    def seconds(self, users: Collection[str], start: datetime, end: datetime) -> Mapping[str, Mapping[str, float]]:
        """See UseRecords.seconds."""
        with self._lock:
            event = self._forget_stopped()
            if self._day != (start, end):
                self._day, self._cached = (start, end), {}
            unknown = [user for user in users if user not in self._cached]
            read = self._use.seconds(unknown, start, end) if unknown else {}
            self._cached.update((user, read.get(user, {})) for user in unknown)
            self._event = event
            return {user: self._cached[user] for user in users}

    def _forget_stopped(self) -> int:
        """Drop users with a newly stopped attempt; return the newest event, read first so that no event is missed."""
        with self._db.read() as connection:
            newest = newest_event(connection)
            if self._cached and newest > self._event:
                stopped = select(history.c.user).where(history.c.from_state.in_(_RUN)).distinct()
                for user in connection.execute(stopped.where(history.c.seq > self._event)).scalars():
                    self._cached.pop(user, None)
        return newest


def _later(column: ColumnElement[Any], moment: datetime) -> ColumnElement[Any]:
    return case((column < moment, literal(moment, UtcTime)), else_=column)


def _earlier(column: ColumnElement[Any], moment: datetime) -> ColumnElement[Any]:
    return case((column > moment, literal(moment, UtcTime)), else_=column)


class _SecondsBetween(FunctionElement[float]):
    """The seconds between two times; the two databases share no expression for it."""

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
