"""Records attributes that HDFS clients set on PFS files, by path and file version.

A path may be too long for an index, so rows are found by the hash of the path, the hash of its folder, and the area
(such as a home) that contains it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Row, delete, func, insert, or_, select

from paddlecloud.model import wire
from paddlecloud.model.attributes import Attributes
from paddlecloud.store.batches import batches
from paddlecloud.store.db import Database
from paddlecloud.store.schema import file_attributes

MOST = 100_000  # per area; beyond that the oldest rows are deleted, whose files are mostly gone


class Said(Struct, frozen=True, kw_only=True):
    """The attributes of one file; `area` is the path of the folder whose owner it belongs to."""

    path: str
    area: str
    version: str
    attributes: Attributes


class FileAttributes:
    def __init__(self, db: Database, *, most: int = MOST) -> None:
        self._db = db
        self._most = most

    def get(self, path: str) -> Said | None:
        query = select(file_attributes).where(file_attributes.c.key == _key(path))
        with self._db.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _said(row)

    def in_folder(self, folder: str) -> dict[str, Said]:
        """Attributes of all files in a folder, by path."""
        query = select(file_attributes).where(file_attributes.c.folder == _key(folder))
        with self._db.read() as connection:
            return {row.path: _said(row) for row in connection.execute(query)}

    def below(self, path: str, area: str) -> Sequence[Said]:
        """Attributes of a path and of everything below it."""
        query = select(file_attributes).where(*_at_or_below(path, area))
        with self._db.read() as connection:
            return [_said(row) for row in connection.execute(query)]

    def put(self, said: Said, now: datetime) -> None:
        self.replace((), [said], now)

    def replace(self, gone: Iterable[tuple[str, str]], said: Sequence[Said], now: datetime) -> None:
        """Delete the attributes at and below the paths in `gone`, given as (path, area), and add new ones."""
        with self._db.write() as connection:
            for path, area in gone:
                connection.execute(delete(file_attributes).where(*_at_or_below(path, area)))
            for some in batches(said):
                keys = [_key(one.path) for one in some]
                connection.execute(delete(file_attributes).where(file_attributes.c.key.in_(keys)))
                connection.execute(insert(file_attributes), [_row(one, now) for one in some])
            for area in {one.area for one in said}:
                self._forget_oldest(connection, area)

    def _forget_oldest(self, connection: Connection, area: str) -> None:
        count = select(func.count()).select_from(file_attributes).where(file_attributes.c.area == area)
        over = connection.execute(count).scalar_one() - self._most
        if over <= 0:
            return
        oldest = select(file_attributes.c.key).where(file_attributes.c.area == area).order_by(file_attributes.c.at)
        # Delete a tenth more than necessary, so that this does not happen for every new row.
        keys = oldest.limit(over + self._most // 10)
        connection.execute(delete(file_attributes).where(file_attributes.c.key.in_(keys)))


def _at_or_below(path: str, area: str) -> tuple[ColumnElement[bool], ...]:
    whole, at = path + "/", file_attributes.c.path
    return file_attributes.c.area == area, or_(at == path, func.substr(at, 1, len(whole)) == whole)


def _key(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()


def _row(said: Said, now: datetime) -> dict[str, Any]:
    return {
        "key": _key(said.path),
        "folder": _key(said.path.rpartition("/")[0]),
        "area": said.area,
        "path": said.path,
        "version": said.version,
        "said": wire.encode(said.attributes).decode(),
        "at": now,
    }


def _said(row: Row[Any]) -> Said:
    attributes = wire.decode(Attributes, row.said.encode())
    return Said(path=row.path, area=row.area, version=row.version, attributes=attributes)
