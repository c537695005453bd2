"""Records the audit log; entries are written in the same transaction as their action, and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, func, insert, or_, select

from paddlecloud.model.audit import Action, AuditEntry, AuditPage
from paddlecloud.model.errors import InvalidError
from paddlecloud.store import cursors
from paddlecloud.store.beside import beside
from paddlecloud.store.db import Database
from paddlecloud.store.records import Values
from paddlecloud.store.schema import audit as audit_table

PAGE_LIMIT = 1000
FORGOTTEN_AT_ONCE = 1000


class Audit:
    def __init__(self, db: Database) -> None:
        self._db = db

    def record(self, entry: AuditEntry) -> None:
        """Record an action that writes nothing else."""
        with self._db.write() as connection:
            connection.execute(insert(audit_table), _row(entry))

    def beside(self, entry: AuditEntry) -> AbstractContextManager[None]:
        """Record an action with the first write inside the block; without a write, nothing is recorded."""
        return beside(audit_table, _row(entry))

    def list(
        self,
        *,
        user: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> AuditPage:
        """List actions, newest first, by user, action and time. Filtering by `login` also matches `login.refused`."""
        if not 1 <= limit <= PAGE_LIMIT:
            raise InvalidError(f"invalid limit {limit}: use 1 to {PAGE_LIMIT}", field="limit")
        query = select(audit_table).order_by(audit_table.c.seq.desc()).limit(limit + 1)
        if user is not None:
            query = query.where(audit_table.c.user == user)
        if action is not None:
            column = audit_table.c.action
            query = query.where(or_(column == action, column.startswith(f"{action}.", autoescape=True)))
        if since is not None:
            query = query.where(audit_table.c.at >= since)
        if cursor is not None:
            query = query.where(audit_table.c.seq < cursors.read(cursor))
        with self._db.read() as connection:
            rows = connection.execute(query).all()
        return AuditPage(items=_entries(rows[:limit]), next_cursor=_next(rows, limit))

    def older(self, before: datetime) -> int:
        """The number of older entries."""
        with self._db.read() as connection:
            query = select(func.count()).select_from(audit_table).where(audit_table.c.at < before)
            return int(connection.execute(query).scalar_one())

    def forget(self, before: datetime, *, most: int = FORGOTTEN_AT_ONCE) -> int:
        """Delete at most `most` older entries, so that no other write waits long; return how many."""
        oldest = select(audit_table.c.seq).where(audit_table.c.at < before).order_by(audit_table.c.at).limit(most)
        with self._db.write() as connection:
            return connection.execute(delete(audit_table).where(audit_table.c.seq.in_(oldest))).rowcount


def _next(rows: Sequence[Row[Any]], limit: int) -> str | None:
    return cursors.write(rows[limit - 1].seq) if len(rows) > limit else None


def _row(entry: AuditEntry) -> Values:
    return {
        "at": entry.at,
        "user": entry.user,
        "address": entry.address,
        "action": entry.action.value,
        "target": entry.target,
        "request_id": entry.request_id,
        "detail": entry.detail,
    }


def _entries(rows: Sequence[Row[Any]]) -> tuple[AuditEntry, ...]:
    return tuple(
        AuditEntry(
            seq=row.seq,
            at=row.at,
            user=row.user,
            address=row.address,
            action=Action(row.action),
            target=row.target,
            request_id=row.request_id,
            detail=row.detail,
        )
        for row in rows
    )
