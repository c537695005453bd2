"""Passwords of users whose hashing is not the subject: each is hashed once, as the product does, for all tests."""

from __future__ import annotations

from functools import cache

from sqlalchemy import update

from paddlecloud.store.db import Database
from paddlecloud.store.passwords import Passwords
from paddlecloud.store.schema import users


def give_password(database: Database, name: str, password: str) -> None:
    with database.write() as connection:
        connection.execute(update(users).where(users.c.name == name).values(password_hash=_hashed(password)))


@cache
def _hashed(password: str) -> str:
    return Passwords().hash(password)
