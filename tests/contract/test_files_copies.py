"""Copying in every store of files, within it and from another one."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from paddlecloud.files.base import Store
from paddlecloud.files.local import LocalStore
from paddlecloud.model.errors import ConflictError
from tests.contract.stores import ODD_NAMES, content, filled, is_there, names

MIB = 1024 * 1024


class Told:
    def __init__(self) -> None:
        self.size = 0

    def __call__(self, size: int) -> None:
        self.size += size


def copied(source: Store, path: str, target: Store, goal: str) -> int:
    """How much was told."""
    told = Told()
    with closing(source.open(path)) as opened:
        made = target.copy(opened, goal, told)
    assert (made.path, made.size) == (goal, source.stat(path).size)
    return told.size


@pytest.fixture
def other(tmp_path: Path) -> Store:
    return LocalStore(tmp_path / "other")


@pytest.mark.parametrize("size", [0, 1, MIB + 1, 17 * MIB])
def test_a_copy_has_the_bytes_of_its_source_wherever_both_are(store: Store, other: Store, size: int) -> None:
    whole = os.urandom(size)
    store.write("a/file", [whole])
    assert copied(store, "a/file", store, "b/c/copy") == size
    assert copied(store, "b/c/copy", other, "away/copy") == size
    assert copied(other, "away/copy", store, "back") == size
    for path in ("a/file", "b/c/copy", "back"):
        assert content(store, path) == whole


def test_a_copy_is_a_file_of_its_own(store: Store) -> None:
    filled(store, {"file": b"old"})
    copied(store, "file", store, "copy")
    store.write("file", [b"new"])
    assert content(store, "copy") == b"old"
    store.remove("file")
    assert content(store, "copy") == b"old"


def test_a_copy_takes_the_place_of_a_file_and_never_of_a_folder(store: Store, other: Store) -> None:
    filled(store, {"file": b"new", "there": b"old", "folder/inside": b"inside"})
    filled(other, {"file": b"from afar"})
    copied(store, "file", store, "there")
    assert content(store, "there") == b"new"
    for source in (store, other):
        with closing(source.open("file")) as opened, pytest.raises(ConflictError, match="'folder' is a folder"):
            store.copy(opened, "folder", Told())
    assert names(store, "folder") == ["folder/inside"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_copy_may_have_an_odd_name(store: Store, name: str) -> None:
    filled(store, {f"odd/{name}": b"1"})
    copied(store, f"odd/{name}", store, f"copies/{name}")
    assert names(store, "copies") == [f"copies/{name}"]


def test_what_is_cut_while_it_is_copied_leaves_the_old_file(store: Store, tmp_path: Path) -> None:
    other = LocalStore(tmp_path / "cut")
    other.write("file", [b"1" * MIB] * 3)
    filled(store, {"copy": b"old"})
    with closing(other.open("file")) as opened:
        os.truncate(tmp_path / "cut/file", MIB)
        with pytest.raises(ConflictError, match="was truncated while it was copied"):
            store.copy(opened, "copy", Told())
    assert content(store, "copy") == b"old"


def test_who_is_told_may_stop_a_copy_and_nothing_of_it_is_there(store: Store, tmp_path: Path) -> None:
    other = LocalStore(tmp_path / "other")
    other.write("file", [b"1" * MIB] * 3)

    def stop(_: int) -> None:
        raise InterruptedError

    with closing(other.open("file")) as opened, pytest.raises(InterruptedError):
        store.copy(opened, "copy", stop)
    assert not is_there(store, "copy")
