"""Files that come in pieces, through the one door that all clients use."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from paddlecloud.files.drafts import Drafts
from paddlecloud.files.local import LocalStore
from paddlecloud.model.errors import ConflictError, ForbiddenError, FullError, InvalidError, NotFoundError, QuotaError
from paddlecloud.model.pfs import Who
from paddlecloud.model.tree import CHUNK_BYTES
from paddlecloud.server.incoming import Incoming
from paddlecloud.server.pfs import Pfs

ANN, BOB = Who(user="ann"), Who(user="bob")
HOME = "/pfs/local/home/ann"


class Room:
    """Counts, and refuses what is above a limit."""

    def __init__(self) -> None:
        self.limit = 10**9
        self.size = 0
        self.files = 0

    def check(self, user: str | None, datacenter: str, *, written: int, kept: int) -> None:
        if self.size + kept > self.limit:
            raise QuotaError(f"{user} has too much in {datacenter}")

    def take(self, user: str | None, datacenter: str, *, written: int, kept: int, files: int) -> None:
        self.check(user, datacenter, written=written, kept=kept)
        self.note(user or "", datacenter, kept, files)

    def note(self, user: str, datacenter: str, more_bytes: int, more_files: int) -> None:
        assert (user, datacenter) == ("ann", "local")
        self.size += more_bytes
        self.files += more_files


def no_discard(user: str, job: str) -> None:
    raise AssertionError(f"{job} of {user} is not to go")


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
def pfs(tmp_path: Path, room: Room) -> Pfs:
    return Pfs(
        stores={"local": LocalStore(tmp_path / "local")},
        outputs=LocalStore(tmp_path / "results"),
        room=room,
        discard=no_discard,
    )


@pytest.fixture
def incoming(tmp_path: Path, pfs: Pfs) -> Incoming:
    return Incoming(pfs, Drafts(tmp_path / "drafts", boot="1"))


def content(pfs: Pfs, path: str) -> bytes:
    opened = pfs.open(ANN, path)
    try:
        return opened.read(0, opened.entry.size)
    finally:
        opened.close()


def digests(whole: bytes) -> list[str]:
    return [
        hashlib.sha256(whole[start : start + CHUNK_BYTES]).hexdigest() for start in range(0, len(whole), CHUNK_BYTES)
    ]


def test_a_large_file_goes_on_where_it_stopped(pfs: Pfs, incoming: Incoming, room: Room) -> None:
    whole = b"a" * CHUNK_BYTES + b"b" * CHUNK_BYTES + b"c" * 100
    path = f"{HOME}/model"
    assert list(incoming.plan(ANN, path, len(whole), digests(whole))) == [0, 1, 2]
    incoming.fill(ANN, path, CHUNK_BYTES, whole[CHUNK_BYTES : 2 * CHUNK_BYTES])
    with pytest.raises(NotFoundError):
        pfs.stat(ANN, path)
    assert list(incoming.plan(ANN, path, len(whole), digests(whole))) == [0, 2]
    incoming.fill(ANN, path, 0, whole[:CHUNK_BYTES])
    assert incoming.fill(ANN, path, 2 * CHUNK_BYTES, whole[2 * CHUNK_BYTES :])
    assert content(pfs, path) == whole
    assert (room.size, room.files) == (len(whole), 1)
    assert list(incoming.plan(ANN, path, len(whole), digests(whole))) == []


def test_of_a_file_that_is_there_only_what_differs_is_asked_for(pfs: Pfs, incoming: Incoming, room: Room) -> None:
    old = b"a" * CHUNK_BYTES + b"b" * CHUNK_BYTES
    new = b"a" * CHUNK_BYTES + b"B" * CHUNK_BYTES
    pfs.write(ANN, f"{HOME}/x", [old], size=len(old))
    assert list(incoming.plan(ANN, f"{HOME}/x", len(new), digests(new))) == [1]
    assert content(pfs, f"{HOME}/x") == old
    incoming.fill(ANN, f"{HOME}/x", CHUNK_BYTES, new[CHUNK_BYTES:])
    assert content(pfs, f"{HOME}/x") == new
    assert (room.size, room.files) == (len(new), 1)


def test_what_another_file_left_of_its_upload_is_not_part_of_this_one(pfs: Pfs, incoming: Incoming) -> None:
    first, second = b"1" * (CHUNK_BYTES + 5), b"2" * (CHUNK_BYTES + 5)
    incoming.plan(ANN, f"{HOME}/x", len(first), digests(first))
    incoming.fill(ANN, f"{HOME}/x", 0, first[:CHUNK_BYTES])
    assert list(incoming.plan(ANN, f"{HOME}/x", len(second), digests(second))) == [0, 1]
    incoming.fill(ANN, f"{HOME}/x", CHUNK_BYTES, second[CHUNK_BYTES:])
    with pytest.raises(NotFoundError):
        pfs.stat(ANN, f"{HOME}/x")
    incoming.fill(ANN, f"{HOME}/x", 0, second[:CHUNK_BYTES])
    assert content(pfs, f"{HOME}/x") == second


@pytest.mark.parametrize(
    ("size", "chunks"), [(10, []), (10, ["x"]), (10, ["0" * 64, "0" * 64]), (0, ["0" * 64]), (-1, []), (2**41, [])]
)
def test_a_plan_that_does_not_fit_its_size_is_refused(incoming: Incoming, size: int, chunks: list[str]) -> None:
    with pytest.raises(InvalidError):
        incoming.plan(ANN, f"{HOME}/x", size, chunks)


@pytest.mark.parametrize(("start", "length"), [(-1, 2), (9, 2), (10, 1), (0, 11)])
def test_what_is_not_within_the_file_is_refused(pfs: Pfs, incoming: Incoming, start: int, length: int) -> None:
    incoming.begin(ANN, f"{HOME}/x", 10)
    with pytest.raises(InvalidError, match="not within its 10"):
        incoming.fill(ANN, f"{HOME}/x", start, b"x" * length)


def test_a_file_that_was_never_begun_cannot_be_filled(incoming: Incoming) -> None:
    with pytest.raises(NotFoundError, match="no such file or directory"):
        incoming.fill(ANN, f"{HOME}/x", 0, b"x")


def test_nobody_begins_fills_or_reads_another_users_file(pfs: Pfs, incoming: Incoming) -> None:
    incoming.begin(ANN, f"{HOME}/x", 3)
    with pytest.raises(ForbiddenError):
        incoming.begin(BOB, f"{HOME}/x", 3)
    with pytest.raises(ForbiddenError):
        incoming.fill(BOB, f"{HOME}/x", 0, b"bob")
    with pytest.raises(ForbiddenError):
        incoming.chunk(BOB, f"{HOME}/x", 0, 3)
    with pytest.raises(ForbiddenError):
        incoming.plan(BOB, f"{HOME}/x", 3, digests(b"bob"))


def test_a_folder_is_not_filled_as_a_file(pfs: Pfs, incoming: Incoming) -> None:
    pfs.make_folder(ANN, f"{HOME}/folder")
    with pytest.raises(ConflictError, match="is a folder"):
        incoming.begin(ANN, f"{HOME}/folder", 5)


def test_too_much_is_refused_before_anything_is_written(incoming: Incoming, room: Room, tmp_path: Path) -> None:
    room.limit = 100
    with pytest.raises(QuotaError):
        incoming.begin(ANN, f"{HOME}/x", 101)
    with pytest.raises(QuotaError):
        incoming.plan(ANN, f"{HOME}/x", 101, digests(b"x" * 101))
    assert not list((tmp_path / "drafts").iterdir())


def test_a_file_that_comes_whole_leaves_the_old_one_if_it_is_broken_off(pfs: Pfs, incoming: Incoming) -> None:
    pfs.write(ANN, f"{HOME}/x", [b"old"], size=3)

    def broken_off() -> None:
        with incoming.whole(ANN, f"{HOME}/x") as arriving:
            arriving.take(b"half of the n")
            raise FullError("no space left")

    with pytest.raises(FullError):
        broken_off()
    assert content(pfs, f"{HOME}/x") == b"old"
    with incoming.whole(ANN, f"{HOME}/x") as arriving:
        arriving.take(b"ne")
        arriving.take(b"w")
        assert arriving.finish().size == 3
    assert content(pfs, f"{HOME}/x") == b"new"


def test_errors_name_paths_as_their_caller_knows_them(pfs: Pfs) -> None:
    pfs.make_folder(ANN, f"{HOME}/folder/inner")
    with pytest.raises(ConflictError, match=f"^{HOME}/folder is a folder"):
        pfs.remove(ANN, f"{HOME}/folder")
    with pytest.raises(NotFoundError, match=f"^{HOME}/none: no such file or directory"):
        pfs.open(ANN, f"{HOME}/none")


def test_a_home_is_walked_with_what_jobs_left_page_by_page(pfs: Pfs, tmp_path: Path) -> None:
    pfs.write(ANN, f"{HOME}/a", [b"1"], size=1)
    pfs.write(ANN, f"{HOME}/z/b", [b"1"], size=1)
    model = tmp_path / "results" / "ann" / "job-1" / "rank-0" / "model"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"weights")
    expected = ["a", "output", "output/job-1", "output/job-1/rank-0", "output/job-1/rank-0/model", "z", "z/b"]
    assert [entry.path for entry in pfs.walk(ANN, HOME).items] == [f"{HOME}/{path}" for path in expected]
    for limit in (1, 2, 3, 5):
        found, cursor = [], None
        while True:
            page = pfs.walk(ANN, HOME, cursor=cursor, limit=limit)
            found += [entry.path for entry in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == [f"{HOME}/{path}" for path in expected], limit


def test_patterns_match_within_one_part_of_a_path(pfs: Pfs) -> None:
    for name in ("part-1", "part-2", "other", "deep/part-3", ".hidden"):
        pfs.write(ANN, f"{HOME}/{name}", [b"1"], size=1)

    def found(pattern: str) -> list[str]:
        return [entry.path.removeprefix(f"{HOME}/") for entry in pfs.glob(ANN, f"{HOME}/{pattern}")]

    assert found("part-*") == ["part-1", "part-2"]
    assert found("part-[^1]") == ["part-2"]
    assert found("*/part-*") == ["deep/part-3"]
    assert found("other") == ["other"]
    assert found("none*") == []
    with pytest.raises(ForbiddenError):
        pfs.glob(ANN, "/pfs/local/home/*/part-1")


def test_two_plans_for_one_path_never_become_one_file(pfs: Pfs, incoming: Incoming) -> None:
    first, second = b"A" * (CHUNK_BYTES + 5), b"B" * (CHUNK_BYTES + 5)
    path = f"{HOME}/x"
    incoming.plan(ANN, path, len(first), digests(first))
    incoming.plan(ANN, path, len(second), digests(second))
    with pytest.raises(ConflictError, match="another upload"):
        incoming.fill(ANN, path, 0, first[:CHUNK_BYTES])
    incoming.fill(ANN, path, 0, second[:CHUNK_BYTES])
    assert incoming.fill(ANN, path, CHUNK_BYTES, second[CHUNK_BYTES:])
    assert content(pfs, path) == second


def test_many_uploads_at_once_are_no_more_than_one_after_the_other(pfs: Pfs, incoming: Incoming, room: Room) -> None:
    room.limit = 100
    incoming.begin(ANN, f"{HOME}/first", 60)
    with pytest.raises(QuotaError):
        incoming.begin(ANN, f"{HOME}/second", 60)
    incoming.begin(ANN, f"{HOME}/first", 60)
    incoming.begin(ANN, f"{HOME}/second", 40)
    incoming.fill(ANN, f"{HOME}/first", 0, b"1" * 60)
    incoming.fill(ANN, f"{HOME}/second", 0, b"2" * 40)
    assert room.size == 100
    incoming.begin(ANN, f"{HOME}/second", 40)

    def one_more() -> None:
        with incoming.whole(ANN, f"{HOME}/third") as arriving:
            arriving.take(b"x")
            arriving.finish()

    with pytest.raises(QuotaError):
        one_more()


def test_a_file_may_be_replaced_by_one_of_its_size_though_there_is_no_more_room(pfs: Pfs, room: Room) -> None:
    pfs.write(ANN, f"{HOME}/x", [b"1" * 60], size=60)
    room.limit = 100
    pfs.write(ANN, f"{HOME}/x", [b"2" * 90], size=90)
    pfs.write_all(ANN, [(f"{HOME}/x", b"3" * 100)])
    assert room.size == 100
    with pytest.raises(QuotaError):
        pfs.write(ANN, f"{HOME}/x", [b"2" * 101], size=101)


def test_a_hole_gives_nothing_back_when_it_is_removed(pfs: Pfs, room: Room, tmp_path: Path) -> None:
    pfs.write(ANN, f"{HOME}/x", [b"1" * 60], size=60)
    with (tmp_path / "local" / "home" / "ann" / "hole").open("wb") as hole:
        hole.truncate(2**40)
    pfs.remove(ANN, f"{HOME}/hole")
    assert room.size == 60
