"""Files that are written at offsets, and are nobody's file until they are whole."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.files.drafts import Draft, Drafts
from paddlecloud.files.written import merged
from paddlecloud.model.errors import ConflictError, TooLargeError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import CHUNK_BYTES, Kind

NAME = "/pfs/local/home/ann/model"


class Base:
    """A file that is there, as a store opens it."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.etag = '"1"'
        self.entry = FileEntry(path="x", size=len(content), modified_at=datetime.now(UTC), kind=Kind.FILE)

    def read(self, start: int, end: int) -> bytes:
        return self._content[start:end]

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        yield self._content[start:end]

    def close(self) -> None:
        return None


@pytest.fixture
def drafts(tmp_path: Path) -> Drafts:
    return Drafts(tmp_path / "drafts", boot="boot-1")


def taken(draft: Draft) -> bytes:
    with draft.taken() as whole:
        return whole.read_bytes()


def test_a_file_is_whole_when_each_of_its_bytes_was_written_in_any_order(drafts: Drafts) -> None:
    draft = drafts.begin(NAME, 10, owner="ann")
    assert not draft.write(6, b"4567", None)
    assert not draft.write(0, b"abc", None)
    assert draft.write(3, b"xyz", None)
    assert taken(draft) == b"abcxyz4567"
    assert drafts.find(NAME) is None


def test_what_was_not_written_is_still_to_be_sent_even_if_it_is_zeros(drafts: Drafts) -> None:
    draft = drafts.begin(NAME, 8, owner="ann")
    draft.write(0, b"\0\0\0\0", None)
    assert draft.read(0, 4, None) == b"\0\0\0\0"
    assert draft.read(4, 8, None) is None
    assert draft.read(2, 6, None) is None
    assert draft.read(8, 12, None) == b""


def test_an_upload_that_was_broken_off_goes_on(drafts: Drafts, tmp_path: Path) -> None:
    drafts.begin(NAME, 8, owner="ann").write(0, b"abcd", None)
    again = Drafts(tmp_path / "drafts", boot="boot-1").begin(NAME, 8, owner="ann")
    assert again.read(0, 4, None) == b"abcd"
    assert again.write(4, b"efgh", None)
    assert taken(again) == b"abcdefgh"


@pytest.mark.parametrize(("size", "boot"), [(9, "boot-1"), (8, "boot-2")])
def test_a_draft_of_another_size_or_of_another_boot_is_forgotten(
    drafts: Drafts, tmp_path: Path, size: int, boot: str
) -> None:
    drafts.begin(NAME, 8, owner="ann").write(0, b"abcd", None)
    assert Drafts(tmp_path / "drafts", boot=boot).begin(NAME, size, owner="ann").read(0, 4, None) is None


def test_a_draft_with_a_base_is_whole_when_its_end_was_sent(drafts: Drafts) -> None:
    base = Base(b"aaaabbbbcccc")
    draft = drafts.begin(NAME, 12, owner="ann", based=True)
    assert draft.read(0, 4, base) == b"aaaa"
    assert draft.read(8, 12, base) is None, "the end is never said to be the same"
    assert not draft.write(4, b"BBBB", base)
    assert draft.read(0, 4, base) == b"aaaa"
    assert draft.read(4, 8, base) == b"BBBB"
    assert draft.write(8, b"cccc", base)
    assert draft.changed()
    assert taken(draft) == b"aaaaBBBBcccc"


def test_a_draft_that_says_what_is_there_already_changes_nothing(drafts: Drafts) -> None:
    base = Base(b"aaaabbbb")
    draft = drafts.begin(NAME, 8, owner="ann", based=True)
    assert draft.write(4, b"bbbb", base)
    assert not draft.changed()


def test_a_draft_that_cannot_become_the_file_stays_one(drafts: Drafts) -> None:
    draft = drafts.begin(NAME, 4, owner="ann")
    draft.write(0, b"abcd", None)
    with pytest.raises(OSError, match="full"), draft.taken():
        raise OSError("full")
    again = drafts.find(NAME)
    assert again is not None
    assert again.read(0, 4, None) == b"abcd"


def test_many_small_pieces_leave_a_short_list(drafts: Drafts, tmp_path: Path) -> None:
    draft = drafts.begin(NAME, 2000, owner="ann")
    assert [draft.write(at, b"x", None) for at in range(2000)] == [False] * 1999 + [True]
    assert max(len(file.read_bytes().splitlines()) for file in tmp_path.rglob("ranges")) < 300


def test_what_nobody_went_on_with_expires(drafts: Drafts, tmp_path: Path) -> None:
    drafts.begin(NAME, 4, owner="ann")
    drafts.expire(0.0)
    assert drafts.find(NAME) is not None
    drafts.expire(datetime.now(UTC).timestamp() + 10)
    assert drafts.find(NAME) is None
    assert not list((tmp_path / "drafts").iterdir())


