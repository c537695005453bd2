"""The format of a chunk: a 20-byte header, and records that each follow their length.

Invariant: no number from a header determines a size or a loop before it is checked against the file.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from paddlecloud.recordio.compressors import SLACK_BYTES, Compressor

try:
    from isal.isal_zlib import crc32 as checksum  # the same checksum, about ten times as fast
except ImportError:
    from zlib import crc32 as checksum

__all__ = ["checksum"]

MAGIC = 0x01020304
MAGIC_BYTES = MAGIC.to_bytes(4, "little")
HEADER_BYTES = 20
LENGTH_BYTES = SLACK_BYTES
LARGEST = 0xFFFF_FFFF  # the largest length or size that fits its field

_HEADER = struct.Struct("<5I")
_LENGTH = struct.Struct("<I")
_COMPRESSORS = frozenset(Compressor)
_MAX_STRUCTS = 4096  # cached sizes of records
_BATCH_RECORDS = 256
_BATCH_BYTES = 1 << 16

Buffer = bytearray | mmap.mmap
Packer = Callable[..., None]
Unpacker = Callable[[Buffer, int], tuple[bytes, int]]
Taker = Callable[[Buffer, int], tuple[bytes, ...]]
Fault = Callable[[str], Exception]
Batch = tuple[Sequence[bytes], int]  # records decoded together, and where the next one begins


class Header(NamedTuple):
    magic: int
    checksum: int
    compressor: int
    stored_bytes: int
    records: int

    @classmethod
    def parse(cls, raw: bytes) -> Header:
        return cls(*_HEADER.unpack(raw))

    def pack(self) -> bytes:
        return _HEADER.pack(*self)

    def fault(self) -> str:
        """What is wrong with the header itself; "" if nothing is."""
        if self.magic != MAGIC:
            return f"it begins with {self.magic:#010x} instead of {MAGIC:#010x}: this is not a RecordIO chunk"
        if self.compressor not in _COMPRESSORS:
            return f"unknown compressor {self.compressor} (known are 0 none, 1 snappy, 2 gzip)"
        if self.compressor == Compressor.NONE and self.records * LENGTH_BYTES > self.stored_bytes:
            return f"it claims {self.records} records, which do not fit in {self.stored_bytes} bytes"
        return ""


def records(buffer: Buffer, start: int, size: int, count: int, fault: Fault) -> Iterator[bytes]:
    """Yield the records in `size` bytes of a buffer that has some slack after them.

    They are decoded lazily in small batches, so that they are still in the CPU's cache when used.
    """
    return chain.from_iterable(_batches(buffer, start, size, count, fault))


class _Packers(dict[int, Packer]):
    """Cached functions by record size: each writes a length and a record into a buffer in one call."""

    def __missing__(self, size: int) -> Packer:
        pack: Packer = struct.Struct(f"<I{size}s").pack_into
        _make_room(self)
        self[size] = pack
        return pack


class _Unpackers(dict[int, Unpacker]):
    """Cached functions by record size: each reads a record and the length after it from a buffer in one call."""

    def __missing__(self, size: int) -> Unpacker:
        unpack: Unpacker = struct.Struct(f"<{size}sI").unpack_from
        _make_room(self)
        self[size] = unpack
        return unpack


def _make_room(prepared: dict[int, Any]) -> None:
    """Clear the whole cache once it is full, so that current sizes get a place."""
    if len(prepared) >= _MAX_STRUCTS:
        prepared.clear()


PACKERS = _Packers()
_UNPACKERS = _Unpackers()


def _batches(buffer: Buffer, start: int, size: int, count: int, fault: Fault) -> Iterator[Sequence[bytes]]:
    at, end, left = start, start + size, count
    most = min(_BATCH_RECORDS, max(1, _BATCH_BYTES * count // (size + 1)))
    while left:
        made, at = _same_length(buffer, at, end, min(left, most)) or _one_by_one(buffer, at, end, min(left, most))
        if not made:
            raise fault(f"the record at byte {at - start} of its payload extends past the payload's end")
        yield made
        left -= len(made)
    if at < end:
        raise fault(f"it claims {count} records, but {end - at} bytes follow them")


def _same_length(buffer: Buffer, at: int, end: int, number: int) -> Batch | None:
    """Decode records of equal length in one call; None if their lengths differ."""
    length: int = _LENGTH.unpack_from(buffer, at)[0]
    stride = LENGTH_BYTES + length
    after = at + number * stride
    if number < _BATCH_RECORDS // 8 or after > end or _LENGTH.unpack_from(buffer, after - stride)[0] != length:
        return None
    take, columns = _taker(length, number)
    for column, alike in enumerate(columns, at):
        if buffer[column:after:stride] != alike:
            return None
    return take(buffer, at), after


@lru_cache
def _taker(length: int, number: int) -> tuple[Taker, list[bytes]]:
    """A function that reads the records, and the expected length fields as columns of their four bytes: comparing
    columns needs no step per record."""
    columns = [bytes([byte]) * number for byte in _LENGTH.pack(length)]
    return struct.Struct("<" + f"{LENGTH_BYTES}x{length}s" * number).unpack_from, columns


def _one_by_one(buffer: Buffer, at: int, end: int, number: int) -> Batch:
    """Decode records one by one, each by its length field, up to one that extends past the end."""
    unpackers = _UNPACKERS
    made: list[bytes] = []
    length: int = _LENGTH.unpack_from(buffer, at)[0]
    at += LENGTH_BYTES
    for _ in range(number):
        after = at + length
        if after > end:
            break
        # The length read after the last record is meaningless and unused; the buffer's slack makes reading it safe.
        record, length = unpackers[length](buffer, at)
        made.append(record)
        at = after + LENGTH_BYTES
    return made, at - LENGTH_BYTES
