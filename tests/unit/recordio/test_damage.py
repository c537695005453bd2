"""Damaged and hostile files: an error that says where, no memory by a header's word, and the rest for who asks."""

from __future__ import annotations

import os
import re
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pytest

from paddlecloud.recordio import (
    Compressor,
    CorruptError,
    ForeignError,
    IndexedReader,
    OversizedError,
    Reader,
    Skipped,
    TruncatedError,
    Writer,
    scan,
)
from paddlecloud.recordio.chunk import MAGIC, Header
from paddlecloud.recordio.scan import LIMIT_BYTES, Buffers, ChunkFile

RECORDS = [b"record %d" % number * 3 for number in range(12)]
SMALL = 2 << 20
LARGE = 100_000  # a record that is read straight into its bytes


@pytest.fixture(params=list(Compressor), ids=lambda compressor: compressor.name)
def whole(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    """Six chunks of two records."""
    file = tmp_path / "whole"
    with Writer(file, compressor=request.param, chunk_bytes=70) as writer:
        writer.write_all(RECORDS)
    with IndexedReader(file) as indexed:
        assert len(indexed.chunks) == 6
    return file.read_bytes()


def test_every_bent_bit_is_found_before_a_wrong_record_is_given(whole: bytes, tmp_path: Path) -> None:
    for bit in range(8 * len(whole)):
        bent = bytearray(whole)
        bent[bit // 8] ^= 1 << bit % 8
        read, error = _until_error(Reader(_file(tmp_path, bytes(bent))))
        assert read == RECORDS[: len(read)]
        assert error is not None, f"bit {bit} was bent and nobody saw it"


def test_a_file_cut_off_anywhere_gives_its_whole_chunks_and_says_where_it_ends(whole: bytes, tmp_path: Path) -> None:
    ends = _ends(whole, tmp_path)
    for size in range(len(whole)):
        file = _file(tmp_path, whole[:size])
        before = [end for end in ends if end <= size]
        if size not in (0, *ends):
            offset = before[-1] if before else 0
            with pytest.raises(TruncatedError, match=f"chunk {len(before)} at byte {offset}: .* truncated"):
                list(Reader(file))
        assert list(Reader(file, report=lambda _: None)) == RECORDS[: 2 * len(before)]


def test_who_asks_for_the_rest_gets_it_and_a_report(whole: bytes, tmp_path: Path) -> None:
    ends = [0, *_ends(whole, tmp_path)]
    for chunk in range(6):
        for place in (0, 5, 9, 13, 17, 22):  # magic, checksum, compressor, size, count, payload
            bent = bytearray(whole)
            bent[ends[chunk] + place] ^= 0x40
            reports: list[Skipped] = []
            read = list(Reader(_file(tmp_path, bytes(bent)), report=reports.append))
            assert read == RECORDS[: 2 * chunk] + RECORDS[2 * chunk + 2 :]
            assert [(one.error.offset, one.skipped_bytes) for one in reports] == [
                (ends[chunk], ends[chunk + 1] - ends[chunk])
            ]


def test_trainers_agree_on_whose_chunk_is_whose_in_a_damaged_file(whole: bytes, tmp_path: Path) -> None:
    ends = _ends(whole, tmp_path)
    bent = bytearray(whole)
    bent[ends[0] + 13] ^= 0x01  # its size: it now ends where no chunk begins
    bent[ends[2]] ^= 0x01
    file = _file(tmp_path, bytes(bent) + b"rubbish")
    all_of_it = list(Reader(file, report=lambda _: None))
    shares = [
        list(Reader(file, report=lambda _: None, by="chunk", trainer_id=trainer, trainer_count=3))
        for trainer in range(3)
    ]
    assert sorted(chain.from_iterable(shares)) == sorted(all_of_it) == sorted(RECORDS[:2] + RECORDS[4:6] + RECORDS[8:])


@pytest.mark.parametrize("compressor", Compressor)
def test_a_header_that_lies_of_its_size_takes_no_memory(tmp_path: Path, compressor: Compressor) -> None:
    file = _file(tmp_path, Header(MAGIC, 0, compressor, 0xFFFF_FFF0, 0x3FFF_FFF0).pack() + b"x" * 100)
    with _little_memory() as buffers, pytest.raises(TruncatedError, match="its payload ends at byte 4294967300"):
        _read(file, buffers)


@pytest.mark.parametrize("compressor", Compressor)
def test_a_header_that_lies_of_its_count_takes_no_memory(tmp_path: Path, compressor: Compressor) -> None:
    with Writer(tmp_path / "honest", compressor=compressor) as writer:
        writer.write(b"one")
    honest = (tmp_path / "honest").read_bytes()
    file = _file(tmp_path, honest[:16] + struct.pack("<I", 0xFFFF_FFFF) + honest[20:])
    with _little_memory() as buffers, pytest.raises(CorruptError, match="claims|extends past"):
        _read(file, buffers)


def test_more_than_the_limit_is_not_decompressed(tmp_path: Path) -> None:
    for compressor in (Compressor.SNAPPY, Compressor.GZIP):
        with Writer(tmp_path / "bomb", compressor=compressor) as writer:
            writer.write(bytes(30 << 20))
        told = "read it with a larger limit_bytes"
        with _little_memory(4 * SMALL) as buffers, pytest.raises(OversizedError, match=told):
            _read(tmp_path / "bomb", buffers, limit_bytes=2 << 20)


def test_more_than_the_limit_is_not_read_either(tmp_path: Path) -> None:
    with open(tmp_path / "holes", "wb") as file:  # as large as it says, and nothing on the disk
        file.write(Header(MAGIC, 0, 0, 3 << 30, 1).pack())
        file.truncate((3 << 30) + 20)
    with _little_memory() as buffers, pytest.raises(OversizedError):
        _read(tmp_path / "holes", buffers)


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        (b"nonsense", "is not framed snappy"),
        (b"\xff\x06\0\0sNaPpY\x00\xff\xff\xff", "extends past its end"),
        (b"\xff\x06\0\0sNaPpY\x00\x08\0\0crc4\xff\xff\xff\x7f", "no valid snappy block"),
        (b"\xff\x06\0\0sNaPpY\x02\x04\0\0abcd", "no valid snappy block"),
        (b"\xff\x06\0\0sNaPpY\x00\x09\0\0crc4\x05abcd", "snappy cannot read it"),
    ],
)
def test_bent_snappy_with_a_right_checksum_is_refused(tmp_path: Path, payload: bytes, told: str) -> None:
    with pytest.raises(CorruptError, match=told):
        list(Reader(_file(tmp_path, _chunk(payload, Compressor.SNAPPY))))


