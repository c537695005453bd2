"""What was said about files, on every kind of database."""

from __future__ import annotations

from datetime import timedelta

import pytest

from paddlecloud.model.attributes import Attributes
from paddlecloud.store.attributes import FileAttributes, Said
from paddlecloud.store.db import Database
from tests.contract.records import NOW

HOME = "/pfs/local/home/ann"


@pytest.fixture
def records(database: Database) -> FileAttributes:
    return FileAttributes(database)


def said(path: str, area: str = HOME, **attributes: object) -> Said:
    return Said(path=path, area=area, version="1", attributes=Attributes(**attributes))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["f", "数据\n'\"%_", "n/" * 900 + "long", "\uefff"])
def test_what_was_said_is_read_again_whatever_the_path(records: FileAttributes, name: str) -> None:
    one = said(f"{HOME}/{name}", permission="640", owner="x", modified_ms=2**50, acl=("user:bob:r-x",))
    records.put(one, NOW)
    assert records.get(one.path) == one
    assert records.get(f"{one.path}x") is None


def test_what_is_said_last_counts(records: FileAttributes) -> None:
    records.put(said(f"{HOME}/f", permission="600"), NOW)
    records.put(said(f"{HOME}/f", owner="x"), NOW)
    found = records.get(f"{HOME}/f")
    assert found is not None
    assert found.attributes == Attributes(owner="x")


def test_a_folder_tells_of_what_is_in_it_and_not_of_what_is_below(records: FileAttributes) -> None:
    for path in ("a", "d/a", "d/b", "d/e/c", "d%"):
        records.put(said(f"{HOME}/{path}", permission="600"), NOW)
    assert set(records.in_folder(f"{HOME}/d")) == {f"{HOME}/d/a", f"{HOME}/d/b"}


def test_what_is_at_and_below_a_path_is_forgotten_and_nothing_beside_it(records: FileAttributes) -> None:
    for path in ("d", "d/a", "d/e/c", "dd", "d%/x", "d_"):
        records.put(said(f"{HOME}/{path}", permission="600"), NOW)
    records.put(said("/pfs/local/home/bob/d/a", "/pfs/local/home/bob", permission="600"), NOW)
    assert [one.path for one in sorted(records.below(f"{HOME}/d", HOME), key=lambda one: one.path)] == [
        f"{HOME}/{path}" for path in ("d", "d/a", "d/e/c")
    ]
    records.replace([(f"{HOME}/d", HOME)], [said(f"{HOME}/new", owner="x")], NOW)
    assert records.below(f"{HOME}/d", HOME) == []
    assert all(records.get(f"{HOME}/{path}") for path in ("dd", "d%/x", "d_", "new"))
    assert records.get("/pfs/local/home/bob/d/a")


def test_of_too_much_in_one_home_the_oldest_is_forgotten(database: Database) -> None:
    records = FileAttributes(database, most=10)
    records.put(said("/pfs/local/home/bob/f", "/pfs/local/home/bob", owner="x"), NOW)
    for number in range(11):
        records.put(said(f"{HOME}/{number:02}", owner="x"), NOW + timedelta(seconds=number))
    left = sorted(one.path for one in records.below(HOME, HOME))
    assert left == [f"{HOME}/{number:02}" for number in range(2, 11)]
    assert records.get("/pfs/local/home/bob/f")
