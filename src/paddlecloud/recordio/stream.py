"""Reader and Writer: records in and out of files, as the original library has them, and what training wants beside.

The files of a Writer are those of the original, to the byte, for no compression and for snappy.
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
_SMALL = 1024  # bytes of a record; larger ones gain nothing from going there with others
_TOGETHER = 2500  # small records at most that go there at once
_LENGTHS = [size.to_bytes(LENGTH_BYTES, "little") for size in range(_SMALL + 1)]

# Of a loop that has ended, for the next: programs make a Reader for each file and pass.
_SPARE: list[Buffers] = []

By = Literal["file", "chunk", "record"]


class Writer:
    """Writes records into a new file.

    A chunk is closed before the record that would make its records more than `chunk_bytes`; 0 is one record each. It
    goes to the file piece by piece, and its header last: a chunk that was never ended begins with zeros.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        compressor: Compressor = Compressor.SNAPPY,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        if not 0 <= chunk_bytes <= LIMIT_BYTES:
            raise ValueError(f"chunk_bytes is {chunk_bytes} and may be 0 to {LIMIT_BYTES}")
        self.path = os.fspath(path)
        self._compressor = compressor
        # What goes to the file before its chunk ends is of whole blocks, or of any size where nothing is compressed.
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
        """As `write` of each. Small ones are gathered, since a step for each costs more than its bytes do; if `records`
        fails, what it gave before is written."""
        given = iter(records)
        is_end = False
        while not is_end:
            small: list[bytes] = []
            size, are_alike, is_left, is_end = -1, True, False, True
            try:
                for record in islice(given, _TOGETHER):
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
        """End the chunk, and hand everything to the system."""
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
        self._at = 0  # of the buffer, where the next record goes
        self._count = 0
        self._left = self._limit  # for records, of what has not left the buffer
        self._sent = 0  # of the payload
        self._sum = 0
        self._stored = 0
        self._header_at: int | None = None  # where in the file it is to be, once something has been sent
        self._squeezer = Squeezer(self._compressor)

    def _write_small(self, records: list[bytes], are_alike: bool) -> None:
        """Records and the length before each as one payload: of one size, they are joined by their length."""
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
        elif (half := len(records) // 2) and gained > _SMALL:  # the chunk ends among them
            self._write_small(records[:half], are_alike)
            self._write_small(records[half:], are_alike)
        else:
            for record in records:
                self.write(record)

    def _write_beyond(self, record: bytes) -> None:
        """A record that does not fit into the buffer."""
        needed = self._sent + self._at + LENGTH_BYTES + len(record)
        if needed > LARGEST:
            self._end_chunk()
            if LENGTH_BYTES + len(record) > LARGEST:
                raise ValueError(
                    f"{self.path}: a record of {len(record)} bytes is more than the format can hold (4 GiB)"
                )
        self._put(len(record).to_bytes(LENGTH_BYTES, "little"))
        self._put(record)

    def _put(self, payload: bytes) -> None:
        """Into the buffer what is small; of more, whole blocks go to the file from where they are."""
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
            raise ValueError(f"{self.path}: a chunk of {self._stored} bytes is more than the format can hold (4 GiB)")
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
    """Reads the records of files: all, or one trainer's share of the files, of the chunks, or every n-th record.

    `paths` is a path, a pattern, several of both with commas between, or a list; a pattern's files are read in order of
    their names. Each loop over it begins anew; `read` goes on where it was and gives None at the end.

    `report` is called for what is damaged, which is then passed over; without it the first damage is an error.
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
            raise ValueError(f"trainer_id is {trainer_id} and must be 0 to {trainer_count - 1}, below trainer_count")
        if by not in ("file", "chunk", "record"):
            raise ValueError(f"by is {by!r} and must be file, chunk or record")
        self.files = found(paths)
        self._id = trainer_id
        self._count = trainer_count
        self._by = by
        self._report = report
        self._limit = limit_bytes
        self._going: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        records = chain.from_iterable(self._chunks())
        if self._by == "record":
            return islice(records, self._id, None, self._count)
        return records

    def read(self) -> bytes | None:
        """The next record; None at the end. An empty record is b"": `while d := r.read()` would stop at it."""
        if self._going is None:
            self._going = iter(self)
        return next(self._going, None)

    def close(self) -> None:
        self._going = iter(())

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
        # Files of one chunk each go round the trainers too.
        return lambda number: (file_number + number) % self._count == self._id


def found(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """The files that paths and patterns mean, sorted; an error for one that means none."""
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
        raise FileNotFoundError(errno.ENOENT, "there is no such file, and nothing that matches it", pattern)
    return files


def _as_bytes(record: object) -> bytes:
    """A record that is no bytes, but a buffer of them; copied, since who passed it may change it."""
    try:
        return memoryview(record).tobytes()  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"a record is bytes, not {type(record).__name__}: encode it first") from None
