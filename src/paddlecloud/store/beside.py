"""Adds a row to this thread's next write, in the same transaction.

Invariant: an action and the record of who did it are saved together or not at all. The functions that perform the
action need not know who requested it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sqlalchemy import Connection, Table, insert

from paddlecloud.store.records import Values


@dataclass(slots=True)
class _PendingRow:
    table: Table
    row: Values
    written: bool = False


_pending: ContextVar[_PendingRow | None] = ContextVar("beside", default=None)


@contextmanager
def beside(table: Table, row: Values) -> Iterator[None]:
    """Insert a row into this table together with the first write inside the block that commits."""
    before = _pending.set(_PendingRow(table, row))
    try:
        yield
    finally:
        _pending.reset(before)


def execute(connection: Connection) -> None:
    """Insert the pending row; called at the end of each transaction."""
    pending = _pending.get()
    if pending is not None and not pending.written:
        connection.execute(insert(pending.table), pending.row)


def committed() -> None:
    """Mark the pending row as written; called after a commit."""
    if (pending := _pending.get()) is not None:
        pending.written = True
