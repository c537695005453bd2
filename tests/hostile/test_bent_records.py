"""Files of records that a machine bent: an error that says where, or what was written, and always an end."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlecloud.recordio import Compressor, CorruptError, IndexedReader, Reader, Skipped, Writer
from paddlecloud.recordio.chunk import MAGIC_BYTES

CALLS = int(os.environ.get("FUZZ_CALLS", "150"))
fuzz = settings(max_examples=CALLS, deadline=None, database=None, suppress_health_check=list(HealthCheck))

Bend = Callable[[bytes], bytes]


@st.composite
def files(draw: st.DrawFn) -> tuple[list[bytes], bytes]:
    """Records, some with what looks like a header in them, and their file."""
    records = draw(st.lists(st.binary(max_size=60) | st.just(MAGIC_BYTES + bytes(16)), min_size=1, max_size=12))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        compressor, chunk_bytes = draw(st.sampled_from(Compressor)), draw(st.integers(0, 150))
        with Writer(file, compressor=compressor, chunk_bytes=chunk_bytes) as writer:
            writer.write_all(records)
        return records, file.read_bytes()


@st.composite
def bends(draw: st.DrawFn) -> Bend:
    at, size = draw(st.floats(0, 1)), draw(st.integers(1, 40))
    put = draw(st.binary(min_size=1, max_size=30) | st.sampled_from([MAGIC_BYTES, b"\xff" * 4, bytes(4), bytes(40)]))
    kind = draw(st.sampled_from(["replace", "put in", "cut out", "cut off", "twice"]))

    def bend(content: bytes) -> bytes:
        place = int(at * len(content))
        before, after = content[:place], content[place:]
        return {
            "replace": before + put + after[len(put) :],
            "put in": before + put + after,
            "cut out": before + after[size:],
            "cut off": before,
            "twice": content + after,
        }[kind]

    return bend


@pytest.mark.slow
@pytest.mark.timeout(7200)
@fuzz
@given(made=files(), bent=st.lists(bends(), min_size=1, max_size=3))
def test_a_bent_file_is_told_or_gives_only_what_was_written(made: tuple[list[bytes], bytes], bent: list[Bend]) -> None:
    records, content = made
    for bend in bent:
        content = bend(content)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.write_bytes(content)
        read, fault = _until_fault(Reader(file))
        assert set(read) <= set(records)
        assert fault is None or (fault.path == str(file) and 0 <= fault.offset <= len(content))
        _read_on(file, set(records))
        try:
            with IndexedReader(file) as indexed:
                assert set(indexed) <= set(records)
        except CorruptError:
            pass


@pytest.mark.slow
@pytest.mark.timeout(7200)
@fuzz
@given(content=st.lists(st.binary(max_size=40) | st.just(MAGIC_BYTES) | st.just(bytes(4)), max_size=20).map(b"".join))
def test_bytes_of_any_kind_are_read_to_their_end(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.write_bytes(content)
        reports: list[Skipped] = []
        list(Reader(file, report=reports.append))
        assert sum(one.skipped_bytes for one in reports) <= len(content)


def _until_fault(reader: Reader) -> tuple[list[bytes], CorruptError | None]:
    read: list[bytes] = []
    try:
        read.extend(reader)
    except CorruptError as fault:
        return read, fault
    return read, None


def _read_on(file: Path, written: set[bytes]) -> None:
    """The rest is read without an error, and trainers who share it read the same."""
    whole = list(Reader(file, report=lambda _: None))
    assert set(whole) <= written
    shares = [
        list(Reader(file, report=lambda _: None, by="chunk", trainer_id=trainer, trainer_count=2))
        for trainer in range(2)
    ]
    assert sorted(chain.from_iterable(shares)) == sorted(whole)
