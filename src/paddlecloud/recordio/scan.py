"""Chunks of one file, one after the other: each is checked before a record of it is given out.

Who reads with `report` gets the rest of a damaged file. The work for that is limited, whatever is in the file: every
step goes forward, and chunks that turn out to be none are summed up to the file's size and no more.
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
_SUMMED = 1 << 18
_LARGE = 1 << 16  # a record that a copy costs more of than a call to the system
_FEW = 8 << 20

Report = Callable[[Skipped], None]
Wanted = Callable[[int], bool]


class Place(NamedTuple):
    """Where a chunk is in its file, and what its header says."""

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
    """Memory for one chunk after the other, as stored and decompressed: fresh memory costs more than reading does."""

    def __init__(self) -> None:
        self.stored: Buffer = bytearray()
        self.payload = bytearray()

    def __len__(self) -> int:
        return len(self.stored) + len(self.payload)

    def for_stored(self, place: Place) -> memoryview:
        """Room for a chunk as it is in its file, which begins as far into a page as it does there: CPUs copy up to four
        times as fast where both sides lie alike."""
        start, size = place.in_page, place.header.stored_bytes
        if len(self.stored) < start + size + SLACK_BYTES:
            self.stored = _pages(mmap.PAGESIZE + size + SLACK_BYTES)
        return memoryview(self.stored)[start : start + size]


def _pages(size: int) -> mmap.mmap:
    """Memory of whole pages, private since a process that forks has readers on both sides; large pages, which take less
    looking up, where the system has them to give."""
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):
            pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


class ChunkFile:
    """One file of chunks, opened for reading."""

    def __init__(
        self, path: str | os.PathLike[str], *, limit_bytes: int = LIMIT_BYTES, buffers: Buffers | None = None
    ) -> None:
        self.path = os.fspath(path)
        self._limit = limit_bytes
        self._file = io.BufferedReader(io.FileIO(self.path), _BUFFER_BYTES)
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise CorruptError(self.path, 0, 0, "this is no regular file, and only those can be read")
        self.size = status.st_size
        self.doubted_bytes = 0  # of what looked like a chunk and was none
        self._buffers = Buffers() if buffers is None else buffers

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def header(self, number: int, offset: int) -> Place:
        """The header there, checked in itself and against the file; the file is then at its payload."""
        self._file.seek(offset)
        raw = self._file.read(HEADER_BYTES)
        if len(raw) < HEADER_BYTES:
            told = f"the file ends after {len(raw)} of the header's {HEADER_BYTES} bytes: it was cut off"
            raise TruncatedError(self.path, number, offset, told)
        if not any(raw):
            told = "its header was never written: who wrote the file ended before the chunk did"
            raise TruncatedError(self.path, number, offset, told)
        place = Place(number, offset, Header.parse(raw))
        if fault := place.header.fault():
            raise self._foreign(place) or CorruptError(self.path, number, offset, fault)
        if place.end > self.size:
            told = f"its payload ends at byte {place.end} and the file at byte {self.size}: it was cut off"
            raise self._foreign(place) or TruncatedError(self.path, number, offset, told)
        return place

    def places(self) -> Iterator[Place]:
        """Every chunk by its header alone: payloads are neither read nor checked."""
        number = offset = 0
        while offset < self.size:
            place = self.header(number, offset)
            yield place
            number, offset = number + 1, place.end

    def records(self, place: Place) -> Iterator[bytes]:
        """The records of a chunk whose bytes are right; they are to be taken before the next chunk is read."""
        header = place.header
        if header.stored_bytes > self._limit:
            raise self._oversized(place)
        if _is_better_apart(header) and (records := self._read_apart(place)) is not None:
            return iter(records)
        stored, found = self._stored(place)
        if found != header.checksum:
            told = f"its checksum is {found:#010x} and should be {header.checksum:#010x}: the file was damaged"
            raise self._foreign(place) or CorruptError(self.path, place.number, place.offset, told)
        buffer, start, size = self._decompressed(place, stored)
        fault = partial(CorruptError, self.path, place.number, place.offset)
        return chunks.records(buffer, start, size, place.header.records, fault)

    def _read_apart(self, place: Place) -> list[bytes] | None:
        """The records, each read straight into its own bytes; None if anything is wrong with the chunk, which is then
        read as others are, and what is wrong with it told."""
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
        """The bytes of a chunk and their checksum, which is taken piece by piece, while each is in the CPU's cache."""
        size = place.header.stored_bytes
        stored = self._buffers.for_stored(place)
        self._file.seek(place.payload)
        found = 0
        for at in range(0, size, _SUMMED):
            piece = stored[at : at + _SUMMED]
            if self._file.readinto(piece) != len(piece):
                told = "the file became shorter while it was read"
                raise TruncatedError(self.path, place.number, place.offset, told)
            found = checksum(piece, found)
        return stored, found

    def _decompressed(self, place: Place, stored: memoryview) -> tuple[Buffer, int, int]:
        """The buffer that has the payload, where in it the payload begins, and how large it is."""
        compressor = Compressor(place.header.compressor)
        if compressor is Compressor.NONE:
            return self._buffers.stored, place.in_page, len(stored)
        try:
            buffer, size = decompress(stored, compressor, self._limit, self._buffers.payload)
        except TooLargeError:
            raise self._oversized(place) from None
        except BentError as error:
            raise CorruptError(self.path, place.number, place.offset, f"its payload is bent: {error}") from None
        self._buffers.payload = buffer
        return buffer, 0, size

    def _oversized(self, place: Place) -> OversizedError:
        told = f"it is larger than {self._limit} bytes; if you trust the file, read it with a larger limit_bytes"
        return OversizedError(self.path, place.number, place.offset, told)

    def _foreign(self, place: Place) -> ForeignError | None:
        """paddle/fluid's files have the same magic, and the fields that follow it in another order."""
        magic, records, summed, compressor, size = place.header
        body = place.payload
        if place.offset != 0 or magic != chunks.MAGIC or compressor > Compressor.GZIP:
            return None
        if size > min(self.size - body, self._limit):
            return None
        self._file.seek(body)
        if checksum(self._file.read(size)) != summed:
            return None
        told = (
            f"this is paddle.fluid's own RecordIO ({records} records), which has another header: it cannot be read here"
        )
        return ForeignError(self.path, place.number, place.offset, told)

    def after_damage(self, offset: int) -> int:
        """Where the next chunk begins; else the file's end."""
        at, carried = offset, b""
        self._file.seek(at)
        while piece := self._file.read(_PIECE):
            window = carried + piece
            start = at - len(carried)
            found = window.find(MAGIC_BYTES)
            while found >= 0:
                if self.is_chunk(start + found):
                    return start + found
                found = window.find(MAGIC_BYTES, found + 1)
            at += len(piece)
            carried = window[-(len(MAGIC_BYTES) - 1) :]
            self._file.seek(at)
        return self.size

    def is_chunk(self, offset: int) -> bool:
        """Whether a sound header is there whose chunk ends where another begins, or with the file, or is right."""
        try:
            place = self.header(0, offset)
        except CorruptError:
            return False
        return self.is_chunk_or_end(place.end) or self._is_right(place)

    def _is_right(self, place: Place) -> bool:
        if self.doubted_bytes > self.size or place.header.stored_bytes > self._limit:
            return False
        is_right = self._stored(place)[1] == place.header.checksum
        self.doubted_bytes += 0 if is_right else place.end - place.offset
        return is_right

    def is_chunk_or_end(self, offset: int) -> bool:
        self._file.seek(offset)
        return offset == self.size or self._file.read(len(MAGIC_BYTES)) == MAGIC_BYTES


def _is_better_apart(header: Header) -> bool:
    """Large records are, if there are few: memory for many at once is fresh memory, and costs more than a copy."""
    if header.compressor != Compressor.NONE or header.stored_bytes < header.records * _LARGE:
        return False
    return header.records == 1 or header.stored_bytes <= _FEW


def read(file: ChunkFile, wanted: Wanted, report: Report | None = None) -> Iterator[Iterator[bytes]]:
    """The records of each wanted chunk (by number); a damaged one is raised, or reported and passed over."""
    if report is not None:
        yield from _read_on(file, wanted, report)
        return
    for place in file.places():
        if wanted(place.number):
            yield file.records(place)


def _read_on(file: ChunkFile, wanted: Wanted, report: Report) -> Iterator[Iterator[bytes]]:
    """All records of a chunk, or none. Where it goes on never depends on which chunks are wanted: trainers that share a
    damaged file must count its chunks alike."""
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
