"""Uploads: what comes in comes out, of each user alone, once, whole or not at all."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.files.uploads import Uploads
from paddlecloud.model.errors import ConflictError, FullError, InvalidError, NotFoundError
from paddlecloud.model.tree import CHUNK_BYTES, Entry, Kind, Manifest
from tests import trees

LARGE = os.urandom(2 * CHUNK_BYTES + 5)


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "files")


def left_over(uploads: Uploads, user: str) -> list[str]:
    """What is stored for a user beside finished objects and trees."""
    root = uploads._root / user
    below = [*(root / "chunks").iterdir(), *(root / "partial").iterdir()]
    return [path.name for path in [*below, *root.rglob(".new-*")]]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_folder_comes_out_as_it_went_in(uploads: Uploads) -> None:
    odd = {
        "a b/line\nbreak": b"1",
        "é/" + "n" * 255: b"2",
        "empty file": b"",
        "-rf": b"3",
        "large": LARGE,
        "zeros": bytes(3 * CHUNK_BYTES),
    }
    wanted = trees.manifest(
        odd,
        trees.file("run.sh", b"1", executable=True),
        trees.folder("empty/folder"),
        trees.link("a b/link", "../large"),
        trees.link("dangling", "nothing/here"),
    )
    trees.send(uploads, "ann", wanted, *odd.values())
    tree = uploads.tree("ann", uploads.seal("ann", wanted))

    assert {path: (tree / path).read_bytes() for path in odd} == odd
    assert (tree / "run.sh").read_bytes() == b"1"
    assert os.readlink(tree / "a b/link") == "../large"
    assert os.readlink(tree / "dangling") == "nothing/here"
    assert list((tree / "empty/folder").iterdir()) == []
    assert (mode(tree / "run.sh"), mode(tree / "a b/line\nbreak")) == (0o555, 0o444)
    assert {mode(path) for path in [tree, *tree.rglob("*")] if path.is_dir() and not path.is_symlink()} == {0o555}
    assert left_over(uploads, "ann") == []


def test_a_second_upload_of_a_changed_folder_needs_only_the_change(uploads: Uploads) -> None:
    first = trees.manifest({"large": LARGE, "small": b"same"})
    trees.send(uploads, "ann", first, LARGE, b"same")
    uploads.seal("ann", first)
    changed = LARGE[:CHUNK_BYTES] + os.urandom(CHUNK_BYTES) + LARGE[2 * CHUNK_BYTES :]
    second = trees.manifest({"large": changed, "renamed": b"same"}, trees.file("run", b"same", executable=True))

    assert uploads.missing("ann", second) == [trees.digest(changed[CHUNK_BYTES : 2 * CHUNK_BYTES])]
    trees.send(uploads, "ann", second, changed)
    tree = uploads.tree("ann", uploads.seal("ann", second))

    assert (tree / "large").read_bytes() == changed
    assert (uploads.tree("ann", first.id) / "large").read_bytes() == LARGE
    assert (mode(tree / "run"), mode(tree / "renamed")) == (0o555, 0o444)


def test_large_files_may_share_chunks_with_each_other_and_with_small_ones(uploads: Uploads) -> None:
    one, two, three = (os.urandom(CHUNK_BYTES) for _ in range(3))
    files = {"a": one + two, "b": two + three, "c": three + one + b"end", "d": two, "e": one + two}
    wanted = trees.manifest(files)
    sent = trees.send(uploads, "ann", wanted, *files.values())
    assert sorted(sent) == sorted(trees.digest(chunk) for chunk in (one, two, three, b"end"))
    assert uploads.missing("ann", wanted) == []
    tree = uploads.tree("ann", uploads.seal("ann", wanted))
    assert {path: (tree / path).read_bytes() for path in files} == files
    assert left_over(uploads, "ann") == []


def test_what_another_user_has_is_missing(uploads: Uploads) -> None:
    wanted = trees.manifest({"secret": b"of ann"})
    trees.send(uploads, "ann", wanted, b"of ann")
    uploads.seal("ann", wanted)

    assert uploads.missing("bob", wanted) == [trees.digest(b"of ann")]
    with pytest.raises(ConflictError):
        uploads.seal("bob", wanted)
    with pytest.raises(NotFoundError):
        uploads.tree("bob", wanted.id)


def test_an_upload_goes_on_after_the_server_was_killed(uploads: Uploads, tmp_path: Path) -> None:
    wanted = trees.manifest({"large": LARGE, "small": b"x"})
    trees.send(uploads, "ann", wanted, LARGE[:CHUNK_BYTES], b"x")

    again = Uploads(tmp_path / "files")
    rest = trees.chunks_of(LARGE)[1:]
    assert again.missing("ann", wanted) == [trees.digest(chunk) for chunk in rest]
    # Without a question before, as from a client that did not notice: such chunks are kept apart.
    unasked = Uploads(tmp_path / "files")
    unasked.put_chunk("ann", trees.digest(rest[0]), rest[0])
    trees.send(again, "ann", wanted, LARGE)
    tree = again.tree("ann", again.seal("ann", wanted))
    assert (tree / "large").read_bytes() == LARGE
    assert left_over(again, "ann") == []


def test_sealing_twice_at_once_makes_one_tree(uploads: Uploads) -> None:
    wanted = trees.manifest({f"{number}": b"%d" % number for number in range(40)} | {"large": LARGE})
    trees.send(uploads, "ann", wanted, LARGE, *(b"%d" % number for number in range(40)))
    with ThreadPoolExecutor(4) as threads:
        ids = set(threads.map(lambda _: uploads.seal("ann", wanted), range(4)))
    assert ids == {wanted.id}
    assert (uploads.tree("ann", wanted.id) / "large").read_bytes() == LARGE
    assert left_over(uploads, "ann") == []


def test_chunks_may_come_in_while_the_tree_is_sealed(uploads: Uploads) -> None:
    wanted = trees.manifest({"large": LARGE})
    missing = trees.send(uploads, "ann", wanted, LARGE)
    chunks = trees.chunks_of(LARGE)
    with ThreadPoolExecutor(4) as threads:
        late = [
            threads.submit(uploads.put_chunk, "ann", digest, chunk)
            for digest, chunk in zip(missing, chunks, strict=True)
        ]
        uploads.seal("ann", wanted)
    for put in late:
        put.result()
    assert (uploads.tree("ann", wanted.id) / "large").read_bytes() == LARGE
    again = trees.manifest({"copy": LARGE})
    assert uploads.missing("ann", again) == []
    uploads.seal("ann", again)
    assert (uploads.tree("ann", again.id) / "copy").read_bytes() == LARGE


@pytest.mark.parametrize("size", [1, 3, CHUNK_BYTES])
def test_a_manifest_that_lies_about_a_size_is_refused_with_the_file(uploads: Uploads, size: int) -> None:
    lie = Manifest(entries=(trees.file("honest", b"12"), replace(trees.file("liar", b"xy"), size=size)))
    for content in (b"12", b"xy"):
        uploads.put_chunk("ann", trees.digest(content), content)
    with pytest.raises(InvalidError, match="'liar'"):
        uploads.missing("ann", lie)
    with pytest.raises(InvalidError, match="'liar'"):
        uploads.seal("ann", lie)
    with pytest.raises(NotFoundError):
        uploads.tree("ann", lie.id)


def test_a_lie_about_the_last_chunk_of_a_large_file_is_refused(uploads: Uploads) -> None:
    lie = Manifest(entries=(replace(trees.file("liar", LARGE), size=len(LARGE) + 1),))
    trees.send(uploads, "ann", lie, LARGE)
    with pytest.raises(InvalidError, match="'liar'"):
        uploads.seal("ann", lie)
    honest = trees.manifest({"large": LARGE})
    trees.send(uploads, "ann", honest, LARGE)
    uploads.seal("ann", honest)
    assert (uploads.tree("ann", honest.id) / "large").read_bytes() == LARGE


def test_a_small_file_that_spells_out_digests_is_not_taken_for_the_large_one(uploads: Uploads) -> None:
    digests = b"".join(bytes.fromhex(trees.digest(chunk)) for chunk in trees.chunks_of(LARGE))
    small, large = trees.manifest({"f": digests}), trees.manifest({"f": LARGE})
    assert small.entries[0].content == large.entries[0].content
    trees.send(uploads, "ann", small, digests)
    uploads.seal("ann", small)
    trees.send(uploads, "ann", large, LARGE)
    uploads.seal("ann", large)
    assert (uploads.tree("ann", small.id) / "f").read_bytes() == digests
    assert (uploads.tree("ann", large.id) / "f").read_bytes() == LARGE


@pytest.mark.parametrize(
    ("digest", "content"),
    [
        (trees.digest(b"x"), b"y"),
        (trees.digest(b""), b""),
        ("../../../etc/passwd", b"x"),
        (trees.digest(b"x").upper(), b"x"),
        (trees.digest(bytes(CHUNK_BYTES + 1)), bytes(CHUNK_BYTES + 1)),
    ],
)
def test_a_chunk_that_is_not_what_it_says_is_refused(uploads: Uploads, digest: str, content: bytes) -> None:
    uploads.missing("ann", trees.manifest({"f": b"x"}))
    with pytest.raises(InvalidError):
        uploads.put_chunks("ann", [(trees.digest(b"x"), b"x"), (digest, content)])
    assert left_over(uploads, "ann") == []


@pytest.mark.parametrize("user", ["", ".", "..", "a/b", "../bob", "a\0b", ".hidden"])
def test_a_user_name_is_never_a_path(uploads: Uploads, user: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidError):
        uploads.put_chunk(user, trees.digest(b"x"), b"x")
    with pytest.raises(InvalidError):
        uploads.tree(user, "0" * 64)
    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.parametrize(
    "entry",
    [
        trees.file("../out", b""),
        trees.file("/etc/cron.d/x", b""),
        trees.link("out", "/etc/passwd"),
        trees.link("a/out", "../../x"),
        Entry(path="f", kind=Kind.FILE, size=1, chunks=("../../../../etc/passwd",)),
    ],
)
def test_nothing_of_a_hostile_manifest_is_stored(uploads: Uploads, entry: Entry, tmp_path: Path) -> None:
    hostile = Manifest(entries=(entry,))
    with pytest.raises(InvalidError):
        uploads.missing("ann", hostile)
    with pytest.raises(InvalidError):
        uploads.seal("ann", hostile)
    assert list((tmp_path / "files").rglob("*")) == []


@pytest.mark.parametrize("tree_id", ["", "..", "../../bob/trees/" + "0" * 64, "0" * 64, ".new-1"])
def test_only_a_sealed_tree_is_found(uploads: Uploads, tree_id: str) -> None:
    with pytest.raises(NotFoundError):
        uploads.tree("ann", tree_id)


def test_sealing_before_all_chunks_are_here_changes_nothing(uploads: Uploads) -> None:
    wanted = trees.manifest({"large": LARGE, "small": b"x"})
    trees.send(uploads, "ann", wanted, LARGE[CHUNK_BYTES:])
    with pytest.raises(ConflictError):
        uploads.seal("ann", wanted)
    sent = trees.send(uploads, "ann", wanted, LARGE, b"x")
    assert sent == [trees.digest(LARGE[:CHUNK_BYTES]), trees.digest(b"x")]
    uploads.seal("ann", wanted)


def test_chunks_and_objects_of_no_use_are_gone_after_a_day(uploads: Uploads, tmp_path: Path) -> None:
    kept, unused = trees.manifest({"kept": b"kept"}), trees.manifest({"large": LARGE, "small": b"x"})
    trees.send(uploads, "ann", kept, b"kept")
    uploads.seal("ann", kept)
    removed = trees.manifest({"removed": b"removed"})
    trees.send(uploads, "ann", removed, b"removed")
    uploads.seal("ann", removed)
    (tree,) = [tree for tree in uploads.trees.of("ann") if tree.id == removed.id]
    assert uploads.trees.remove(tree, lambda: None, needed=lambda tree: False)
    trees.send(uploads, "ann", unused, LARGE[:CHUNK_BYTES], b"x")
    written = datetime.fromtimestamp((tmp_path / "files/ann/objects").stat().st_mtime, UTC)

    uploads.expire(written + timedelta(hours=23))
    assert len(uploads.missing("ann", unused)) == 2
    assert uploads.missing("ann", removed) == []
    uploads.expire(written + timedelta(hours=25))
    assert len(uploads.missing("ann", unused)) == 4
    assert len(uploads.missing("ann", removed)) == 1
    assert (uploads.tree("ann", kept.id) / "kept").read_bytes() == b"kept"
    assert left_over(uploads, "ann") == []


def test_a_small_file_is_kept_as_a_whole_as_soon_as_it_is_here(uploads: Uploads, tmp_path: Path) -> None:
    wanted = trees.manifest({"plain": b"1"}, trees.file("run", b"2", executable=True))
    trees.send(uploads, "ann", wanted, b"1", b"2")
    objects = {path.name: mode(path) for path in (tmp_path / "files/ann/objects").iterdir()}
    assert objects == {f"{trees.digest(b'1')}.1": 0o444, f"{trees.digest(b'2')}.1.x": 0o555}
    assert left_over(uploads, "ann") == []


def test_what_has_come_is_kept_for_another_day_by_asking(uploads: Uploads, tmp_path: Path) -> None:
    wanted = trees.manifest({"a": b"1", "large": LARGE})
    trees.send(uploads, "ann", wanted, b"1")
    (held,) = (tmp_path / "files/ann/objects").iterdir()
    written = datetime.fromtimestamp(held.stat().st_mtime, UTC)
    os.utime(held, (0, 0))
    assert len(uploads.missing("ann", wanted)) == 3
    uploads.expire(written + timedelta(hours=23))
    assert held.exists()


def test_a_folder_of_which_all_has_come_is_sealed_unless_some_of_it_is_lost(uploads: Uploads, tmp_path: Path) -> None:
    wanted = trees.manifest({"a": b"1", "b": b"2"})
    asked = uploads.take("ann", wanted)
    assert asked == (wanted.id, [trees.digest(b"1"), trees.digest(b"2")])
    trees.send(uploads, "ann", wanted, b"1", b"2")
    (tmp_path / "files/ann/objects" / f"{trees.digest(b'2')}.1").unlink()
    assert uploads.take("ann", wanted) == (wanted.id, [trees.digest(b"2")])
    with pytest.raises(NotFoundError):
        uploads.tree("ann", wanted.id)
    assert left_over(uploads, "ann") == []
    uploads.put_chunk("ann", trees.digest(b"2"), b"2")
    assert uploads.take("ann", wanted) == (wanted.id, [])
    assert (uploads.tree("ann", wanted.id) / "b").read_bytes() == b"2"
    assert uploads.take("ann", wanted) == (wanted.id, [])


def test_what_a_crash_left_half_written_is_removed(uploads: Uploads, tmp_path: Path) -> None:
    uploads.missing("ann", trees.manifest({"f": b"x"}))
    half = tmp_path / "files/ann/trees/.new-1"
    half.mkdir(parents=True)
    (half / "f").write_bytes(b"x")
    half.chmod(0o555)
    written = datetime.fromtimestamp(half.stat().st_mtime, UTC)
    uploads.expire(written + timedelta(days=2))
    assert left_over(uploads, "ann") == []


@pytest.mark.slow
def test_a_file_may_have_more_names_than_the_disk_allows_for_one(uploads: Uploads, tmp_path: Path) -> None:
    allowed = os.pathconf(tmp_path, "PC_LINK_MAX")
    if allowed > 70_000:
        pytest.skip(f"this disk allows {allowed} names for one file")
    wanted = trees.manifest({"f": b"x"})
    trees.send(uploads, "ann", wanted, b"x")
    uploads.seal("ann", wanted)
    (worn_out,) = (tmp_path / "files/ann/objects").iterdir()
    (tmp_path / "names").mkdir()
    for number in range(allowed - worn_out.stat().st_nlink):
        os.link(worn_out, tmp_path / "names" / str(number))
    again = trees.manifest({"g": b"x", "h": b"x"})
    uploads.seal("ann", again)
    assert (uploads.tree("ann", again.id) / "h").read_bytes() == b"x"


def test_what_the_records_need_of_the_disk_is_never_filled(uploads: Uploads, tmp_path: Path) -> None:
    content = os.urandom(1000)
    wanted = trees.manifest({"a": content})
    full = Uploads(tmp_path / "full", spare_bytes=2**60)
    with pytest.raises(FullError):
        full.put_chunk("ann", trees.digest(content), content)
    assert full.missing("ann", wanted) == [trees.digest(content)]


def test_a_chunk_that_is_sent_once_and_named_often_does_not_fill_the_disk(tmp_path: Path) -> None:
    root = tmp_path / "files"
    chunk = os.urandom(CHUNK_BYTES)
    often = Entry(path="a", kind=Kind.FILE, size=20 * CHUNK_BYTES, chunks=(trees.digest(chunk),) * 20)
    wanted = Manifest(entries=(often,))
    uploads = Uploads(root)
    assert uploads.missing("ann", wanted) == [trees.digest(chunk)]
    uploads.put_chunk("ann", trees.digest(chunk), chunk)
    with pytest.raises(FullError):
        Uploads(root, spare_bytes=2**60).seal("ann", wanted)
    assert (uploads.tree("ann", uploads.seal("ann", wanted)) / "a").read_bytes() == chunk * 20
