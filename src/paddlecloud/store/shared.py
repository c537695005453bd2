"""Records shared folders and which groups may read or write each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.group import COMPUTED
from paddlecloud.store.db import Database
from paddlecloud.store.groups import Groups, missing
from paddlecloud.store.schema import groups as group_table
from paddlecloud.store.schema import share_grants, shares

Key = tuple[str, str]  # datacenter and name
Grants = Mapping[str, bool]  # by group: whether it may write


class SharedFolders:
    def __init__(self, db: Database, groups: Groups) -> None:
        """`groups` caches the grants and is told of every change."""
        self._db = db
        self._groups = groups

    def all(self) -> dict[Key, Grants]:
        return dict(self._groups.membership().shared)

    def since(self) -> dict[Key, datetime]:
        """Creation time of each shared folder."""
        with self._db.read() as connection:
            return {(row.datacenter, row.name): row.created_at for row in connection.execute(select(shares))}

    def add(self, key: Key, grants: Grants, now: datetime) -> None:
        row = {"datacenter": key[0], "name": key[1], "created_at": now}
        try:
            with self._db.write() as connection:
                connection.execute(insert(shares), row)
                for group, writable in grants.items():
                    _grant(connection, key, group, writable)
        except IntegrityError:
            raise ConflictError(f"shared folder {key[1]} exists already in {key[0]}", field="name") from None
        self._groups.changed()

    def grant(self, key: Key, group: str, *, writable: bool) -> None:
        with self._db.write() as connection:
            _check(connection, key)
            connection.execute(delete(share_grants).where(*_of(key), share_grants.c.group == group))
            _grant(connection, key, group, writable)
        self._groups.changed()

    def revoke(self, key: Key, group: str) -> None:
        with self._db.write() as connection:
            _check(connection, key)
            gone = connection.execute(delete(share_grants).where(*_of(key), share_grants.c.group == group))
            if not gone.rowcount:
                raise NotFoundError(f"shared folder {key[1]} is not granted to group {group[:80]!r}", field="group")
        self._groups.changed()

    def remove(self, key: Key) -> None:
        with self._db.write() as connection:
            _check(connection, key)
            connection.execute(delete(share_grants).where(*_of(key)))
            connection.execute(delete(shares).where(shares.c.datacenter == key[0], shares.c.name == key[1]))
        self._groups.changed()


def no_such_folder(key: Key) -> NotFoundError:
    return NotFoundError(
        f"there is no shared folder {key[1][:80]!r} in {key[0][:80]!r}; `paddlecloud share list` lists them",
        field="name",
    )


def _check(connection: Connection, key: Key) -> None:
    query = select(shares).where(shares.c.datacenter == key[0], shares.c.name == key[1])
    if connection.execute(query).one_or_none() is None:
        raise no_such_folder(key)


def _grant(connection: Connection, key: Key, group: str, writable: bool) -> None:
    query = select(group_table.c.name).where(group_table.c.name == group)
    if group not in COMPUTED and connection.execute(query).one_or_none() is None:
        raise missing(group)
    row = {"datacenter": key[0], "share": key[1], "group": group, "writable": writable}
    connection.execute(insert(share_grants), row)


def _of(key: Key) -> tuple[Any, Any]:
    return share_grants.c.datacenter == key[0], share_grants.c.share == key[1]