def test_a_scratch_file_is_gone_when_its_upload_is(drafts: Drafts, tmp_path: Path) -> None:
    def broken_off() -> None:
        with drafts.scratch("ann") as scratch:
            scratch.write(b"half")
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken_off()
    assert not list((tmp_path / "drafts").iterdir())


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)).map(sorted).map(tuple), max_size=20))
def test_merged_ranges_are_the_same_bytes(ranges: list[tuple[int, int]]) -> None:
    found = merged(ranges)
    assert {at for one in found for at in range(*one)} == {at for one in ranges for at in range(*one)}
    assert found == sorted(found)
    assert all(before[1] < after[0] for before, after in pairwise(found))


def test_what_was_written_to_lately_does_not_expire_with_its_folder(drafts: Drafts, tmp_path: Path) -> None:
    draft = drafts.begin(NAME, 8, owner="ann")
    (folder,) = (tmp_path / "drafts").iterdir()
    draft.write(0, b"abcd", None)
    os.utime(folder, (0, 0))
    drafts.expire(datetime.now(UTC).timestamp() - 10)
    assert drafts.find(NAME) is not None


def test_a_line_that_a_full_disk_cut_has_its_piece_sent_again(drafts: Drafts, tmp_path: Path) -> None:
    draft = drafts.begin(NAME, 8, owner="ann")
    draft.write(0, b"abcd", None)
    (ranges,) = (tmp_path / "drafts").rglob("ranges")
    ranges.write_bytes(b"0 4\n4")
    assert draft.read(0, 4, None) == b"abcd"
    assert not draft.write(4, b"efgh", None), "glued to what was cut, it tells nothing"
    assert draft.write(4, b"efgh", None)


def test_a_draft_that_was_begun_anew_takes_nothing_of_the_one_before(drafts: Drafts) -> None:
    first = drafts.begin(NAME, 8, owner="ann")
    drafts.drop(NAME)
    second = drafts.begin(NAME, 8, owner="ann")
    with pytest.raises(ConflictError, match="another upload"):
        first.write(0, b"old!", None)
    assert first.read(0, 4, None) is None
    assert second.read(0, 4, None) is None
    drafts.drop(NAME)
    with pytest.raises(ConflictError, match="another upload"):
        second.write(0, b"old!", None)


def test_pieces_must_be_those_that_were_said_to_come(drafts: Drafts) -> None:
    def digests(*pieces: bytes) -> list[str]:
        return [hashlib.sha256(piece).hexdigest() for piece in pieces]

    one, two = b"1" * CHUNK_BYTES, b"2" * 10
    draft = drafts.begin(NAME, len(one + two), owner="ann", digests=digests(one, two))
    for start, wrong in ((0, two), (CHUNK_BYTES, b"3" * 10), (1, one[1:])):
        with pytest.raises(ConflictError, match="does not match its announced digest"):
            draft.write(start, wrong, None)
    assert not draft.write(CHUNK_BYTES, two, None)
    other = drafts.begin(NAME, len(one + two), owner="ann", digests=digests(one, b"3" * 10))
    with pytest.raises(ConflictError):
        draft.write(0, one, None)
    assert not other.write(0, one, None)
    assert other.write(CHUNK_BYTES, b"3" * 10, None)


def test_what_an_owner_has_begun_is_known_also_after_a_restart(drafts: Drafts, tmp_path: Path) -> None:
    drafts.begin(NAME, 100, owner="ann")
    drafts.begin("another", 50, owner="ann")
    drafts.begin("bobs", 7, owner="bob")
    (tmp_path / "drafts" / ".new-left-by-a-crash").write_bytes(b"x")
    again = Drafts(tmp_path / "drafts", boot="boot-1")
    for known in (drafts, again):
        assert (known.held("ann"), known.held("ann", but=NAME), known.held("bob")) == (150, 50, 7)
    assert not (tmp_path / "drafts" / ".new-left-by-a-crash").exists()
    with again.scratch("ann") as scratch:
        scratch.write(b"x" * 30)
        assert again.held("ann") == 180
    again.drop(NAME)
    assert again.held("ann") == 50


def test_nobody_begins_more_than_a_thousand(drafts: Drafts) -> None:
    for number in range(1000):
        drafts.begin(str(number), 1, owner="ann")
    with pytest.raises(TooLargeError, match="unfinished uploads"):
        drafts.begin("one more", 1, owner="ann")
    drafts.begin("one more", 1, owner="bob")


def test_pieces_that_do_not_touch_are_limited(drafts: Drafts, tmp_path: Path) -> None:
    draft = drafts.begin(NAME, 100_000, owner="ann")
    draft.write(0, b"x", None)
    (ranges,) = (tmp_path / "drafts").rglob("ranges")
    ranges.write_bytes(b"".join(b"%d %d\n" % (at, at + 1) for at in range(0, 20_000, 2)))
    with pytest.raises(TooLargeError, match="more than 10000 separate pieces"):
        draft.write(30_000, b"x", None)
