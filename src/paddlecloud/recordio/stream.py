"""Reader and Writer for record files, compatible with the original library, plus extras for training.

Invariant: a Writer's files are byte for byte those of the original, without compression and with snappy.
"""

from __future__ import annotations

import errno
import glob
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from types import TracebackType
from typing import Literal, Self

from paddlecloud.recordio import scan
from paddlecloud.recordio.chunk import HEADER_BYTES, LARGEST, LENGTH_BYTES, MAGIC, PACKERS, Header, checksum
from paddlecloud.recordio.compressors import Compressor, Squeezer
from paddlecloud.recordio.scan import LIMIT_BYTES, Buffers, ChunkFile, Report
from paddlecloud.recordio.snappy import BLOCK_BYTES

CHUNK_BYTES = 32 << 20  # of records, before compression
_BUFFER_BYTES = 8 * BLOCK_BYTES  # small enough for a CPU's cache, and for a thousand shards at once
_SMALL = 1024  # bytes of a record; larger records gain nothing from batching
_BATCH = 2500  # small records written together
_LENGTHS = [size.to_bytes(LENGTH_BYTES, "little") for size in range(_SMALL + 1)]

# Buffers of a finished loop, for the next one: programs create a Reader for each file and pass.
_SPARE: list[Buffers] = []

By = Literal["file", "chunk", "record"]