@pytest.mark.parametrize(
    ("payload", "count", "told"),
    [
        (struct.pack("<I", 9) + b"short", 1, "the record at byte 0 of its payload extends past"),
        (struct.pack("<I", 5) + b"fives", 2, "extends past"),
        (struct.pack("<I", 2) + b"fives", 1, "but 3 bytes follow them"),
        (b"x", 0, "but 1 bytes follow them"),
        (struct.pack("<I", 0xFFFF_FFFF) + b"x", 1, "extends past"),
    ],
)
def test_lengths_that_do_not_add_up_are_refused(tmp_path: Path, payload: bytes, count: int, told: str) -> None:
    with pytest.raises(CorruptError, match=told):
        list(Reader(_file(tmp_path, _chunk(payload, Compressor.NONE, count))))


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (0, "it begins with"),
        (4, "its checksum is"),
        (20, "its checksum is"),  # a length, and its highest byte
        (23, "its checksum is"),
        (24 + LARGE, "its checksum is"),
        (24 + LARGE + 3, "its checksum is"),
        (24, "its checksum is"),  # the first and the last byte of records
        (-1, "its checksum is"),
    ],
)
def test_nothing_is_given_of_a_chunk_of_large_records_that_is_bent(tmp_path: Path, at: int, told: str) -> None:
    with Writer(tmp_path / "whole", compressor=Compressor.NONE) as writer:
        writer.write_all([b"a" * LARGE, b"b" * LARGE])
    bent = bytearray((tmp_path / "whole").read_bytes())
    bent[at] ^= 0x10
    read, error = _until_error(Reader(_file(tmp_path, bytes(bent))))
    assert not read
    assert error is not None
    assert re.search(told, str(error))


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        ((LARGE, LARGE + 1), "the record at byte 100004 of its payload extends past"),
        ((LARGE, LARGE - 7), "but 7 bytes follow them"),
        ((0xFFFF_FFFF, LARGE), "the record at byte 0 of its payload extends past"),
    ],
)
def test_lengths_of_large_records_that_do_not_add_up_are_refused(
    tmp_path: Path, lengths: tuple[int, int], told: str
) -> None:
    payload = b"".join(struct.pack("<I", length) + bytes(LARGE) for length in lengths)
    with _little_memory() as buffers, pytest.raises(CorruptError, match=told):
        _read(_file(tmp_path, _chunk(payload, Compressor.NONE, 2)), buffers)


