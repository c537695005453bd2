"""Reads the chunks of one file in order, checking each chunk before yielding its records.

With `report`, reading continues after damage. Invariant: that work is bounded whatever the file contains. Every step
moves forward, and the checksums of false chunks cover at most the file's size.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import NamedTuple, Self

from paddlecloud.recordio import chunk as chunks
from paddlecloud.recordio.chunk import HEADER_BYTES, LENGTH_BYTES, MAGIC_BYTES, Buffer, Header, checksum
from paddlecloud.recordio.compressors import SLACK_BYTES, BentError, Compressor, TooLargeError, decompress
from paddlecloud.recordio.errors import CorruptError, ForeignError, OversizedError, Skipped, TruncatedError

LIMIT_BYTES = 1 << 30
_BUFFER_BYTES = 1 << 13
_PIECE = 1 << 20
_CHECKSUM_PIECE = 1 << 18
_LARGE = 1 << 16  # bytes; copying a record of this size costs more than a system call
_MAX_FRESH_BYTES = 8 << 20

Report = Callable[[Skipped], None]
Wanted = Callable[[int], bool]


class Place(NamedTuple):
    """A chunk's position in its file, and its header."""

    number: int
    offset: int
    header: Header

    @property
    def payload(self) -> int:
        return self.offset + HEADER_BYTES

    @property
    def in_page(self) -> int:
        return self.payload % mmap.PAGESIZE

    @property
    def end(self) -> int:
        return self.payload + self.header.stored_bytes


class Buffers:
    """Reusable memory for one chunk, stored and decompressed: allocating new memory costs more than reading."""

    def __init__(self) -> None:
        self.stored: Buffer = bytearray()
        self.payload = bytearray()

    def __len__(self) -> int:
        return len(self.stored) + len(self.payload)

    def for_stored(self, place: Place) -> memoryview:
        """Memory for a stored chunk, at the same offset within a page as in the file: CPUs copy up to four times as
        fast if both sides are aligned alike."""
        start, size = place.in_page, place.header.stored_bytes
        if len(self.stored) < start + size + SLACK_BYTES:
            self.stored = _pages(mmap.PAGESIZE + size + SLACK_BYTES)
        return memoryview(self.stored)[start : start + size]


