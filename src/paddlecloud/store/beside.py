"""A row that goes into the next write of this thread, in the same transaction.

So what is done and the record of who did it are kept together or not at all, and the functions that do it need not
know who asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sqlalchemy import Connection, Table, insert

from paddlecloud.store.records import Values


@dataclass(slots=True)
class _Waiting:
    table: Table
    row: Values
    written: bool = False


_waiting: ContextVar[_Waiting | None] = ContextVar("beside", default=None)


@contextmanager
def beside(table: Table, row: Values) -> Iterator[None]:
    """Have the first write within, if there is one that is not taken back, put a row into this table too."""
    before = _waiting.set(_Waiting(table, row))
    try:
        yield
    finally:
        _waiting.reset(before)


def execute(connection: Connection) -> None:
    """At the end of a transaction: what waits."""
    waiting = _waiting.get()
    if waiting is not None and not waiting.written:
        connection.execute(insert(waiting.table), waiting.row)


def committed() -> None:
    """The transaction has come to its good end, and with it what was executed beside it."""
    if (waiting := _waiting.get()) is not None:
        waiting.written = True
