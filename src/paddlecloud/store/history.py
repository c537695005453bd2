"""Records every state change (move) of a job, in the same transaction as the move."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, Row, bindparam, func, select

from paddlecloud.model.job import Job, Moved
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import JobState
from paddlecloud.store.records import Values
from paddlecloud.store.schema import history

_OF_JOB = select(history).where(history.c.job == bindparam("of")).order_by(history.c.seq)
_AFTER = select(history).where(history.c.seq > bindparam("seen")).order_by(history.c.seq).limit(bindparam("most"))
_AFTER_OF_USER = _AFTER.where(history.c.user == bindparam("whose"))
_LAST = select(func.max(history.c.seq))


def submitted(job: Job) -> Values:
    """The first row of a job's history."""
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
    """Its times never go back: a task may have ended on its node before the stop of its job was recorded here."""
    rows = [_moved(row) for row in connection.execute(_OF_JOB, {"of": job})]
    latest = accumulate((row.at for row in rows), max)
    return [replace(row, at=at) for row, at in zip(rows, latest, strict=True)]


def after(connection: Connection, seq: int, user: str | None, limit: int) -> list[Moved]:
    query = _AFTER if user is None else _AFTER_OF_USER
    return [_moved(row) for row in connection.execute(query, {"seen": seq, "whose": user, "most": limit})]


def last(connection: Connection) -> int:
    """The number of the newest event; 0 if there are no events yet."""
    newest: int | None = connection.execute(_LAST).scalar_one()
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
