"""The bytes of a chunk: a header of 20 bytes, and records that each follow their length.

No number of a header is believed before it was checked against the file: it decides neither a size nor a loop.
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
_HANDFUL = 256  # records at most that are made at once
_HANDFUL_BYTES = 1 << 16

Buffer = bytearray | mmap.mmap
Packer = Callable[..., None]
Unpacker = Callable[[Buffer, int], tuple[bytes, int]]
Taker = Callable[[Buffer, int], tuple[bytes, ...]]
Fault = Callable[[str], Exception]
Handful = tuple[Sequence[bytes], int]  # records that are made at once, and where the next one begins


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


def records(buffer: Buffer, start: int, size: int, count: int, fault: Fault) -> Iterator[bytes]:
    """The records in `size` bytes of a buffer with some slack behind them.

    A few are made at a time, when they are asked for, so that they are still in the CPU's cache when they are used.
    """
    return chain.from_iterable(_handfuls(buffer, start, size, count, fault))


class _Packers(dict[int, Packer]):
    """By size, what puts a length and a record of that size into a buffer in one call."""

    def __missing__(self, size: int) -> Packer:
        pack: Packer = struct.Struct(f"<I{size}s").pack_into
        _make_room(self)
        self[size] = pack
        return pack


class _Unpackers(dict[int, Unpacker]):
    """By size, what takes a record of that size and the length that follows it out of a buffer in one call."""

    def __missing__(self, size: int) -> Unpacker:
        unpack: Unpacker = struct.Struct(f"<{size}sI").unpack_from
        _make_room(self)
        self[size] = unpack
        return unpack


def _make_room(prepared: dict[int, Any]) -> None:
    """All go when there are too many, so that the sizes that come now are among them."""
    if len(prepared) >= _STRUCTS:
        prepared.clear()


PACKERS = _Packers()
_UNPACKERS = _Unpackers()


def _handfuls(buffer: Buffer, start: int, size: int, count: int, fault: Fault) -> Iterator[Sequence[bytes]]:
    at, end, left = start, start + size, count
    most = min(_HANDFUL, max(1, _HANDFUL_BYTES * count // (size + 1)))
    while left:
        made, at = _alike(buffer, at, end, min(left, most)) or _walked(buffer, at, end, min(left, most))
        if not made:
            raise fault(f"the record at byte {at - start} of its payload goes past the payload's end")
        yield made
        left -= len(made)
    if at < end:
        raise fault(f"it claims {count} records, and behind them are {end - at} bytes more")


def _alike(buffer: Buffer, at: int, end: int, number: int) -> Handful | None:
    """Records of one length, taken out in one call; None if those that follow are not."""
    length: int = _LENGTH.unpack_from(buffer, at)[0]
    stride = LENGTH_BYTES + length
    after = at + number * stride
    if number < _HANDFUL // 8 or after > end or _LENGTH.unpack_from(buffer, after - stride)[0] != length:
        return None
    take, columns = _taker(length, number)
    for column, alike in enumerate(columns, at):
        if buffer[column:after:stride] != alike:
            return None
    return take(buffer, at), after


@lru_cache
def _taker(length: int, number: int) -> tuple[Taker, list[bytes]]:
    """What takes the records out, and the lengths before them if all are alike, as the columns that their four bytes
    make: to compare those takes no step for each record."""
    columns = [bytes([byte]) * number for byte in _LENGTH.pack(length)]
    return struct.Struct("<" + f"{LENGTH_BYTES}x{length}s" * number).unpack_from, columns


def _walked(buffer: Buffer, at: int, end: int, number: int) -> Handful:
    """Records one after the other, each by the length before it, up to one that goes past the end."""
    unpackers = _UNPACKERS
    made: list[bytes] = []
    length: int = _LENGTH.unpack_from(buffer, at)[0]
    at += LENGTH_BYTES
    for _ in range(number):
        after = at + length
        if after > end:
            break
        # The length behind the last record is no length; the buffer's slack lets it be read, and nobody uses it.
        record, length = unpackers[length](buffer, at)
        made.append(record)
        at = after + LENGTH_BYTES
    return made, at - LENGTH_BYTES
