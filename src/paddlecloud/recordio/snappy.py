"""Framed snappy in pure Python, for environments without cramjam: slower, and it stores blocks uncompressed.

Checksums of blocks are written but not verified: RecordIO verifies a checksum of its own for each chunk first.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from functools import cache

HEAD = b"\xff\x06\x00\x00sNaPpY"
BLOCK_BYTES = 65_536
COMPRESSED, PLAIN, FIRST_SKIPPABLE = 0x00, 0x01, 0x80
CHECKSUM_BYTES = 4
_CRC32C = 0x82F63B78  # Castagnoli's polynomial, reflected
_MASK = 0xA282EAD8
_WORD = 0xFFFFFFFF


class BentError(Exception):
    """The bytes are not valid snappy."""


def compress(payload: memoryview) -> bytes:
    made = [HEAD]
    for at in range(0, len(payload), BLOCK_BYTES):
        block = payload[at : at + BLOCK_BYTES]
        made.append(bytes((PLAIN,)) + (CHECKSUM_BYTES + len(block)).to_bytes(3, "little"))
        made.append(masked_checksum(block).to_bytes(CHECKSUM_BYTES, "little"))
        made.append(bytes(block))
    return b"".join(made)


def decompress_into(stored: memoryview, into: memoryview) -> None:
    """Fill `into`, whose size is that of the payload."""
    filled = 0
    for kind, content in _blocks(stored):
        plain = bytes(content) if kind == PLAIN else _plain(bytes(content))
        into[filled : filled + len(plain)] = plain
        filled += len(plain)


def masked_checksum(block: memoryview) -> int:
    """CRC-32C, rotated and offset as the framing format defines."""
    table = _table()
    crc = _WORD
    even = len(block) & ~1
    pairs = array("H", bytes(block[:even]))
    if sys.byteorder == "big":
        pairs.byteswap()
    for pair in pairs:
        crc = table[(crc ^ pair) & 0xFFFF] ^ (crc >> 16)
    if len(block) > even:
        crc = _byte(crc ^ block[even]) ^ (crc >> 8)
    crc ^= _WORD
    return (((crc >> 15) | (crc << 17)) + _MASK) & _WORD


def _blocks(stored: memoryview) -> Iterator[tuple[int, memoryview]]:
    at = len(HEAD)
    while at < len(stored):
        kind, body = stored[at], at + 4
        after = body + int.from_bytes(stored[at + 1 : body], "little")
        if kind in (COMPRESSED, PLAIN):
            yield kind, stored[body + CHECKSUM_BYTES : after]
        at = after


def _plain(block: bytes) -> bytes:
    """One compressed block."""
    try:
        size, at = _size(block)
        return _unpacked(block, at, size)
    except IndexError:
        raise BentError("a block ends within an element") from None


def _unpacked(block: bytes, at: int, size: int) -> bytes:
    made = bytearray()
    while at < len(block):
        tag = block[at]
        if tag & 3 == 0:
            length, at = _literal(block, at)
            made += block[at : at + length]
            at += length
            if at > len(block):
                raise IndexError
        else:
            length, distance, at = _copy(block, at)
            start = len(made) - distance
            if distance == 0 or start < 0:
                raise BentError("a block copies from before its beginning")
            piece = bytes(made[start : start + length])
            made += piece if len(piece) == length else (piece * (length // distance + 1))[:length]
        if len(made) > size:
            raise BentError("a block is larger than it says")
    if len(made) != size:
        raise BentError("a block is smaller than it says")
    return bytes(made)


def _literal(block: bytes, at: int) -> tuple[int, int]:
    length = block[at] >> 2
    more = max(0, length - 59)
    if more:
        length = int.from_bytes(block[at + 1 : at + 1 + more], "little")
    return length + 1, at + 1 + more


def _copy(block: bytes, at: int) -> tuple[int, int, int]:
    """The length and distance of a copy, and the position of the next element."""
    tag = block[at]
    if tag & 3 == 1:
        return (tag >> 2 & 7) + 4, (tag >> 5) << 8 | block[at + 1], at + 2
    width = 2 if tag & 3 == 2 else 4
    distance = int.from_bytes(block[at + 1 : at + 1 + width], "little")
    return (tag >> 2) + 1, distance, at + 1 + width


def _size(block: bytes) -> tuple[int, int]:
    size = 0
    for number in range(5):
        size |= (block[number] & 0x7F) << (7 * number)
        if block[number] < 0x80:
            return size, number + 1
    raise BentError("a block's size is too large")


def _byte(number: int) -> int:
    crc = number & 0xFF
    for _ in range(8):
        crc = crc >> 1 ^ (_CRC32C if crc & 1 else 0)
    return crc


@cache
def _table() -> list[int]:
    """The checksum of every pair of bytes, which halves the iterations of a table of single bytes."""
    single = [_byte(number) for number in range(256)]
    return [single[(single[pair & 0xFF] ^ pair >> 8) & 0xFF] ^ single[pair & 0xFF] >> 8 for pair in range(65_536)]
