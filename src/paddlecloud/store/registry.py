"""Records users' image registry logins; each password is encrypted and bound to its user and name."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.registry import Registry, RegistryLogin, RegistryRequest, check_registry, registry_name
from paddlecloud.store.db import Database
from paddlecloud.store.schema import registries
from paddlecloud.store.secrets import Cipher

_PURPOSE = "registry secrets"
_MAX_REGISTRIES = 100  # per user


class Registries:
    def __init__(self, db: Database, cipher: Cipher) -> None:
        self._db = db
        self._cipher = cipher

    def add(self, user: str, request: RegistryRequest, now: datetime) -> Registry:
        name = registry_name(request.name)
        check_registry(request)
        row = {
            "user": user,
            "name": name,
            "server": request.server,
            "username": request.username,
            "password_encrypted": self._cipher.encrypt(request.password, _bound_to(user, name), _PURPOSE),
            "created_at": now,
        }
        count = select(func.count()).select_from(registries).where(registries.c.user == user)
        try:
            with self._db.write() as connection:
                if connection.execute(count).scalar_one() >= _MAX_REGISTRIES:
                    raise ConflictError(
                        f"{user} has {_MAX_REGISTRIES} registries, which is the limit: delete one first"
                    )
                connection.execute(insert(registries), row)
        except IntegrityError:
            raise (
                _name_taken(name) if self._exists(user, name) else NotFoundError(f"there is no user {user!r}")
            ) from None
        return Registry(name=name, server=request.server, username=request.username, created_at=now)

    def list(self, user: str) -> builtins.list[Registry]:
        """A user's registries, sorted by name."""
        query = select(registries).where(registries.c.user == user).order_by(registries.c.name)
        with self._db.read() as connection:
            return [_registry(row) for row in connection.execute(query)]

    def get(self, user: str, name: str) -> RegistryLogin:
        """The login that a backend pulls images with."""
        row = self._find(user, registry_name(name))
        if row is None:
            raise _missing(registry_name(name))
        password = self._cipher.decrypt(row.password_encrypted, _bound_to(user, row.name), _PURPOSE)
        return RegistryLogin(server=row.server, username=row.username, password=password)

    def remove(self, user: str, name: str) -> None:
        found = registry_name(name)
        with self._db.write() as connection:
            statement = delete(registries).where(registries.c.user == user, registries.c.name == found)
            if not connection.execute(statement).rowcount:
                raise _missing(found)

    def _exists(self, user: str, name: str) -> bool:
        return self._find(user, name) is not None

    def _find(self, user: str, name: str) -> Row[Any] | None:
        query = select(registries).where(registries.c.user == user, registries.c.name == name)
        with self._db.read() as connection:
            return connection.execute(query).one_or_none()


def _bound_to(user: str, name: str) -> str:
    # Neither contains a slash.
    return f"{user}/{name}"


def _registry(row: Row[Any]) -> Registry:
    return Registry(name=row.name, server=row.server, username=row.username, created_at=row.created_at)


def _name_taken(name: str) -> ConflictError:
    return ConflictError(
        f"registry {name} exists already: delete it first (paddlecloud delete registry {name}), or use another name",
        field="name",
    )


def _missing(name: str) -> NotFoundError:
    return NotFoundError(f"you have no registry {name!r}; `paddlecloud get registry` lists them", field="name")
