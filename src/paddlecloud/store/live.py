"""Caches the jobs that are not in a final state, updated from the history of moves.

A scheduling round examines all of them, but in a queue of thousands few have changed since the last round. Waiting
reasons change without a move: the scheduler reports them to the same object.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Row, bindparam, select

from paddlecloud.model.job import Job
from paddlecloud.model.state import FINAL, LIVE, JobState
from paddlecloud.store import history, records
from paddlecloud.store.db import Database
from paddlecloud.store.schema import history as history_table
from paddlecloud.store.schema import jobs as job_table

_ALL = select(job_table).where(job_table.c.state.in_([state.value for state in LIVE])).order_by(job_table.c.seq)
_MOVED = (
    select(job_table)
    .where(job_table.c.id.in_(select(history_table.c.job).where(history_table.c.seq > bindparam("seen"))))
    .order_by(job_table.c.seq)
)


class LiveJobs:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._known: dict[str, Job] = {}  # in order of submission
        self._last_event = -1  # number of the newest event applied here

    def list(self) -> builtins.list[Job]:
        """All live jobs as they are now, oldest first."""
        with self._lock:
            with self._db.read() as connection:
                newest = history.last(connection)
                if newest != self._last_event:
                    query = _ALL if self._last_event < 0 else _MOVED
                    for row in connection.execute(query, {} if self._last_event < 0 else {"seen": self._last_event}):
                        self._apply(row)
            self._last_event = newest
            return builtins.list(self._known.values())

    def moved(self, jobs: Iterable[Job]) -> None:
        """Update the cache with moves that were just written, unless it has a newer version."""
        with self._lock:
            for job in jobs:
                if job.id not in self._known or self._known[job.id].version >= job.version:
                    continue
                if job.state.final:
                    del self._known[job.id]
                else:
                    self._known[job.id] = job

    def told(self, reasons: Mapping[str, str], states: Collection[JobState]) -> None:
        with self._lock:
            for job_id, reason in reasons.items():
                known = self._known.get(job_id)
                if known is not None and known.state in states:
                    self._known[job_id] = replace(known, queue_reason=reason)

    def _apply(self, row: Row[Any]) -> None:
        known = self._known.get(row.id)
        if row.state in FINAL:
            self._known.pop(row.id, None)
        elif known is None or known.version != row.version:
            self._known[row.id] = records.job(row, known.spec if known else None)
