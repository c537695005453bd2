"""Records the size of users' homes in each datacenter: counted from time to time, and updated in between."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, ColumnElement, Row, case, insert, select, update

from paddlecloud.store.db import Database
from paddlecloud.store.schema import pfs_use


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeUse:
    """A home's size: the count at `counted_at` plus the changes since."""

    datacenter: str
    size_bytes: int
    files: int
    counted_at: datetime


class PfsUse:
    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, user: str, datacenter: str) -> HomeUse | None:
        """Return None if the home was never counted or changed."""
        return next((one for one in self.of(user) if one.datacenter == datacenter), None)

    def of(self, user: str) -> builtins.list[HomeUse]:
        """A user's homes, by datacenter."""
        query = select(pfs_use).where(pfs_use.c.user == user).order_by(pfs_use.c.datacenter)
        with self._db.read() as connection:
            return [_use(row) for row in connection.execute(query)]

    def put(self, user: str, datacenter: str, *, size_bytes: int, files: int, at: datetime) -> None:
        """Record a new count, replacing what was known."""
        counted = {"size_bytes": size_bytes, "files": files, "counted_at": at}
        self._set(user, datacenter, counted, counted)

    def add(self, user: str, datacenter: str, *, size_bytes: int, files: int, at: datetime) -> None:
        """Add a change, which may be negative. The size never drops below 0: a count may already include a removal."""
        grown = {"size_bytes": _sum(pfs_use.c.size_bytes, size_bytes), "files": _sum(pfs_use.c.files, files)}
        first = {"size_bytes": max(0, size_bytes), "files": max(0, files), "counted_at": at}
        self._set(user, datacenter, grown, first)

    def _set(self, user: str, datacenter: str, changed: dict[str, Any], first: dict[str, Any]) -> None:
        there = update(pfs_use).where(pfs_use.c.user == user, pfs_use.c.datacenter == datacenter)
        with self._db.write() as connection:
            if not connection.execute(there.values(changed)).rowcount:
                connection.execute(insert(pfs_use), {"user": user, "datacenter": datacenter} | first)


def _sum(column: Column[Any], more: int) -> ColumnElement[int]:
    return case((column + more < 0, 0), else_=column + more)


def _use(row: Row[Any]) -> HomeUse:
    return HomeUse(
        datacenter=row.datacenter, size_bytes=int(row.size_bytes), files=int(row.files), counted_at=row.counted_at
    )
