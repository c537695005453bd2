"""What every store of files does, whatever it is made of."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paddlecloud.files.base import Store, Usage
from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.tree import Kind
from tests.contract.stores import ODD_NAMES, broken_after, content, fill, filled, is_there, names, tree

MIB = 1024 * 1024
# Of a bucket, a small part will do each time; `make large` does it whole.
AT_FULL_SIZE = bool(os.environ.get("LARGE_STORES"))
WHOLE_SECONDS = 3600 if AT_FULL_SIZE else 300


@pytest.mark.parametrize("size", [0, 1, MIB + 1, 8 * MIB, 8 * MIB + 1, 17 * MIB])
def test_what_is_written_is_read(store: Store, size: int) -> None:
    whole = os.urandom(size)
    pieces = (whole[at : at + 700_001] for at in range(0, size, 700_001))
    written = store.write("a/b/file", pieces)
    assert (written.path, written.size, written.kind) == ("a/b/file", size, Kind.FILE)
    assert store.stat("a/b/file") == written
    assert content(store, "a/b/file") == whole


def test_a_file_says_when_it_was_written(store: Store) -> None:
    written = store.write("file", [b"1"])
    assert abs((datetime.now(UTC) - written.modified_at).total_seconds()) < 60


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 0), (0, 1), (5, 5), (MIB - 1, MIB + 1), (0, 3 * MIB), (3 * MIB - 1, 9 * MIB), (3 * MIB, 9 * MIB), (9, 3)],
)
def test_a_range_is_read(store: Store, start: int, end: int) -> None:
    whole = os.urandom(3 * MIB)
    store.write("file", [whole])
    with closing(store.open("file")) as opened:
        assert opened.read(start, end) == whole[start:end]
        assert b"".join(opened.pieces(start, end)) == whole[start:end]
        assert all(len(piece) <= MIB for piece in opened.pieces())


def test_what_is_there_is_told(store: Store) -> None:
    filled(store, {"a/file": b"123"})
    assert (store.stat("a/file").kind, store.stat("a/file").size) == (Kind.FILE, 3)
    assert (store.stat("a").path, store.stat("a").kind) == ("a", Kind.FOLDER)
    assert (store.stat("").path, store.stat("").kind) == ("", Kind.FOLDER)
    for missing in ("b", "a/b", "a/fil", "a/file/x", "A"):
        with pytest.raises(NotFoundError, match=repr(missing)):
            store.stat(missing)


# Where a store that lists by key and one that lists by name differ: `a-b` and `a.txt` come before `a/` there.
MIXED = ("a/x", "a/y/z", "a-b", "a.txt", "a!/q", "a0", "b", "b.c/d", "b.c.d", "z/1", "z-1/2", "z-1-1")
MIXED_NAMES = ["a", "a!", "a-b", "a.txt", "a0", "b", "b.c", "b.c.d", "z", "z-1", "z-1-1"]


@pytest.mark.parametrize("page", [1, 2, 3, 100])
def test_a_folder_is_listed_by_name_in_pages(store: Store, page: int) -> None:
    filled(store, {f"in/{path}": b"1" for path in MIXED})
    found: list[str] = []
    while entries := store.list("in", after=found[-1] if found else "", limit=page):
        assert len(entries) <= page
        found += [entry.path.removeprefix("in/") for entry in entries]
    assert found == MIXED_NAMES
    assert [entry.kind is Kind.FOLDER for entry in store.list("in")] == [
        any(path.startswith(f"{name}/") for path in MIXED) for name in MIXED_NAMES
    ]


def test_a_tree_is_walked_folders_first_from_any_path_on(store: Store) -> None:
    filled(store, {f"in/{path}": b"1" for path in MIXED})
    filled(store, {"before": b"1", "out": b"1"})
    store.make_folder("in/z/empty")
    found = tree(store, "in")
    folders = {
        "/".join(parts[:count]) for path in MIXED if (parts := path.split("/")) for count in range(1, len(parts))
    }
    whole = {*MIXED, *folders, "z/empty"}
    assert found == [f"in/{path}" for path in sorted(whole, key=lambda path: path.split("/"))]
    for at, path in enumerate(found):
        assert [entry.path for entry in store.walk("in", after=path)] == found[at + 1 :]
    assert [entry.path for entry in store.walk("in", after="in/a/nothing")] == found[found.index("in/a/x") :]
    assert [entry.path for entry in store.walk("in", after="before")] == found
    assert [entry.path for entry in store.walk("in", after="out")] == []
    assert tree(store) == ["before", "in", *found, "out"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_may_be_odd(store: Store, name: str) -> None:
    store.write(f"odd/{name}", [b"file"])
    store.write(f"folder/{name}/inside", [b"inside"])
    assert names(store, "odd") == [f"odd/{name}"]
    assert tree(store, "folder") == [f"folder/{name}", f"folder/{name}/inside"]
    assert store.stat(f"odd/{name}").kind is Kind.FILE
    assert content(store, f"folder/{name}/inside") == b"inside"
    store.move(f"odd/{name}", f"moved/{name}")
    assert (names(store, "odd"), content(store, f"moved/{name}")) == ([], b"file")
    store.remove(f"folder/{name}", recursive=True)
    assert names(store, "folder") == []


def test_odd_names_are_listed_each_once_in_pages(store: Store) -> None:
    filled(store, {f"odd/{name}": name.encode() for name in ODD_NAMES})
    found: list[str] = []
    while entries := store.list("odd", after=found[-1] if found else "", limit=4):
        found += [entry.path.removeprefix("odd/") for entry in entries]
    assert sorted(found) == sorted(ODD_NAMES)
    assert found == [path.removeprefix("odd/") for path in names(store, "odd")]
    assert all(content(store, f"odd/{name}") == name.encode() for name in ODD_NAMES)


def test_a_reader_sees_the_old_file_to_its_end_or_is_told(store: Store) -> None:
    old, new = b"o" * (3 * MIB), b"n" * (3 * MIB)
    store.write("file", [old])
    with closing(store.open("file")) as opened:
        begun = opened.read(0, MIB)
        store.write("file", [new])
        try:
            rest = opened.read(MIB, 3 * MIB)
        except ConflictError:
            rest = None
    assert rest is None or begun + rest == old
    with closing(store.open("file")) as again:
        assert again.etag != opened.etag
        assert again.etag.startswith('"')
    assert content(store, "file") == new


def test_readers_never_see_half_of_a_file_that_is_replaced_all_the_time(store: Store) -> None:
    stop = threading.Event()

    def replace() -> None:
        for version in itertools.cycle(b"ABCD"):
            if stop.is_set():
                return
            store.write("file", [bytes([version]) * 100_000] * 3)

    store.write("file", [b"A" * 300_000])
    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(100):
            try:
                found = content(store, "file")
            except ConflictError:
                continue
            assert len(found) == 300_000
            assert len(set(found)) == 1
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(("pieces", "size"), [(0, 0), (1, 10), (3, MIB), (5, 4 * MIB)])
def test_a_source_that_breaks_leaves_the_old_file_and_no_other(store: Store, pieces: int, size: int) -> None:
    filled(store, {"in/file": b"old"})
    for path in ("in/file", "in/new", "new/folder/file"):
        with pytest.raises(ConnectionResetError, match="went away"):
            store.write(path, broken_after(pieces, size))
    assert tree(store) == ["in", "in/file"]
    assert content(store, "in/file") == b"old"
    assert store.usage("") == Usage(size_bytes=3, files=1)


def test_a_file_may_be_made_of_another_one_of_the_store(store: Store) -> None:
    whole = os.urandom(20 * MIB)
    store.write("file", [whole])
    with closing(store.open("file")) as opened:
        store.write("copy", opened.pieces())
    assert content(store, "copy") == whole


def test_many_small_files_are_written_together(store: Store) -> None:
    contents = {f"{number % 7}/{number}": str(number).encode() for number in range(200)}
    filled(store, {"1/1": b"old"})
    filled(store, contents)
    assert {entry.path for entry in store.walk("") if entry.kind is Kind.FILE} == set(contents)
    assert all(content(store, path) == whole for path, whole in contents.items())
    store.write_all([])


def test_a_file_of_this_machine_is_taken_over(store: Store, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    for size in (0, 10, 9 * MIB):
        wanted = os.urandom(size)
        whole.write_bytes(wanted)
        assert store.adopt("in/file", whole).size == size
        assert content(store, "in/file") == wanted
        assert not whole.exists()


def test_a_file_that_cannot_be_taken_over_stays_where_it_is(store: Store, tmp_path: Path) -> None:
    filled(store, {"file": b"1", "folder/file": b"1"})
    whole = tmp_path / "whole"
    whole.write_bytes(b"mine")
    for path in ("folder", "file/below", ""):
        with pytest.raises(ConflictError):
            store.adopt(path, whole)
    assert whole.read_bytes() == b"mine"


def test_a_folder_is_made_with_those_above_it_and_stays(store: Store) -> None:
    store.make_folder("a/b/c")
    store.make_folder("a/b/c")
    store.make_folder("a")
    store.make_folder("")
    assert tree(store) == ["a", "a/b", "a/b/c"]
    assert names(store, "a/b/c") == []
    store.write("a/b/c/file", [b"1"])
    store.remove("a/b/c/file")
    assert tree(store) == ["a", "a/b", "a/b/c"]


def test_folders_that_came_with_a_file_stay_when_it_goes(store: Store) -> None:
    filled(store, {"a/b/file": b"1", "c/file": b"1"})
    store.remove("a/b/file")
    store.move("c/file", "d")
    assert tree(store) == ["a", "a/b", "c", "d"]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.write("folder", [b"1"]),
        lambda store: store.write_all([("folder", b"1")]),
        lambda store: store.write("file/below", [b"1"]),
        lambda store: store.write_all([("file/below", b"1")]),
        lambda store: store.write("", [b"1"]),
        lambda store: store.make_folder("file"),
        lambda store: store.make_folder("file/below"),
        lambda store: store.open("folder"),
        lambda store: store.open(""),
        lambda store: store.list("file"),
        lambda store: store.walk("file"),
        lambda store: store.move("file", "folder"),
        lambda store: store.move("folder", "other"),
        lambda store: store.move("folder", "file"),
        lambda store: store.move("folder", "folder/in/itself"),
        lambda store: store.move("file", "file/below"),
        lambda store: store.move("folder", "file/below"),
        lambda store: store.remove("folder"),
        lambda store: store.remove("other/empty"),
        lambda store: store.remove("", recursive=True),
    ],
)
def test_what_is_in_the_way_stays_and_is_told(store: Store, call: Callable[[Store], object]) -> None:
    filled(store, {"file": b"1", "folder/file": b"2"})
    store.make_folder("other/empty")
    before = tree(store)
    with pytest.raises(ConflictError):
        call(store)
    assert tree(store) == before
    assert (content(store, "file"), content(store, "folder/file")) == (b"1", b"2")


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.open("nothing"),
        lambda store: store.list("nothing"),
        lambda store: store.walk("nothing"),
        lambda store: store.remove("nothing"),
        lambda store: store.remove("nothing", recursive=True),
        lambda store: store.move("nothing", "else"),
        lambda store: store.open("file/below"),
    ],
)
def test_what_is_not_there_is_told(store: Store, call: Callable[[Store], object]) -> None:
    filled(store, {"file": b"1"})
    with pytest.raises(NotFoundError):
        call(store)
    assert tree(store) == ["file"]


def test_a_file_is_moved_and_replaces_another(store: Store) -> None:
    filled(store, {"a/file": b"new", "b/file": b"old"})
    store.move("a/file", "b/file")
    store.move("b/file", "c/d/file")
    store.move("c/d/file", "c/d/file")
    assert content(store, "c/d/file") == b"new"
    assert not is_there(store, "a/file")
    assert not is_there(store, "b/file")


def test_a_folder_is_moved_with_all_that_is_in_it(store: Store) -> None:
    filled(store, {"a/b/file": b"1", "a/b-c": b"2", "ab/file": b"3", "a/b/deep/er": b"4"})
    store.make_folder("a/b/empty")
    store.move("a/b", "new/place")
    assert tree(store, "new") == [
        f"new/{path}" for path in ("place", "place/deep", "place/deep/er", "place/empty", "place/file")
    ]
    assert tree(store, "a") == ["a/b-c"]
    assert content(store, "new/place/deep/er") == b"4"


def test_a_folder_is_removed_with_all_that_is_in_it_and_nothing_else(store: Store) -> None:
    filled(store, {"a/b/file": b"1", "a/b/c/d": b"1", "a/b-c": b"1", "a/bc/x": b"1", "a/b.txt": b"1"})
    store.make_folder("a/b/empty")
    store.remove("a/b", recursive=True)
    assert tree(store, "a") == ["a/b-c", "a/b.txt", "a/bc", "a/bc/x"]
    store.remove("a/b-c", recursive=True)
    store.remove("a", recursive=True)
    assert tree(store) == []


def test_what_is_used_is_counted(store: Store) -> None:
    filled(store, {"a/1": b"12345", "a/b/2": b"123", "c": b"1"})
    store.make_folder("a/empty")
    assert store.usage("a") == Usage(size_bytes=8, files=2)
    assert store.usage("") == Usage(size_bytes=9, files=3)
    assert store.usage("nothing") == store.usage("nothing/below") == Usage()


@pytest.mark.slow
@pytest.mark.timeout(WHOLE_SECONDS)
def test_a_folder_of_many_files_is_listed_in_pages(store: Store) -> None:
    # SeaweedFS takes about 500 files a second here; what can go wrong does so where the pages of S3, of 1000, turn.
    # HDFS, which has no pages, takes about 50.
    count = 100_000 if store.kind == "local" or AT_FULL_SIZE else 3_000 if store.kind == "s3" else 300
    wanted = [f"many/f.{number:06}" for number in range(count)]
    fill(store, [wanted[number * 7919 % count] for number in range(count)])
    found: list[str] = []
    while page := store.list("many", after=found[-1].removeprefix("many/") if found else "", limit=count // 20):
        found += [entry.path for entry in page]
    assert found == wanted
    assert [entry.path for entry in store.walk("many")] == wanted
    assert names(store) == ["many"]
    assert store.usage("many") == Usage(size_bytes=0, files=count)
    store.remove("many", recursive=True)
    assert names(store) == []


@pytest.mark.timeout(WHOLE_SECONDS)
def test_a_large_file_comes_in_whole_and_is_read_at_its_end(store: Store, tmp_path: Path) -> None:
    size = 10 * 1024 * MIB if store.kind == "local" or AT_FULL_SIZE else 128 * MIB
    whole = tmp_path / "whole"
    with whole.open("wb") as file:
        file.truncate(size)
        file.seek(size - 5)
        file.write(b"12345")
    assert store.adopt("large", whole).size == size
    with closing(store.open("large")) as opened:
        assert opened.read(size - 7, size + 10) == b"\0\x0012345"
        if store.kind != "local":
            wanted, found = hashlib.sha256(), hashlib.sha256()
            for _ in range(size // MIB - 1):
                wanted.update(bytes(MIB))
            wanted.update(bytes(MIB - 5) + b"12345")
            for piece in opened.pieces():
                found.update(piece)
            assert found.digest() == wanted.digest()
