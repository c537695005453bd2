"""The contract of passes that were ended: they stay so, and never become many rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from paddlecloud.model.user import Role
from paddlecloud.store.db import Database
from paddlecloud.store.passes import ENDED_OF_A_USER, EndedPasses
from paddlecloud.store.schema import ended_passes
from paddlecloud.store.users import Users

NOW = datetime(2026, 11, 17, tzinfo=UTC)
WEEK = timedelta(days=7)


@pytest.fixture(autouse=True)
def known(users: Users) -> None:
    for name in ("ann", "bob"):
        users.add(name, Role.USER, None, NOW)


def rows(database: Database) -> int:
    with database.read() as connection:
        return connection.execute(select(func.count()).select_from(ended_passes)).scalar_one()


def test_one_that_was_ended_stays_ended_and_no_other_does(database: Database) -> None:
    passes = EndedPasses(database)
    passes.end("ann", "1", expires_at=NOW + WEEK, now=NOW)
    passes.end("ann", "1", expires_at=NOW + WEEK, now=NOW)
    assert passes.ended("ann", "1", NOW)
    assert not passes.ended("ann", "2", NOW)
    assert not passes.ended("bob", "1", NOW)


def test_rows_go_when_what_they_end_has_expired(database: Database) -> None:
    passes = EndedPasses(database)
    for number in range(10):
        passes.end("ann", str(number), expires_at=NOW + timedelta(minutes=1), now=NOW)
    passes.end("bob", "1", expires_at=NOW + WEEK, now=NOW + timedelta(minutes=2))
    assert rows(database) == 1


def test_who_ends_many_has_ended_all_that_were_made_until_then(database: Database) -> None:
    passes = EndedPasses(database)
    for number in range(ENDED_OF_A_USER + 1):
        passes.end("ann", str(number), expires_at=NOW + WEEK, now=NOW + timedelta(seconds=number))
    assert rows(database) == 1
    made_before, made_after = NOW, NOW + timedelta(hours=1)
    assert all(passes.ended("ann", str(number), made_before) for number in range(ENDED_OF_A_USER + 1))
    assert passes.ended("ann", "another", made_before)
    assert not passes.ended("ann", "new", made_after)
    assert not passes.ended("bob", "new", made_before)