class Writer:
    """Writes records into a new file.

    A chunk ends before the record that would exceed `chunk_bytes` of records; with 0 each record has its own chunk. A
    chunk is written in pieces and its header last, so an unfinished chunk begins with zeros.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        compressor: Compressor = Compressor.SNAPPY,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        if not 0 <= chunk_bytes <= LIMIT_BYTES:
            raise ValueError(f"chunk_bytes is {chunk_bytes} and must be 0 to {LIMIT_BYTES}")
        self.path = os.fspath(path)
        self._compressor = compressor
        # Pieces written before the end of a chunk are whole blocks, or of any size without compression.
        self._block = 1 if compressor is Compressor.NONE else BLOCK_BYTES
        self._limit = chunk_bytes
        self._file = open(self.path, "wb")  # noqa: SIM115
        self._buffer = bytearray(_BUFFER_BYTES)
        self._at = self._count = self._left = 0
        self._begin_chunk()

    def write(self, record: bytes) -> None:
        if type(record) is not bytes:
            record = _as_bytes(record)
        length = len(record)
        at = self._at
        if at - LENGTH_BYTES * self._count + length > self._left:
            self._end_chunk()
            at = 0
        try:
            PACKERS[length](self._buffer, at, length, record)
            self._at = at + LENGTH_BYTES + length
        except struct.error:
            self._write_beyond(record)
        self._count += 1

    def write_all(self, records: Iterable[bytes]) -> None:
        """Write several records. Small ones are written in batches, since a step per record costs more than its bytes.
        If `records` fails, the records before the failure are written."""
        given = iter(records)
        is_end = False
        while not is_end:
            small: list[bytes] = []
            size, are_alike, is_left, is_end = -1, True, False, True
            try:
                for record in islice(given, _BATCH):
                    is_end = False
                    if type(record) is bytes and len(record) == size:
                        small.append(record)
                    elif type(record) is bytes and len(record) <= _SMALL:
                        are_alike = not small
                        size = len(record)
                        small.append(record)
                    elif is_left := bool(small):
                        break
                    else:
                        self.write(record)
            finally:
                if small:
                    self._write_small(small, are_alike)
            if is_left:
                self.write(record)

    def flush(self) -> None:
        """End the chunk and flush the file to the operating system."""
        self._end_chunk()
        self._file.flush()

    def close(self) -> None:
        if not self._file.closed:
            try:
                self._end_chunk()
            finally:
                self._file.close()
                self._buffer = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _begin_chunk(self) -> None:
        self._at = 0  # position of the next record in the buffer
        self._count = 0
        self._left = self._limit  # bytes left for records that are still in the buffer
        self._sent = 0  # bytes of the payload written to the file
        self._sum = 0
        self._stored = 0
        self._header_at: int | None = None  # the header's position in the file, once a piece was written
        self._squeezer = Squeezer(self._compressor)

    def _write_small(self, records: list[bytes], are_alike: bool) -> None:
        """Join records and their lengths into one payload; records of one size are joined by their length."""
        if are_alike:
            payload = _LENGTHS[len(records[0])].join([b"", *records])
        else:
            lengths = map(_LENGTHS.__getitem__, map(len, records))
            payload = b"".join(chain.from_iterable(zip(lengths, records, strict=True)))
        held = self._at - LENGTH_BYTES * self._count
        gained = len(payload) - LENGTH_BYTES * len(records)
        if held + gained <= self._left and self._sent + self._at + len(payload) <= LARGEST:
            self._put(payload)
            self._count += len(records)
        elif (half := len(records) // 2) and gained > _SMALL:  # the chunk ends within this batch
            self._write_small(records[:half], are_alike)
            self._write_small(records[half:], are_alike)
        else:
            for record in records:
                self.write(record)

    def _write_beyond(self, record: bytes) -> None:
        """Write a record that does not fit into the buffer."""
        needed = self._sent + self._at + LENGTH_BYTES + len(record)
        if needed > LARGEST:
            self._end_chunk()
            if LENGTH_BYTES + len(record) > LARGEST:
                raise ValueError(
                    f"{self.path}: a record of {len(record)} bytes is larger than the format allows (4 GiB)"
                )
        self._put(len(record).to_bytes(LENGTH_BYTES, "little"))
        self._put(record)

    def _put(self, payload: bytes) -> None:
        """Copy a small payload to the buffer; write the whole blocks of a larger one directly."""
        if len(payload) >= BLOCK_BYTES or self._at + len(payload) > len(self._buffer):
            self._send_blocks()
        if len(payload) < BLOCK_BYTES:
            self._buffer[self._at : self._at + len(payload)] = payload
            self._at += len(payload)
            return
        with memoryview(payload) as rest:
            fill = min(-self._at % self._block, len(rest))
            self._buffer[self._at : self._at + fill] = rest[:fill]
            self._at += fill
            if fill < len(rest):
                self._send_blocks()
                whole = (len(rest) - fill) // self._block * self._block
                self._send(rest[fill : fill + whole])
                self._at = len(rest) - fill - whole
                self._buffer[: self._at] = rest[fill + whole :]

    def _send_blocks(self) -> None:
        whole = self._at // self._block * self._block
        with memoryview(self._buffer) as held:
            self._send(held[:whole])
            held[: self._at - whole] = held[whole : self._at]
        self._at -= whole

    def _send(self, payload: memoryview) -> None:
        self._require_open()
        if payload:
            self._sent += len(payload)
            self._left -= len(payload)
            if self._header_at is None:
                self._header_at = self._file.tell()
                self._file.write(bytes(HEADER_BYTES))
            self._store(self._squeezer.piece(payload))

    def _store(self, stored: bytes | memoryview) -> None:
        self._sum = checksum(stored, self._sum)
        self._stored += len(stored)
        if self._stored > LARGEST:
            raise ValueError(f"{self.path}: a chunk of {self._stored} bytes is larger than the format allows (4 GiB)")
        self._file.write(stored)

    def _end_chunk(self) -> None:
        self._require_open()
        if not self._count:
            return
        with memoryview(self._buffer) as held:
            stored = self._squeezer.last(held[: self._at])
            if self._header_at is None:
                self._file.write(Header(MAGIC, checksum(stored), self._compressor, len(stored), self._count).pack())
                self._file.write(stored)
            else:
                self._store(stored)
                self._file.flush()
                header = Header(MAGIC, self._sum, self._compressor, self._stored, self._count)
                os.pwrite(self._file.fileno(), header.pack(), self._header_at)
        self._begin_chunk()

    def _require_open(self) -> None:
        if self._file.closed:
            raise ValueError(f"{self.path} is closed: nothing more can be written")


class Reader:
    """Reads records from files: all of them, or one trainer's share by file, by chunk or by every n-th record.

    `paths` is a path, a pattern, several of them separated by commas, or a list; a pattern's files are sorted by name.
    Each loop starts from the beginning; `read` continues where it stopped and returns None at the end.

    With `report`, damaged parts are reported and skipped; without it, the first damage raises an error.
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        trainer_id: int = 0,
        trainer_count: int = 1,
        by: By = "file",
        report: Report | None = None,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        if not 0 <= trainer_id < trainer_count:
            raise ValueError(
                f"trainer_id is {trainer_id} and must be 0 to {trainer_count - 1}, less than trainer_count"
            )
        if by not in ("file", "chunk", "record"):
            raise ValueError(f"by is {by!r} and must be file, chunk or record")
        self.files = found(paths)
        self._id = trainer_id
        self._count = trainer_count
        self._by = by
        self._report = report
        self._limit = limit_bytes
        self._iterator: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        records = chain.from_iterable(self._chunks())
        if self._by == "record":
            return islice(records, self._id, None, self._count)
        return records

    def read(self) -> bytes | None:
        """The next record; None at the end. `while d := r.read()` would stop early at an empty record, b""."""
        if self._iterator is None:
            self._iterator = iter(self)
        return next(self._iterator, None)

    def close(self) -> None:
        self._iterator = iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _chunks(self) -> Iterator[Iterator[bytes]]:
        buffers = _SPARE.pop() if _SPARE else Buffers()
        for number, path in enumerate(self.files):
            if self._by != "file" or number % self._count == self._id:
                with ChunkFile(path, limit_bytes=self._limit, buffers=buffers) as file:
                    yield from scan.read(file, self._wanted(number), self._report)
        if not _SPARE and len(buffers) <= 3 * CHUNK_BYTES:
            _SPARE.append(buffers)

    def _wanted(self, file_number: int) -> Callable[[int], bool]:
        if self._by != "chunk":
            return lambda _: True
        # Add the file's number, so that files of one chunk each are distributed among the trainers too.
        return lambda number: (file_number + number) % self._count == self._id


def found(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files named by paths and patterns, sorted; FileNotFoundError if one matches no file."""
    if isinstance(paths, str):
        asked = [paths] if os.path.isfile(paths) else paths.split(",")
    elif isinstance(paths, os.PathLike):
        asked = [os.fspath(paths)]
    else:
        asked = [os.fspath(path) for path in paths]
    return [file for one in asked for file in _matching(one)]


def _matching(pattern: str) -> list[str]:
    if os.path.isfile(pattern):
        return [pattern]
    files = sorted(file for file in glob.glob(pattern) if os.path.isfile(file))
    if not files:
        raise FileNotFoundError(errno.ENOENT, "no such file, and no file matches this pattern", pattern)
    return files


def _as_bytes(record: object) -> bytes:
    """Copy a buffer to bytes, since the caller may change it."""
    try:
        return memoryview(record).tobytes()  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"a record must be bytes, not {type(record).__name__}: encode it first") from None
