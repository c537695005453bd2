"""Files by their numbers: the very version that the number was told of, or none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paddlecloud.files.local import LocalStore
from paddlecloud.model.errors import NotFoundError
from paddlecloud.server.inodes import Inodes, number_of


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


def test_a_number_is_good_for_who_was_told_it(store: LocalStore) -> None:
    inodes, entry = Inodes(), store.write("file", [b"old"])
    inodes.note("ann", entry)
    inodes.open("ann", number_of(entry), store.open).close()
    assert inodes.path("ann", number_of(entry)) == "file"
    for user, number in (("bob", number_of(entry)), ("ann", 1)):
        with pytest.raises(NotFoundError, match=f"/.reserved/.inodes/{number}"):
            inodes.open(user, number, store.open)


def test_a_file_that_was_replaced_before_it_was_read_has_another_number(store: LocalStore) -> None:
    inodes, entry = Inodes(), store.write("file", [b"old"])
    inodes.note("ann", entry)
    store.write("file", [b"longer"])
    with pytest.raises(NotFoundError):
        inodes.open("ann", number_of(entry), store.open)


def test_a_file_that_looks_the_same_is_another_once_the_first_was_read(store: LocalStore, tmp_path: Path) -> None:
    inodes, entry = Inodes(), store.write("file", [b"old"])
    inodes.note("ann", entry)
    inodes.open("ann", number_of(entry), store.open).close()
    before = (tmp_path / "store" / "file").stat()
    store.write("file", [b"new"])
    os.utime(tmp_path / "store" / "file", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert number_of(store.stat("file")) == number_of(entry)
    with pytest.raises(NotFoundError):
        inodes.open("ann", number_of(entry), store.open)


def test_of_too_many_the_one_asked_for_longest_ago_is_forgotten(store: LocalStore) -> None:
    inodes = Inodes(most=2)
    first, second, third = (store.write(name, [b"1"]) for name in ("a", "b", "c"))
    for entry in (first, second, first, third):
        inodes.note("ann", entry)
    inodes.note("bob", second)
    assert [inodes.path("ann", number_of(entry)) for entry in (first, third)] == ["a", "c"]
    with pytest.raises(NotFoundError):
        inodes.path("ann", number_of(second))
    assert inodes.path("bob", number_of(second)) == "b"
