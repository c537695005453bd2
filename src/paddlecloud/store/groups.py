"""Records groups of users, and caches what every request needs of them until a group changes.

While it runs, this process is the only writer of the records, so the cache cannot become stale.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.group import Group, GroupChange, GroupRequest
from paddlecloud.model.user import ALL_CLUSTERS, NO_LIMITS, Quota
from paddlecloud.store import quotas as limits
from paddlecloud.store.db import Database
from paddlecloud.store.plain import mapping_of, names_of, text_of
from paddlecloud.store.schema import group_members as member_table
from paddlecloud.store.schema import group_quotas, share_grants, shares
from paddlecloud.store.schema import groups as group_table
from paddlecloud.store.schema import users as user_table


@dataclass(frozen=True, slots=True)
class Membership:
    """Users' groups and what the groups grant; computed groups are not included."""

    of_user: Mapping[str, tuple[str, ...]]
    queues: Mapping[str, tuple[str, ...]]  # by group
    quotas: limits.Given  # by group, then by cluster
    shared: Mapping[tuple[str, str], Mapping[str, bool]]  # by (datacenter, folder), then by group: whether it may write


class Groups:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = threading.Lock()
        self._changes = 0
        self._cached: Membership | None = None

    def add(self, request: GroupRequest, now: datetime) -> Group:
        row = {
            "name": request.name,
            "created_at": now,
            "description": request.description,
            "external_name": request.external_name,
            "queues": text_of(request.queues),
            "extension": text_of(request.extension),
        }
        given = {ALL_CLUSTERS: request.quota, **request.quotas}
        try:
            with self._db.write() as connection:
                _check_users(connection, request.members)
                connection.execute(insert(group_table), row)
                _put_members(connection, request.name, request.members)
                limits.put_of_group(connection, request.name, given)
        except IntegrityError:
            raise ConflictError(f"group {request.name} exists already", field="name") from None
        self.changed()
        return self.get(request.name)

    def get(self, name: str) -> Group:
        with self._db.read() as connection:
            row = connection.execute(select(group_table).where(group_table.c.name == name)).one_or_none()
            if row is None:
                raise missing(name)
            return _groups(connection, [row])[0]

    def list(self) -> builtins.list[Group]:
        with self._db.read() as connection:
            return _groups(connection, connection.execute(select(group_table).order_by(group_table.c.name)).all())

    def change(self, name: str, change: GroupChange) -> Group:
        columns = {
            "description": change.description,
            "external_name": change.external_name,
            "queues": None if change.queues is None else text_of(change.queues),
            "extension": None if change.extension is None else text_of(change.extension),
        }
        given = {column: value for column, value in columns.items() if value is not None}
        quotas = {} if change.quota is None else {ALL_CLUSTERS: change.quota}
        with self._db.write() as connection:
            _check_group(connection, name)
            if given:
                connection.execute(update(group_table).where(group_table.c.name == name).values(given))
            if change.members is not None:
                _check_users(connection, change.members)
                connection.execute(delete(member_table).where(member_table.c.group == name))
                _put_members(connection, name, change.members)
            limits.put_of_group(connection, name, {**quotas, **(change.quotas or {})})
        self.changed()
        return self.get(name)

    def remove(self, name: str) -> None:
        """Also delete the group's grants: a later group of the same name must not inherit them."""
        with self._db.write() as connection:
            _check_group(connection, name)
            connection.execute(delete(member_table).where(member_table.c.group == name))
            connection.execute(delete(group_quotas).where(group_quotas.c.group == name))
            connection.execute(delete(share_grants).where(share_grants.c.group == name))
            connection.execute(delete(group_table).where(group_table.c.name == name))
        self.changed()

    def join(self, name: str, user: str) -> None:
        """Idempotent."""
        with self._db.write() as connection:
            _check_group(connection, name)
            _check_users(connection, [user])
            connection.execute(delete(member_table).where(*_is_member(name, user)))
            _put_members(connection, name, [user])
        self.changed()

    def leave(self, name: str, user: str) -> None:
        with self._db.write() as connection:
            _check_group(connection, name)
            if not connection.execute(delete(member_table).where(*_is_member(name, user))).rowcount:
                raise NotFoundError(f"{user!r} is not in group {name}", field="user")
        self.changed()

    def set_groups(self, user: str, names: Collection[str]) -> None:
        """Make these the user's only groups."""
        with self._db.write() as connection:
            _check_users(connection, [user])
            for name in names:
                _check_group(connection, name)
            connection.execute(delete(member_table).where(member_table.c.user == user))
            for name in sorted(set(names)):
                _put_members(connection, name, [user])
        self.changed()

    def membership(self) -> Membership:
        with self._lock:
            cached, changes = self._cached, self._changes
        if cached is not None:
            return cached
        with self._db.read() as connection:
            found = _membership(connection)
        with self._lock:
            if self._changes == changes:  # otherwise a group changed while this was read
                self._cached = found
        return found

    def changed(self) -> None:
        """Drop the cache; also called by modules that change what groups are granted."""
        with self._lock:
            self._changes += 1
            self._cached = None


def missing(name: str) -> NotFoundError:
    return NotFoundError(f"there is no group {name[:80]!r}; `paddlecloud group list` lists them", field="group")


def _check_group(connection: Connection, name: str) -> None:
    if connection.execute(select(group_table.c.name).where(group_table.c.name == name)).one_or_none() is None:
        raise missing(name)


def _check_users(connection: Connection, names: Iterable[str]) -> None:
    known = set(connection.execute(select(user_table.c.name)).scalars())
    for name in names:
        if name not in known:
            raise NotFoundError(
                f"there is no user {name[:80]!r}: add the user first (paddlecloud user add)", field="members"
            )


def _put_members(connection: Connection, group: str, users: Iterable[str]) -> None:
    for user in sorted(set(users)):
        connection.execute(insert(member_table), {"group": group, "user": user})


def _is_member(group: str, user: str) -> tuple[Any, Any]:
    return member_table.c.group == group, member_table.c.user == user


def _membership(connection: Connection) -> Membership:
    of_user: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(select(member_table).order_by(member_table.c.group)):
        of_user[row.user] = (*of_user.get(row.user, ()), row.group)
    queues = connection.execute(select(group_table.c.name, group_table.c.queues))
    shared: dict[tuple[str, str], dict[str, bool]] = {
        (row.datacenter, row.name): {} for row in connection.execute(select(shares))
    }
    for row in connection.execute(select(share_grants)):
        shared.setdefault((row.datacenter, row.share), {})[row.group] = row.writable
    given = {row.name: names_of(row.queues) for row in queues}
    return Membership(of_user, given, limits.of_groups(connection), shared)


def _groups(connection: Connection, rows: Iterable[Row[Any]]) -> builtins.list[Group]:
    members: dict[str, builtins.list[str]] = {}
    for row in connection.execute(select(member_table).order_by(member_table.c.user)):
        members.setdefault(row.group, []).append(row.user)
    given = limits.of_groups(connection)
    return [_group(row, members.get(row.name, ()), given.get(row.name, {})) for row in rows]


def _group(row: Row[Any], members: Iterable[str], given: Mapping[str, Quota]) -> Group:
    return Group(
        name=row.name,
        created_at=row.created_at,
        description=row.description,
        external_name=row.external_name,
        members=tuple(members),
        queues=names_of(row.queues),
        quota=given.get(ALL_CLUSTERS, NO_LIMITS),
        quotas={cluster: quota for cluster, quota in sorted(given.items()) if cluster != ALL_CLUSTERS},
        extension=mapping_of(row.extension),
    )
