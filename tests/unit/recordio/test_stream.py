"""Records come back as they were written, all of them or a trainer's share, in order or by number."""

from __future__ import annotations

import array
import os
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recordio
from paddlecloud.recordio import Compressor, IndexedReader, Reader, TruncatedError, Writer
from paddlecloud.recordio.stream import By

records_of_any_size = st.lists(st.binary(max_size=300), max_size=40)
records_of_one_size = st.integers(0, 50).flatmap(lambda size: st.lists(st.binary(min_size=size, max_size=size)))
some_records = records_of_any_size | records_of_one_size
quick = settings(deadline=None, max_examples=60)


@quick
@given(records=some_records, compressor=st.sampled_from(Compressor), chunk_bytes=st.integers(0, 1000))
def test_what_was_written_is_read(records: list[bytes], compressor: Compressor, chunk_bytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = _written(Path(folder) / "file", records, compressor=compressor, chunk_bytes=chunk_bytes)
        assert list(Reader(file)) == records
        with IndexedReader(file) as indexed:
            assert len(indexed) == len(records)
            assert [indexed[number] for number in range(len(records))] == records
            assert indexed[1:-1] == records[1:-1]
            assert list(indexed.range(2, 7)) == records[2:7]
            assert all(sum(map(len, indexed.chunk(n)[:-1])) <= chunk_bytes for n in range(len(indexed.chunks)))


@quick
@given(
    files=st.lists(some_records, min_size=1, max_size=4),
    trainers=st.integers(1, 4),
    by=st.sampled_from(["file", "chunk", "record"]),
)
def test_trainers_share_every_record_and_none_twice(files: list[list[bytes]], trainers: int, by: By) -> None:
    numbered = [
        [b"%d.%d " % (file, number) + record for number, record in enumerate(records)]
        for file, records in enumerate(files)
    ]
    with tempfile.TemporaryDirectory() as folder:
        for number, records in enumerate(numbered):
            _written(Path(folder) / f"file-{number}", records, chunk_bytes=200)
        shares = [
            list(Reader(f"{folder}/file-*", trainer_id=trainer, trainer_count=trainers, by=by))
            for trainer in range(trainers)
        ]
    assert sorted(record for share in shares for record in share) == sorted(chain.from_iterable(numbered))
    if by == "file":
        assert shares[0] == list(chain.from_iterable(numbered[::trainers]))
    if by == "record":
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_files_of_one_chunk_go_round_the_trainers_too(tmp_path: Path) -> None:
    for number in range(4):
        _written(tmp_path / f"{number}", [b"%d" % number])
    assert list(Reader(f"{tmp_path}/*", trainer_id=1, trainer_count=2, by="chunk")) == [b"1", b"3"]


def test_the_originals_names_read_and_write(tmp_path: Path) -> None:
    writer = recordio.writer(str(tmp_path / "a-0"))
    writer.write(b"one")
    writer.write(b"")
    writer.close()
    _written(tmp_path / "a-1", [b"two"])
    _written(tmp_path / "b", [b"three"])
    reader = recordio.reader(f"{tmp_path}/a-*,{tmp_path}/b")
    assert [reader.read() for _ in range(6)] == [b"one", b"", b"two", b"three", None, None]


def test_each_loop_begins_anew_and_two_do_not_disturb_each_other(tmp_path: Path) -> None:
    records = [b"%d" % number for number in range(100)]
    reader = Reader(_written(tmp_path / "file", records, chunk_bytes=20))
    assert list(zip(reader, reader, strict=True)) == list(zip(records, records, strict=True))
    assert list(reader) == records


def test_buffers_are_records_and_texts_and_numbers_are_not(tmp_path: Path) -> None:
    with Writer(tmp_path / "file") as writer:
        writer.write(bytearray(b"changed later"))  # type: ignore[arg-type]
        writer.write(memoryview(array.array("I", [1, 2])))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a record must be bytes, not str"):
            writer.write("text")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a record must be bytes, not int"):
            writer.write(5)  # type: ignore[arg-type]
    assert list(Reader(tmp_path / "file")) == [b"changed later", b"\x01\0\0\0\x02\0\0\0"]


@settings(deadline=None, max_examples=40)
@given(
    sizes=st.lists(st.integers(0, 300_000) | st.sampled_from([65_532, 65_536, 131_068, 524_284, 700_000]), max_size=12),
    compressor=st.sampled_from(Compressor),
)
def test_a_chunk_that_went_out_in_pieces_is_that_of_one_piece(sizes: list[int], compressor: Compressor) -> None:
    text = b"".join(b"%d, " % number for number in range(150_000))
    records = [text[:size] for size in sizes]
    payload = b"".join(struct.pack("<I", len(record)) + record for record in records)
    with tempfile.TemporaryDirectory() as folder:
        file = _written(Path(folder) / "file", records, compressor=compressor)
        assert list(Reader(file)) == records
        if compressor is not Compressor.GZIP and records:
            stored = bytes(cramjam.snappy.compress(payload)) if compressor is Compressor.SNAPPY else payload
            header = struct.pack("<5I", 0x01020304, zlib.crc32(stored), compressor, len(stored), len(records))
            assert file.read_bytes() == header + stored


@quick
@given(
    runs=st.lists(st.tuples(st.sampled_from([0, 1, 3, 200, 1024, 1025, 70_000]), st.integers(1, 1500)), max_size=5),
    compressor=st.sampled_from([Compressor.NONE, Compressor.SNAPPY]),
    chunk_bytes=st.sampled_from([0, 1000, 300_000, 32 << 20]),
)
def test_records_written_together_are_those_written_one_by_one(
    runs: list[tuple[int, int]], compressor: Compressor, chunk_bytes: int
) -> None:
    records = [bytes([number % 251]) * size for size, count in runs for number in range(count if size < 2000 else 3)]
    with tempfile.TemporaryDirectory() as folder:
        together = _written(Path(folder) / "together", records, compressor=compressor, chunk_bytes=chunk_bytes)
        with Writer(Path(folder) / "apart", compressor=compressor, chunk_bytes=chunk_bytes) as writer:
            for record in records:
                writer.write(record)
        assert together.read_bytes() == (Path(folder) / "apart").read_bytes()
        assert list(Reader(together)) == records


def test_what_was_given_before_a_failure_is_written(tmp_path: Path) -> None:
    def failing() -> Iterator[bytes]:
        yield from [b"one", b"two", b"six"]
        raise RuntimeError("no more")

    with Writer(tmp_path / "file") as writer:
        with pytest.raises(RuntimeError, match="no more"):
            writer.write_all(failing())
        with pytest.raises(TypeError, match="a record must be bytes, not int"):
            writer.write_all([b"ten", b"fun", 5])  # type: ignore[list-item]
        writer.write_all([b"abc", b"def", bytearray(b"ghi")])  # type: ignore[list-item]
    assert list(Reader(tmp_path / "file")) == [b"one", b"two", b"six", b"ten", b"fun", b"abc", b"def", b"ghi"]


def test_others_among_many_records_of_one_size_are_not_taken_for_such(tmp_path: Path) -> None:
    alike = [b"%200d" % number for number in range(1000)]
    for place in (0, 1, 100, 254, 255, 256, 700, 998):
        records = [
            *alike[:place],
            b"short" * 20,
            b"long" * 75,
            *alike[place + 2 :],
        ]  # as many bytes as two of the others
        assert list(Reader(_written(tmp_path / "file", records, compressor=Compressor.NONE))) == records


def test_large_records_that_wait_for_their_checksum_are_given_in_order(tmp_path: Path) -> None:
    records = [bytes([number]) * size for number, size in enumerate([70_000, 0, 200_000, 5, 3_000_000, 9_000_000] * 3)]
    for chunk_bytes in (0, 1 << 20, 4 << 20, 32 << 20):
        file = _written(tmp_path / f"{chunk_bytes}", records, compressor=Compressor.NONE, chunk_bytes=chunk_bytes)
        assert list(Reader(file)) == records
        with IndexedReader(file) as indexed:
            assert indexed[7] == records[7]


def test_who_forks_does_not_disturb_the_other_by_what_readers_pass_on(tmp_path: Path) -> None:
    records = [b"%6d" % number for number in range(5000)]
    mine = _written(tmp_path / "mine", records, compressor=Compressor.NONE)
    others = _written(tmp_path / "others", [b"others"] * 5000, compressor=Compressor.NONE)
    assert list(Reader(mine)) == records  # its buffers are for the next reader, on both sides
    begin, begun = os.pipe()
    child = os.fork()
    if not child:
        os.read(begin, 1)
        os._exit(0 if set(Reader(others)) == {b"others"} else 1)
    reader = iter(Reader(mine))
    read = [next(reader)]
    os.write(begun, b"!")
    assert os.waitpid(child, 0)[1] == 0
    assert read + list(reader) == records


def test_a_chunk_that_was_never_ended_is_told_as_such(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "file", compressor=Compressor.NONE)
    writer.write(b"one")
    writer.flush()
    writer.write_all([bytes(100_000)] * 20)
    left = (tmp_path / "file").read_bytes()
    writer.close()
    (tmp_path / "left").write_bytes(left)
    reader = Reader(tmp_path / "left")
    assert reader.read() == b"one"
    with pytest.raises(TruncatedError, match="chunk 1 at byte 27: its header was never written"):
        reader.read()
    assert len(list(Reader(tmp_path / "file"))) == 21


def test_a_record_larger_than_the_limit_has_a_chunk_of_its_own(tmp_path: Path) -> None:
    sizes = [10, 500_000, 10]
    file = _written(tmp_path / "file", [bytes(size) for size in sizes], chunk_bytes=100)
    with IndexedReader(file) as indexed:
        assert [place.header.records for place in indexed.chunks] == [1, 1, 1]
        assert [len(record) for record in indexed] == sizes


def test_what_was_flushed_can_be_read_while_more_is_written(tmp_path: Path) -> None:
    with Writer(tmp_path / "file") as writer:
        writer.write(b"one")
        writer.flush()
        assert list(Reader(tmp_path / "file")) == [b"one"]
        writer.write(b"two")
    assert list(Reader(tmp_path / "file")) == [b"one", b"two"]


def test_mistakes_are_told_in_words(tmp_path: Path) -> None:
    file = _written(tmp_path / "file", [b"one"])
    with pytest.raises(FileNotFoundError, match="no file matches"):
        Reader(tmp_path / "other-*")
    with pytest.raises(ValueError, match="trainer_id is 2 and must be 0 to 1"):
        Reader(file, trainer_id=2, trainer_count=2)
    with pytest.raises(ValueError, match="chunk_bytes is -1"):
        Writer(tmp_path / "new", chunk_bytes=-1)
    closed = Writer(tmp_path / "closed")
    closed.close()
    for record in (b"one", b""):
        with pytest.raises(ValueError, match="is closed"):
            closed.write(record)
    with pytest.raises(ValueError, match="is closed"):
        closed.flush()
    with IndexedReader(file) as indexed, pytest.raises(IndexError, match="has 1 records: there is no record 7"):
        indexed[7]


def test_a_file_whose_name_has_a_comma_is_one_file(tmp_path: Path) -> None:
    assert list(Reader(str(_written(tmp_path / "a,b", [b"one"])))) == [b"one"]


@pytest.mark.parametrize("package", ["cramjam", "isal"])
def test_without_the_extra_all_works(tmp_path: Path, package: str) -> None:
    records = [b"one" * 40_000, os.urandom(70_001), b"", b"abcabcabc" * 9]
    _written(tmp_path / "theirs", records)
    program = f"""
import sys
sys.modules[{package!r}] = None
from paddlecloud.recordio import Reader, Writer
records = list(Reader("theirs"))
with Writer("ours") as writer:
    writer.write_all(records)
assert list(Reader("ours")) == records
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(Reader(str(tmp_path / "ours"))) == records


def _written(file: Path, records: list[bytes], **settings: object) -> Path:
    with Writer(file, **settings) as writer:  # type: ignore[arg-type]
        writer.write_all(records)
    return file
