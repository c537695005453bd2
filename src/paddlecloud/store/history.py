"""What happened to jobs, in order: one row for every move, written in the same transaction as the move."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, func, select

from paddlecloud.model.job import Job, Moved
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import JobState
from paddlecloud.store.records import Values
from paddlecloud.store.schema import history


def submitted(job: Job) -> Values:
    """The row that opens a job's history."""
    return {
        "job": job.id,
        "user": job.user,
        "attempt": job.attempt,
        "at": job.created_at,
        "from_state": None,
        "to_state": job.state.value,
        "why": "submitted",
    }


def moved(before: Job, after: Job, move: Move) -> Values:
    return {
        "job": after.id,
        "user": after.user,
        "attempt": after.attempt,
        "at": move.at,
        "from_state": before.state.value,
        "to_state": after.state.value,
        "why": move.why,
    }


def of_job(connection: Connection, job: str) -> list[Moved]:
    return [_moved(row) for row in connection.execute(select(history).where(history.c.job == job).order_by("seq"))]


def after(connection: Connection, seq: int, user: str | None, limit: int) -> list[Moved]:
    query = select(history).where(history.c.seq > seq).order_by(history.c.seq).limit(limit)
    if user is not None:
        query = query.where(history.c.user == user)
    return [_moved(row) for row in connection.execute(query)]


def last(connection: Connection) -> int:
    """The number of the newest event; 0: there is none yet."""
    newest: int | None = connection.execute(select(func.max(history.c.seq))).scalar_one()
    return newest or 0


def _moved(row: Row[Any]) -> Moved:
    return Moved(
        seq=row.seq,
        job=row.job,
        user=row.user,
        attempt=row.attempt,
        at=row.at,
        from_state=None if row.from_state is None else JobState(row.from_state),
        to_state=JobState(row.to_state),
        why=row.why,
    )
