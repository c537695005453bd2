"""Runs in the environment of one record library: writes or reads a file as each input line requests.

It prints the elapsed seconds and the CPU seconds. Readers receive each record as bytes that they could keep, whatever
the library itself returns.
"""

from __future__ import annotations

import io
import json
import random
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

DISTINCT_BYTES = 4 << 20
CHUNK_BYTES = 32 << 20
SMALL_CHUNK_BYTES = 4 << 20

Write = Callable[[str, Iterable[bytes]], None]
Read = Callable[[str], Iterable[bytes]]


def main() -> None:
    library, compressor = sys.argv[1:]
    write, read = LIBRARIES[library](compressor)
    print("ready", flush=True)
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        if asked["verb"] == "write":
            taken = _write(write, asked["file"], asked["size"], asked["records"])
        else:
            taken = _read(read, asked["file"], asked["size"], asked["records"])
        print(*taken, flush=True)


def _write(write: Write, file: str, size: int, count: int) -> tuple[float, float]:
    records = _records(size)
    return _timed(lambda: write(file, islice(cycle(records), count)))


def _read(read: Read, file: str, size: int, count: int) -> tuple[float, float]:
    """Read all records and drop each one: `sum` and `map` take less time than any library does."""
    totals: list[int] = []
    taken = _timed(lambda: totals.append(sum(map(len, read(file)))))
    if count and totals != [count * size]:
        raise SystemExit(f"{totals[0]} bytes were read instead of {count} records of {size} bytes")
    return taken


def _timed(action: Callable[[], None]) -> tuple[float, float]:
    begin, cpu = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - begin, time.process_time() - cpu


def _records(size: int) -> list[bytes]:
    """Text of random words: about half of it compresses away."""
    chance = random.Random(1)
    words = [chance.randbytes(chance.randint(3, 9)) for _ in range(3000)]
    text = b" ".join(chance.choices(words, k=DISTINCT_BYTES // 6))
    return [text[at : at + size] for at in range(0, min(len(text) - size, 4096 * size), size)]


def ours(compressor: str, chunk_bytes: int = CHUNK_BYTES) -> tuple[Write, Read]:
    from paddlecloud.recordio import Compressor, Reader, Writer

    name, _, share = compressor.partition(":")
    trainer, _, trainers = share.partition("/")

    def write(file: str, records: Iterable[bytes]) -> None:
        with Writer(file, compressor=Compressor[name.upper()], chunk_bytes=chunk_bytes) as writer:
            writer.write_all(records)

    def read(file: str) -> Iterable[bytes]:
        return Reader(file, by="chunk", trainer_id=int(trainer or 0), trainer_count=int(trainers or 1))

    return write, read


def floor(compressor: str) -> tuple[Write, Read]:
    """A simple implementation of RecordIO: a list of records, an in-memory stream per chunk, two steps per record."""
    import cramjam

    is_snappy = compressor == "snappy"

    def write(file: str, records: Iterable[bytes]) -> None:
        with open(file, "wb") as out:
            chunk: list[bytes] = []
            size = 0
            for record in records:
                if size + len(record) > CHUNK_BYTES:
                    _floor_chunk(out, chunk, is_snappy)
                    chunk, size = [], 0
                chunk.append(record)
                size += len(record)
            _floor_chunk(out, chunk, is_snappy)

    def read(file: str) -> Iterator[bytes]:
        with open(file, "rb") as source:
            while head := source.read(20):
                _, checksum, _, size, count = struct.unpack("<5I", head)
                stored = source.read(size)
                if zlib.crc32(stored) != checksum:
                    raise ValueError("checksum mismatch")
                payload = io.BytesIO(bytes(cramjam.snappy.decompress(stored)) if is_snappy else stored)
                for _ in range(count):
                    (length,) = struct.unpack("<I", payload.read(4))
                    yield payload.read(length)

    return write, read


def _floor_chunk(out: io.BufferedWriter, chunk: list[bytes], is_snappy: bool) -> None:
    import cramjam

    payload = io.BytesIO()
    for record in chunk:
        payload.write(struct.pack("<I", len(record)))
        payload.write(record)
    stored = payload.getvalue()
    if is_snappy:
        stored = bytes(cramjam.snappy.compress(stored))
    out.write(struct.pack("<5I", 0x01020304, zlib.crc32(stored), int(is_snappy), len(stored), len(chunk)))
    out.write(stored)


def tfrecord(_: str) -> tuple[Write, Read]:
    """Only its frames, without the protocol buffer that it usually wraps each record in: that is faster."""
    from tfrecord.reader import tfrecord_iterator  # type: ignore[import-not-found]
    from tfrecord.writer import TFRecordWriter  # type: ignore[import-not-found]

    def write(file: str, records: Iterable[bytes]) -> None:
        masked = TFRecordWriter.masked_crc
        with open(file, "wb") as out:
            for record in records:
                length = struct.pack("<Q", len(record))
                out.write(length)
                out.write(masked(length))
                out.write(record)
                out.write(masked(record))

    def read(file: str) -> Iterator[bytes]:
        return map(bytes, tfrecord_iterator(file))

    return write, read


def webdataset(_: str) -> tuple[Write, Read]:
    import webdataset as wds  # type: ignore[import-not-found]

    def write(file: str, records: Iterable[bytes]) -> None:
        with wds.TarWriter(file) as out:
            for number, record in enumerate(records):
                out.write({"__key__": f"{number:09d}", "bin": record})

    def read(file: str) -> Iterator[bytes]:
        for sample in wds.WebDataset(f"file:{Path(file).absolute()}", shardshuffle=False):
            yield sample["bin"]

    return write, read


LIBRARIES: dict[str, Callable[[str], tuple[Write, Read]]] = {
    "ours": ours,
    "ours-small-chunks": partial(ours, chunk_bytes=SMALL_CHUNK_BYTES),
    "floor": floor,
    "tfrecord": tfrecord,
    "webdataset": webdataset,
}

if __name__ == "__main__":
    main()
