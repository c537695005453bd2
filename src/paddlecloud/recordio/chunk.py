"""The bytes of a chunk: a header of 20 bytes, and records that each follow their length.

No number of a header is believed before it was checked against the file: it decides neither a size nor a loop.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import NamedTuple

from paddlecloud.recordio.compressors import SLACK_BYTES, Compressor

try:
    from isal.isal_zlib import crc32 as checksum  # the same sum, about ten times as fast
except ImportError:
    from zlib import crc32 as checksum

__all__ = ["checksum"]

MAGIC = 0x01020304
MAGIC_BYTES = MAGIC.to_bytes(4, "little")
HEADER_BYTES = 20
LENGTH_BYTES = SLACK_BYTES
LARGEST = 0xFFFF_FFFF  # what a length or a size can say

_HEADER = struct.Struct("<5I")
_LENGTH = struct.Struct("<I")
_COMPRESSORS = frozenset(Compressor)
_STRUCTS = 4096  # how many sizes of records are prepared for

Packer = Callable[..., None]
Unpacker = Callable[[bytearray, int], tuple[bytes, int]]
Fault = Callable[[str], Exception]


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
        """What is wrong with it in itself; "" where nothing is."""
        if self.magic != MAGIC:
            return f"it begins with {self.magic:#010x} and should with {MAGIC:#010x}: this is no chunk of RecordIO"
        if self.compressor not in _COMPRESSORS:
            return f"compressor {self.compressor} is not known (0 none, 1 snappy, 2 gzip)"
        if self.compressor == Compressor.NONE and self.records * LENGTH_BYTES > self.stored_bytes:
            return f"it claims {self.records} records, which cannot be in {self.stored_bytes} bytes"
        return ""


def records(buffer: bytearray, end: int, count: int, fault: Fault) -> Iterator[bytes]:
    """The records in the first `end` bytes of a buffer with some slack behind them.

    Each is made when it is asked for, so that it is still in the CPU's cache when it is used.
    """
    if count and end >= LENGTH_BYTES:
        first: int = _LENGTH.unpack_from(buffer)[0]
        if first and count * (LENGTH_BYTES + first) == end and _all_alike(memoryview(buffer)[:end], first):
            return map(itemgetter(0), struct.iter_unpack(f"<4x{first}s", memoryview(buffer)[:end]))
    return _walk(buffer, end, count, fault)


class _Packers(dict[int, Packer]):
    """By size, what puts a length and a record of that size into a buffer in one call."""

    def __missing__(self, size: int) -> Packer:
        pack: Packer = struct.Struct(f"<I{size}s").pack_into
        if len(self) < _STRUCTS:
            self[size] = pack
        return pack


class _Unpackers(dict[int, Unpacker]):
    """By size, what takes a record of that size and the length that follows it out of a buffer in one call."""

    def __missing__(self, size: int) -> Unpacker:
        unpack: Unpacker = struct.Struct(f"<{size}sI").unpack_from
        if len(self) < _STRUCTS:
            self[size] = unpack
        return unpack


PACKERS = _Packers()
_UNPACKERS = _Unpackers()


def _all_alike(payload: memoryview, length: int) -> bool:
    """Whether every length is this one: compared by the columns of their four bytes, with no step for each record."""
    stride = LENGTH_BYTES + length
    count = len(payload) // stride
    return all(
        payload[column::stride].tobytes() == bytes([byte]) * count for column, byte in enumerate(_LENGTH.pack(length))
    )


def _walk(buffer: bytearray, end: int, count: int, fault: Fault) -> Iterator[bytes]:
    unpackers = _UNPACKERS
    at = LENGTH_BYTES
    length: int = _LENGTH.unpack_from(buffer)[0] if end >= LENGTH_BYTES else 0
    for _ in range(count):
        after = at + length
        if after > end:
            raise fault(f"the record at byte {at - LENGTH_BYTES} of its payload goes past the payload's end")
        # The length behind the last record is no length; the buffer's slack lets it be read, and nobody uses it.
        record, length = unpackers[length](buffer, at)
        yield record
        at = after + LENGTH_BYTES
    if (rest := end + LENGTH_BYTES - at) and (count or end):
        raise fault(f"it claims {count} records, and behind them are {rest} bytes more")
