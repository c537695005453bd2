"""Records which files users have published, and the uuid of each."""

from __future__ import annotations

import builtins
import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.publication import Publication
from paddlecloud.store.db import Database
from paddlecloud.store.schema import publications, users


class Publications:
    def __init__(self, db: Database) -> None:
        self._db = db

    def publish(self, user: str, path: str, now: datetime) -> Publication:
        """Publish a path; one published before keeps its uuid, since the user may have shared it."""
        published = select(publications).where(publications.c.user == user, publications.c.path == path)
        made = Publication(uuid=str(uuid.uuid4()), user=user, path=path, created_at=now)
        with self._db.write() as connection:
            earlier = connection.execute(published).first()
            if earlier is not None:
                return _publication(earlier)
            row = {"uuid": made.uuid, "user": user, "path": path, "created_at": now}
            connection.execute(insert(publications), row)
        return made

    def unpublish(self, user: str, path: str) -> None:
        """Invalidate the path's uuid; publishing the path again creates a new one."""
        statement = delete(publications).where(publications.c.user == user, publications.c.path == path)
        with self._db.write() as connection:
            if not connection.execute(statement).rowcount:
                raise NotFoundError(f"{path} is not published by {user}", field="path")

    def find(self, sought: str) -> Publication:
        """Find a published file; files of a disabled user are hidden while the user is disabled."""
        owned = select(publications).join(users, users.c.name == publications.c.user)
        query = owned.where(publications.c.uuid == sought, users.c.disabled.is_(False))
        with self._db.read() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFoundError(
                f"there is no published file {sought!r}: ask the person who gave you the link", field="uuid"
            )
        return _publication(row)

    def list(self, user: str) -> builtins.list[Publication]:
        """A user's publications, oldest first."""
        query = select(publications).where(publications.c.user == user)
        with self._db.read() as connection:
            rows = connection.execute(query.order_by(publications.c.created_at, publications.c.uuid)).all()
        return [_publication(row) for row in rows]


def _publication(row: Row[Any]) -> Publication:
    return Publication(uuid=row.uuid, user=row.user, path=row.path, created_at=row.created_at)