def _pages(size: int) -> mmap.mmap:
    """Allocate whole pages, private since a forked process has readers on both sides; huge pages where available,
    which need fewer address lookups."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


class ChunkFile:
    """A record file, opened for reading."""

    def __init__(
        self, path: str | os.PathLike[str], *, limit_bytes: int = LIMIT_BYTES, buffers: Buffers | None = None
    ) -> None:
        self.path = os.fspath(path)
        self._limit = limit_bytes
        self._file = io.BufferedReader(io.FileIO(self.path), _BUFFER_BYTES)
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise CorruptError(self.path, 0, 0, "this is not a regular file, and only regular files can be read")
        self.size = status.st_size
        self.doubted_bytes = 0  # of data that looked like a chunk but was not
        self._buffers = Buffers() if buffers is None else buffers

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def header(self, number: int, offset: int) -> Place:
        """Read and check the header at `offset`; the file is then positioned at its payload."""
        self._file.seek(offset)
        raw = self._file.read(HEADER_BYTES)
        if len(raw) < HEADER_BYTES:
            reason = f"the file ends after {len(raw)} of the header's {HEADER_BYTES} bytes: it was truncated"
            raise TruncatedError(self.path, number, offset, reason)
        if not any(raw):
            reason = "its header was never written: the writer stopped before the chunk was complete"
            raise TruncatedError(self.path, number, offset, reason)
        place = Place(number, offset, Header.parse(raw))
        if fault := place.header.fault():
            raise self._foreign(place) or CorruptError(self.path, number, offset, fault)
        if place.end > self.size:
            reason = f"its payload ends at byte {place.end}, but the file at byte {self.size}: it was truncated"
            raise self._foreign(place) or TruncatedError(self.path, number, offset, reason)
        return place

    def places(self) -> Iterator[Place]:
        """Yield every chunk by its header alone, without reading or checking payloads."""
        number = offset = 0
        while offset < self.size:
            place = self.header(number, offset)
            yield place
            number, offset = number + 1, place.end

    def records(self, place: Place) -> Iterator[bytes]:
        """The records of a verified chunk; consume them before reading the next chunk."""
        header = place.header
        if header.stored_bytes > self._limit:
            raise self._oversized(place)
        if _is_better_separate(header) and (records := self._read_separately(place)) is not None:
            return iter(records)
        stored, found = self._stored(place)
        if found != header.checksum:
            reason = f"its checksum is {found:#010x} instead of {header.checksum:#010x}: the file is damaged"
            raise self._foreign(place) or CorruptError(self.path, place.number, place.offset, reason)
        buffer, start, size = self._decompressed(place, stored)
        fault = partial(CorruptError, self.path, place.number, place.offset)
        return chunks.records(buffer, start, size, place.header.records, fault)

    def _read_separately(self, place: Place) -> list[bytes] | None:
        """Read each record directly into its own bytes; None if anything is wrong with the chunk, which is then read
        normally to report the error."""
        descriptor, at, found = self._file.fileno(), place.payload, 0
        made: list[bytes] = []
        for _ in range(place.header.records):
            length = os.pread(descriptor, LENGTH_BYTES, at)
            at += LENGTH_BYTES
            size = int.from_bytes(length, "little")
            if at + size > place.end:
                return None
            record = os.pread(descriptor, size, at)
            found = checksum(record, checksum(length, found))
            made.append(record)
            at += len(record)
        return made if (at, found) == (place.end, place.header.checksum) else None

    def _stored(self, place: Place) -> tuple[memoryview, int]:
        """A chunk's bytes and their checksum, computed in pieces while each is in the CPU's cache."""
        size = place.header.stored_bytes
        stored = self._buffers.for_stored(place)
        self._file.seek(place.payload)
        found = 0
        for at in range(0, size, _CHECKSUM_PIECE):
            piece = stored[at : at + _CHECKSUM_PIECE]
            if self._file.readinto(piece) != len(piece):
                reason = "the file was truncated while it was read"
                raise TruncatedError(self.path, place.number, place.offset, reason)
            found = checksum(piece, found)
        return stored, found

    def _decompressed(self, place: Place, stored: memoryview) -> tuple[Buffer, int, int]:
        """The buffer with the payload, the payload's start in it, and its size."""
        compressor = Compressor(place.header.compressor)
        if compressor is Compressor.NONE:
            return self._buffers.stored, place.in_page, len(stored)
        try:
            buffer, size = decompress(stored, compressor, self._limit, self._buffers.payload)
        except TooLargeError:
            raise self._oversized(place) from None
        except BentError as error:
            raise CorruptError(self.path, place.number, place.offset, f"its payload is damaged: {error}") from None
        self._buffers.payload = buffer
        return buffer, 0, size

    def _oversized(self, place: Place) -> OversizedError:
        reason = f"it is larger than {self._limit} bytes; if you trust the file, read it with a larger limit_bytes"
        return OversizedError(self.path, place.number, place.offset, reason)

    def _foreign(self, place: Place) -> ForeignError | None:
        """Detect paddle.fluid's files, which have the same magic but another order of the following fields."""
        magic, records, summed, compressor, size = place.header
        body = place.payload
        if place.offset != 0 or magic != chunks.MAGIC or compressor > Compressor.GZIP:
            return None
        if size > min(self.size - body, self._limit):
            return None
        self._file.seek(body)
        if checksum(self._file.read(size)) != summed:
            return None
        reason = (
            f"this is paddle.fluid's own RecordIO ({records} records), which has another header and cannot be read here"
        )
        return ForeignError(self.path, place.number, place.offset, reason)

    def after_damage(self, offset: int) -> int:
        """The offset of the next chunk, or the file's size if there is none."""
        at, overlap = offset, b""
        self._file.seek(at)
        while piece := self._file.read(_PIECE):
            window = overlap + piece
            start = at - len(overlap)
            found = window.find(MAGIC_BYTES)
            while found >= 0:
                if self.is_chunk(start + found):
                    return start + found
                found = window.find(MAGIC_BYTES, found + 1)
            at += len(piece)
            overlap = window[-(len(MAGIC_BYTES) - 1) :]
            self._file.seek(at)
        return self.size

    def is_chunk(self, offset: int) -> bool:
        """Whether `offset` has a valid header whose chunk is intact, or ends at another chunk or the file's end."""
        try:
            place = self.header(0, offset)
        except CorruptError:
            return False
        return self.is_chunk_or_end(place.end) or self._is_intact(place)

    def _is_intact(self, place: Place) -> bool:
        if self.doubted_bytes > self.size or place.header.stored_bytes > self._limit:
            return False
        is_intact = self._stored(place)[1] == place.header.checksum
        self.doubted_bytes += 0 if is_intact else place.end - place.offset
        return is_intact

    def is_chunk_or_end(self, offset: int) -> bool:
        self._file.seek(offset)
        return offset == self.size or self._file.read(len(MAGIC_BYTES)) == MAGIC_BYTES


def _is_better_separate(header: Header) -> bool:
    """True for few large records: many at once would need new memory, which costs more than a copy."""
    if header.compressor != Compressor.NONE or header.stored_bytes < header.records * _LARGE:
        return False
    return header.records == 1 or header.stored_bytes <= _MAX_FRESH_BYTES


def read(file: ChunkFile, wanted: Wanted, report: Report | None = None) -> Iterator[Iterator[bytes]]:
    """Yield the records of each wanted chunk (by number); damage is raised, or reported and skipped."""
    if report is not None:
        yield from _read_on(file, wanted, report)
        return
    for place in file.places():
        if wanted(place.number):
            yield file.records(place)


def _read_on(file: ChunkFile, wanted: Wanted, report: Report) -> Iterator[Iterator[bytes]]:
    """Yield all records of a chunk or none. The position after damage never depends on which chunks are wanted:
    trainers that share a damaged file must number its chunks alike."""
    number = offset = 0
    while offset < file.size:
        try:
            place = file.header(number, offset)
        except CorruptError as error:
            resumed = file.after_damage(offset + 1)
            report(Skipped(error, resumed - offset))
            number, offset = number + 1, resumed
            continue
        is_followed = file.is_chunk_or_end(place.end)
        resumed = place.end
        try:
            found = list(file.records(place)) if wanted(number) or not is_followed else []
        except CorruptError as error:
            if not is_followed:
                file.doubted_bytes += place.end - place.offset
                resumed = file.after_damage(offset + 1) if file.doubted_bytes <= file.size else file.size
            report(Skipped(error, resumed - offset))
        else:
            if wanted(number):
                yield iter(found)
        number, offset = number + 1, resumed
