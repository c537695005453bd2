"""What WebHDFS does with files of every kind of store: they are made longer, all or nothing, and what was said of them
goes with them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.files.base import Store
from paddlecloud.files.drafts import Drafts
from paddlecloud.files.local import LocalStore
from paddlecloud.model import pfs as names
from paddlecloud.model.attributes import NOTHING_SAID, Attributes
from paddlecloud.model.errors import ConflictError, NotFoundError, QuotaError
from paddlecloud.model.pfs import Access, Who
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.attributes import AttributeService
from paddlecloud.server.incoming import Incoming
from paddlecloud.server.pfs import Pfs
from paddlecloud.store.attributes import FileAttributes
from paddlecloud.store.db import Database
from tests.contract.records import NOW
from tests.migrated import migrated
from tests.unit.server.test_incoming import Room, no_discard

MIB = 1024 * 1024
ANN = Who(user="ann")
HOME = "/pfs/local/home/ann"


@pytest.fixture
def attributes(tmp_path: Path) -> Iterator[AttributeService]:
    with closing(Database.open(migrated(tmp_path / "paddlecloud.db"))) as database:
        yield AttributeService(FileAttributes(database), lambda: NOW)


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def pfs(store: Store, tmp_path: Path, room: Room, attributes: AttributeService) -> Pfs:
    outputs = LocalStore(tmp_path / "results")
    return Pfs(stores={"local": store}, outputs=outputs, room=room, discard=no_discard, noted=attributes)


@pytest.fixture
def incoming(pfs: Pfs, tmp_path: Path) -> Incoming:
    return Incoming(pfs, Drafts(tmp_path / "drafts", boot="1"))


def content(pfs: Pfs, path: str) -> bytes:
    with closing(pfs.open(ANN, path)) as opened:
        return b"".join(opened.pieces())


def test_a_file_is_made_longer(pfs: Pfs, incoming: Incoming, room: Room, tmp_path: Path) -> None:
    begin, more = os.urandom(9 * MIB + 1), os.urandom(3 * MIB)
    pfs.write(ANN, f"{HOME}/file", [begin], size=len(begin))
    with incoming.longer(ANN, f"{HOME}/file") as arriving:
        for start in range(0, len(more), 700_001):
            arriving.take(more[start : start + 700_001])
        assert content(pfs, f"{HOME}/file") == begin
        assert arriving.finish().size == len(begin) + len(more)
    assert content(pfs, f"{HOME}/file") == begin + more
    assert (room.size, room.files) == (len(begin) + len(more), 1)
    assert list((tmp_path / "drafts").iterdir()) == []


def test_what_does_not_come_whole_leaves_the_file_as_it_was(pfs: Pfs, incoming: Incoming, tmp_path: Path) -> None:
    pfs.write(ANN, f"{HOME}/file", [b"old"], size=3)
    with suppress(ConnectionResetError), incoming.longer(ANN, f"{HOME}/file") as arriving:
        arriving.take(b"x" * MIB)
        raise ConnectionResetError
    assert content(pfs, f"{HOME}/file") == b"old"
    with incoming.longer(ANN, f"{HOME}/file") as arriving:
        arriving.take(b"x")
        pfs.write(ANN, f"{HOME}/file", [b"new one"], size=7)
        with pytest.raises(ConflictError, match="was changed"):
            arriving.finish()
    assert content(pfs, f"{HOME}/file") == b"new one"
    assert list((tmp_path / "drafts").iterdir()) == []


def test_only_a_file_can_be_made_longer_by_one_at_a_time_and_within_the_quota(
    pfs: Pfs, incoming: Incoming, room: Room
) -> None:
    pfs.write(ANN, f"{HOME}/d/file", [b"old"], size=3)
    for path, error in ((f"{HOME}/nothing", NotFoundError), (f"{HOME}/d", ConflictError)):
        with pytest.raises(error), incoming.longer(ANN, path):
            pass
    with incoming.longer(ANN, f"{HOME}/d/file"), pytest.raises(ConflictError, match="by another request"):
        with incoming.longer(ANN, f"{HOME}/d/file"):
            pass
    room.limit = MIB
    with incoming.longer(ANN, f"{HOME}/d/file") as arriving:
        arriving.take(b"x" * 100)
        with pytest.raises(QuotaError):
            arriving.take(b"x" * 2 * MIB)
    assert content(pfs, f"{HOME}/d/file") == b"old"


def test_what_was_said_goes_with_a_file_and_with_a_folder(pfs: Pfs, attributes: AttributeService) -> None:
    said = {"d": Attributes(permission="700"), "d/file": Attributes(owner="x"), "d/e/file": Attributes(group="y")}
    for name in ("d/file", "d/e/file", "d/other"):
        pfs.write(ANN, f"{HOME}/{name}", [b"1"], size=1)
    for name, what in said.items():
        place = pfs.locate(ANN, f"{HOME}/{name}", Access.READ)
        attributes.say(place, pfs.stat(ANN, place.path), what)
    pfs.move(ANN, f"{HOME}/d", f"{HOME}/new/place")
    for name, what in said.items():
        assert attributes.of(pfs.stat(ANN, f"{HOME}/new/place{name[1:]}")) == what
    pfs.move(ANN, f"{HOME}/new/place/file", f"{HOME}/file")
    assert attributes.of(pfs.stat(ANN, f"{HOME}/file")) == said["d/file"]
    pfs.write(ANN, f"{HOME}/new/place/file", [b"2"], size=1)
    assert attributes.of(pfs.stat(ANN, f"{HOME}/new/place/file")) == NOTHING_SAID
    pfs.remove(ANN, f"{HOME}/new", recursive=True)
    pfs.make_folder(ANN, f"{HOME}/new/place/e")
    assert attributes.of(pfs.stat(ANN, f"{HOME}/new/place")) == NOTHING_SAID


def test_what_was_said_of_another_file_is_not_brought_back_by_a_move(pfs: Pfs, attributes: AttributeService) -> None:
    pfs.write(ANN, f"{HOME}/file", [b"old"], size=3)
    attributes.say(pfs.locate(ANN, f"{HOME}/file", Access.READ), pfs.stat(ANN, f"{HOME}/file"), Attributes(owner="x"))
    pfs.write(ANN, f"{HOME}/file", [b"another"], size=7)
    pfs.move(ANN, f"{HOME}/file", f"{HOME}/moved")
    assert attributes.of(pfs.stat(ANN, f"{HOME}/moved")) == NOTHING_SAID


def test_a_file_that_a_bucket_moves_by_a_copy_is_still_the_same(attributes: AttributeService) -> None:
    here, there = (names.locate(f"{HOME}/{name}", ["local"]) for name in ("old", "new"))
    entry = FileEntry(path=here.path, size=1, modified_at=NOW, kind=Kind.FILE)
    copied = FileEntry(path=there.path, size=1, modified_at=NOW + timedelta(seconds=5), kind=Kind.FILE)
    attributes.say(here, entry, Attributes(owner="x"))
    with attributes.moving(here, there, {here.path: entry, there.path: copied}.get):
        pass
    assert (attributes.of(copied), attributes.of(entry)) == (Attributes(owner="x"), NOTHING_SAID)
