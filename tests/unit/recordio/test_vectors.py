"""Files that the original Go library wrote: we read the same records from them, and write the same bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from paddlecloud.recordio import Compressor, IndexedReader, Reader, Writer
from paddlecloud.recordio.stream import CHUNK_BYTES

VECTORS = Path(__file__).with_name("vectors")
RECORDS = {
    "hello": [b"Hello", b"World!"],
    "three": [b"12345", b"1234", b"12"],
    "chunk10": [b"12345", b"1234", b"12"],
    "emptyrec": [b"", b"x", b""],
    "none": [],
}
CHUNKS = {"chunk10": 10, "mixed": 65_536}
# Large ones are kept as snappy alone; of what the original wrote without compression this is the SHA-256.
DIGESTS = {
    "mixed": "587cb143404df3d6bacceae72aa2e0f4884f36e9dd033403c8db13cac4a38d29",
    "text200k": "f42ac9bb1501759a537c2e928ba26d32ea01b12508b18724f267e77ecd5715c8",
}


@pytest.mark.parametrize("compressor", Compressor)
@pytest.mark.parametrize("name", RECORDS)
def test_the_originals_files_are_read(name: str, compressor: Compressor) -> None:
    file = _vector(name, compressor)
    assert list(Reader(file)) == RECORDS[name]
    with IndexedReader(file) as indexed:
        assert list(indexed) == RECORDS[name]


@pytest.mark.parametrize("compressor", [Compressor.NONE, Compressor.SNAPPY])
@pytest.mark.parametrize("name", RECORDS)
def test_what_is_written_is_the_originals_to_the_byte(tmp_path: Path, name: str, compressor: Compressor) -> None:
    assert _written(tmp_path, name, RECORDS[name], compressor) == _vector(name, compressor).read_bytes()


@pytest.mark.parametrize("name", DIGESTS)
def test_large_files_are_the_originals_to_the_byte(tmp_path: Path, name: str) -> None:
    vector = _vector(name, Compressor.SNAPPY)
    records = list(Reader(vector))
    assert _written(tmp_path, name, records, Compressor.SNAPPY) == vector.read_bytes()
    assert hashlib.sha256(_written(tmp_path, name, records, Compressor.NONE)).hexdigest() == DIGESTS[name]


def test_gzip_of_the_original_holds_the_same_as_its_snappy() -> None:
    assert list(Reader(_vector("text200k", Compressor.GZIP))) == list(Reader(_vector("text200k", Compressor.SNAPPY)))


def test_chunks_are_where_the_originals_test_finds_them() -> None:
    with IndexedReader(_vector("chunk10", Compressor.NONE)) as indexed:
        assert [(place.offset, place.header.records) for place in indexed.chunks] == [(0, 2), (37, 1)]


def test_a_limit_of_nothing_gives_a_chunk_to_each_record(tmp_path: Path) -> None:
    file = tmp_path / "zeros"
    records = [bytes(size) for size in range(1000)]
    with Writer(file, chunk_bytes=0) as writer:
        writer.write_all(records)
    with IndexedReader(file) as indexed:
        assert len(indexed.chunks) == 1000
        assert list(indexed) == records


def _vector(name: str, compressor: Compressor) -> Path:
    return VECTORS / f"{name}.c{compressor}.recordio"


def _written(folder: Path, name: str, records: list[bytes], compressor: Compressor) -> bytes:
    file = folder / name
    with Writer(file, compressor=compressor, chunk_bytes=CHUNKS.get(name, CHUNK_BYTES)) as writer:
        writer.write_all(records)
    return file.read_bytes()
