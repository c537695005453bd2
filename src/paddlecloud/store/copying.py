"""Copies all records from one database to another of either kind, in the caller's transaction.

Invariant: the copy is complete, or nothing is changed.
Tables are read from the source as they are, so records of an older revision can be copied too. Row number counters are
copied as well, so that an event's number is never reused, even after the event was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, RowMapping, Table, func, insert, inspect, select, text

from paddlecloud.model.errors import InternalError
from paddlecloud.store.migrations import VERSION_TABLE

Progress = Callable[[int, int], None]  # rows done, rows in total

_SERIAL_COLUMN = "seq"  # numbered by the database in every table that has it
_ROWS_PER_BATCH = 1000


def rows(connection: Connection) -> dict[str, int]:
    """Row counts by table, in alphabetical order."""
    counts = {table.name: _count(connection, table) for table in _tables(connection)}
    return dict(sorted(counts.items()))


def replace(source: Connection, target: Connection, progress: Progress) -> dict[str, int]:
    """Replace the target's records with those of the source, which has the same revision; return the row counts."""
    theirs, ours = _tables(source), _tables(target)
    if {table.name for table in theirs} != {table.name for table in ours}:
        raise InternalError(f"cannot copy records: tables {theirs} and {ours} differ; nothing was changed")
    for table in reversed(ours):
        target.execute(table.delete())
    counts = rows(source)
    of_source = {table.name: table for table in theirs}
    done = 0
    for table in ours:
        for piece in _pieces(source, of_source[table.name]):
            target.execute(insert(table), [dict(row) for row in piece])
            done += len(piece)
            progress(done, sum(counts.values()))
        _set_last_number(target, table, _last_number(source, table))
    arrived = rows(target)
    if arrived != counts:
        raise InternalError(f"cannot copy records: copied {arrived} of {counts} rows; nothing was changed")
    return counts


def _tables(connection: Connection) -> list[Table]:
    """Every table of records, each after the tables that it references."""
    found = MetaData()
    found.reflect(connection, only=[name for name in inspect(connection).get_table_names() if name != VERSION_TABLE])
    return found.sorted_tables


def _count(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def _pieces(source: Connection, table: Table) -> Iterator[Sequence[RowMapping]]:
    with source.execution_options(yield_per=_ROWS_PER_BATCH).execute(select(table)) as found:
        yield from found.mappings().partitions()


def _last_number(source: Connection, table: Table) -> int:
    """The last number assigned, including deleted rows; 0 if there was none."""
    if _SERIAL_COLUMN not in table.c:
        return 0
    if source.dialect.name == "sqlite":
        query = text("SELECT seq FROM sqlite_sequence WHERE name = :table").bindparams(table=table.name)
    else:
        query = text(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {_sequence(source, table)}")
    last: int | None = source.execute(query).scalar()
    return last or 0


def _set_last_number(target: Connection, table: Table, last: int) -> None:
    if _SERIAL_COLUMN not in table.c:
        return
    if target.dialect.name == "sqlite":
        target.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), {"table": table.name})
        if last:
            statement = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)")
            target.execute(statement, {"table": table.name, "last": last})
    else:
        given: dict[str, Any] = {"sequence": _sequence(target, table), "last": max(last, 1), "used": last > 0}
        target.execute(text("SELECT setval(:sequence, :last, :used)"), given)


def _sequence(connection: Connection, table: Table) -> str:
    query = text("SELECT pg_get_serial_sequence(:table, :column)")
    found: str = connection.execute(query, {"table": table.name, "column": _SERIAL_COLUMN}).scalar_one()
    return found
