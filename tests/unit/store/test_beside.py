"""What goes beside a write is written once, and not taken for written where the commit itself failed."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from paddlecloud.model.user import Role
from paddlecloud.store.beside import beside
from paddlecloud.store.db import Database
from paddlecloud.store.schema import access_keys, audit
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW

ROW = {"at": NOW, "user": "", "address": "", "action": "user.add", "target": "ann", "request_id": "", "detail": ""}


def test_a_commit_that_fails_leaves_the_row_to_the_next_write(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path / 'paddlecloud.db'}")
    users = Users(database, Cipher(tmp_path / "key"))
    with beside(audit, ROW):
        with pytest.raises(IntegrityError):
            fail_at_commit(database)
        with database.read() as connection:
            assert connection.execute(select(audit.c.target)).all() == []
        users.add("ann", Role.USER, None, NOW)
        users.add("bob", Role.USER, None, NOW)
    with database.read() as connection:
        assert connection.execute(select(audit.c.target)).scalars().all() == ["ann"]
    database.close()


def fail_at_commit(database: Database) -> None:
    nobodys_key = {"ak": "a", "user": "nobody", "created_at": NOW, "sk_encrypted": "x"}
    with database.write() as connection:
        connection.execute(text("PRAGMA defer_foreign_keys = ON"))
        connection.execute(insert(access_keys), nobodys_key)
