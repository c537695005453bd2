"""Deletes the records of finished jobs.

Invariant: records of a job are deleted only here, all at once, and never while the job is live.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import Connection, case, delete, false, func, select

from paddlecloud.model.retention import TreeUse
from paddlecloud.model.state import FINAL, LIVE
from paddlecloud.store import buckets, configs
from paddlecloud.store.batches import batches
from paddlecloud.store.db import Database
from paddlecloud.store.schema import (
    attempts,
    history,
    idempotency,
    job_configs,
    job_secrets,
    job_tags,
    jobs,
    remains,
    tasks,
)

_FINAL = [state.value for state in FINAL]
_LIVE = [state.value for state in LIVE]


class Forgetting:
    def __init__(self, db: Database) -> None:
        self._db = db

    def forget(self, names: Sequence[str]) -> int:
        """Delete all records of these jobs in one transaction (pass only a few); return how many were deleted.

        A job that is live, or of which a backend may still hold traces, is skipped.
        """
        with self._db.write() as connection:
            done = _forgettable(connection, names)
            handles = select(attempts.c.handle).where(attempts.c.job.in_(done)).scalar_subquery()
            connection.execute(delete(tasks).where(tasks.c.handle.in_(handles)))
            for table in (attempts, history, idempotency, remains, job_configs, job_secrets, job_tags):
                connection.execute(delete(table).where(table.c.job.in_(done)))
            buckets.forget(connection, done)
            connection.execute(delete(jobs).where(jobs.c.id.in_(done)))
        return len(done)

    def forget_secrets(self) -> None:
        """Delete the secrets of jobs that ended without an attempt; other secrets are deleted with the last
        attempt."""
        with self._db.read() as connection:
            if connection.execute(select(job_secrets.c.job).limit(1)).first() is None:
                return
        with self._db.write() as connection:
            configs.forget_secrets(connection)

    def trees(self, user: str, names: Collection[str]) -> dict[str, TreeUse]:
        """How jobs use a user's uploaded folders; folders that no job ever named are left out."""
        query = select(
            jobs.c.tree,
            func.max(case((jobs.c.state.in_(_LIVE), 1), else_=0)).label("live"),
            func.max(jobs.c.created_at).label("submitted_at"),
            func.max(jobs.c.finished_at).label("ended_at"),
        ).group_by(jobs.c.tree)
        found: dict[str, TreeUse] = {}
        with self._db.read() as connection:
            for some in batches(list(names)):
                for row in connection.execute(query.where(jobs.c.user == user, jobs.c.tree.in_(some))):
                    found[row.tree] = TreeUse(live=bool(row.live), submitted_at=row.submitted_at, ended_at=row.ended_at)
        return found

    def oldest_job(self) -> datetime | None:
        with self._db.read() as connection:
            query = select(jobs.c.created_at).order_by(jobs.c.seq).limit(1)
            found: datetime | None = connection.execute(query).scalar()
        return found

    def database_bytes(self) -> int:
        """The size reported by a database server; 0 for a database file, whose size can be read directly."""
        with self._db.read() as connection:
            if connection.dialect.name != "postgresql":
                return 0
            return int(connection.execute(select(func.pg_database_size(func.current_database()))).scalar_one())


def _forgettable(connection: Connection, names: Sequence[str]) -> list[str]:
    held = select(attempts.c.job).where(attempts.c.job == jobs.c.id, attempts.c.cleaned == false()).exists()
    query = select(jobs.c.id).where(jobs.c.id.in_(names), jobs.c.state.in_(_FINAL), ~held)
    return list(connection.execute(query.with_for_update()).scalars())
