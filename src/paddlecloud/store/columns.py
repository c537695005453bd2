"""Column types that behave alike in SQLite and PostgreSQL."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Dialect, Integer, Text
from sqlalchemy.types import TypeDecorator


class UtcTime(TypeDecorator[datetime]):
    """A time with time zone, stored in UTC; rejects a naive time, since its moment is ambiguous."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no time zone: use an aware datetime")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class FreeText(TypeDecorator[str]):
    """Text written by a program or a person; replaces characters that would make a query fail.

    PostgreSQL rejects NUL and both databases reject lone surrogates; both become U+FFFD.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, _dialect: Dialect) -> str | None:
        return value if value is None or value.isprintable() else _UNSTORABLE.sub("\ufffd", value)


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

# SQLite numbers rows only in a column of exactly this type.
_Serial = BigInteger().with_variant(Integer, "sqlite")


def text(name: str, *arguments: Any, **options: Any) -> Column[Any]:
    return Column(name, FreeText, *arguments, nullable=False, **options)


def maybe_text(name: str) -> Column[Any]:
    return Column(name, FreeText, nullable=True)


def number(name: str, **options: Any) -> Column[Any]:
    return Column(name, Integer, nullable=False, **options)


def maybe_number(name: str) -> Column[Any]:
    return Column(name, Integer, nullable=True)


def time(name: str) -> Column[Any]:
    return Column(name, UtcTime, nullable=False)


def maybe_time(name: str) -> Column[Any]:
    return Column(name, UtcTime, nullable=True)


def serial(name: str) -> Column[Any]:
    return Column(name, _Serial, primary_key=True, autoincrement=True)