def test_what_is_behind_large_records_is_in_the_checksum_too(tmp_path: Path) -> None:
    payload = struct.pack("<I", LARGE) + bytes(LARGE)
    content = Header(MAGIC, zlib.crc32(payload), Compressor.NONE, len(payload) + 7, 1).pack() + payload + b"unsaid."
    with pytest.raises(CorruptError, match="its checksum is"):
        list(Reader(_file(tmp_path, content)))


def test_a_file_of_large_records_that_is_cut_while_it_is_read_is_told_as_such(tmp_path: Path) -> None:
    with Writer(tmp_path / "file", compressor=Compressor.NONE, chunk_bytes=2 * LARGE) as writer:
        writer.write_all([bytes(LARGE)] * 4)
    reader = Reader(tmp_path / "file")
    assert reader.read() == bytes(LARGE)
    os.truncate(tmp_path / "file", 3 * LARGE)
    assert reader.read() == bytes(LARGE)
    with pytest.raises(TruncatedError, match="the file was truncated while it was read"):
        reader.read()


def test_records_of_one_size_whose_lengths_lie_are_not_taken_for_such(tmp_path: Path) -> None:
    payload = struct.pack("<I", 4) + b"abcd" + struct.pack("<I", 3) + b"efgh"
    with pytest.raises(CorruptError, match="but 1 bytes follow them"):
        list(Reader(_file(tmp_path, _chunk(payload, Compressor.NONE, 2))))


def test_fluids_own_format_is_told_by_its_name(tmp_path: Path) -> None:
    payload = struct.pack("<I", 3) + b"one"
    file = _file(tmp_path, struct.pack("<5I", MAGIC, 1, zlib.crc32(payload), 0, len(payload)) + payload)
    with pytest.raises(ForeignError, match="paddle.fluid's own RecordIO"):
        list(Reader(file))


@pytest.mark.timeout(60)
def test_a_file_made_to_be_searched_for_ever_is_read_in_a_moment(tmp_path: Path) -> None:
    size = 1 << 20
    for unit in (
        Header(MAGIC, 1, 0, 0, 0).pack()[:4],
        Header(MAGIC, 1, 0, size // 2, 0).pack(),  # each wants half of the file summed
        _chunk(b"", Compressor.NONE, 0) + Header(MAGIC, 1, 0, size // 2, 0).pack() + b"xyz",
    ):
        file = _file(tmp_path, unit * (size // len(unit)))
        reports: list[Skipped] = []
        with ChunkFile(file) as opened:
            assert list(chain.from_iterable(scan.read(opened, lambda _: True, reports.append))) == []
            assert opened.doubted_bytes <= 2 * size, "what is summed in vain is limited"
        assert reports


def test_a_folder_or_a_pipe_is_no_file_of_records(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Reader(tmp_path)


@contextmanager
def _little_memory(limit: int = SMALL) -> Iterator[Buffers]:
    """Buffers to read with: their pages are the system's, and not in what Python counts."""
    buffers = Buffers()
    tracemalloc.start()
    try:
        yield buffers
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    taken = peak + len(buffers.stored)
    assert taken < limit, f"{taken / 2**20:.0f} MiB"


def _read(file: Path, buffers: Buffers, limit_bytes: int = LIMIT_BYTES) -> list[bytes]:
    with ChunkFile(file, buffers=buffers, limit_bytes=limit_bytes) as opened:
        return list(chain.from_iterable(scan.read(opened, lambda _: True)))


def _until_error(reader: Reader) -> tuple[list[bytes], CorruptError | None]:
    read: list[bytes] = []
    try:
        read.extend(reader)
    except CorruptError as error:
        return read, error
    return read, None


def _ends(whole: bytes, folder: Path) -> list[int]:
    with IndexedReader(_file(folder, whole)) as indexed:
        return [place.end for place in indexed.chunks]


def _chunk(payload: bytes, compressor: Compressor, count: int = 1) -> bytes:
    return Header(MAGIC, zlib.crc32(payload), compressor, len(payload), count).pack() + payload


def _file(folder: Path, content: bytes) -> Path:
    file = folder / "file"
    file.write_bytes(content)
    return file
