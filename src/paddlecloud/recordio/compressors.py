"""Compresses and decompresses chunk payloads: none, snappy's framing format, or gzip.

Invariant: the size that a payload declares is checked against the reader's limit before memory is allocated.
"""

from __future__ import annotations

import enum
import zlib
from collections.abc import Callable
from types import ModuleType

from paddlecloud.recordio import snappy
from paddlecloud.recordio.snappy import BLOCK_BYTES, CHECKSUM_BYTES, COMPRESSED, FIRST_SKIPPABLE, HEAD, PLAIN

SLACK_BYTES = 4  # after a payload in its buffer, since the parser always reads the next length

_GZIP = 31  # zlib's wbits for a gzip header with the largest window
_PIECE = 1 << 20


class Compressor(enum.IntEnum):
    NONE = 0
    SNAPPY = 1
    GZIP = 2


class TooLargeError(Exception):
    """A payload would decompress to more than the limit."""


class BentError(Exception):
    """A payload is not valid compressed data; the message names the byte."""


class Squeezer:
    """Compresses the payload of one chunk in pieces; every piece but the last consists of whole blocks."""

    def __init__(self, compressor: Compressor) -> None:
        self._compressor = compressor
        self._is_first = True
        self._packer = zlib.compressobj(wbits=_GZIP) if compressor is Compressor.GZIP else None

    def piece(self, payload: memoryview) -> bytes | memoryview:
        if self._packer is not None:
            return self._packer.compress(payload)
        if self._compressor is Compressor.NONE:
            return payload
        # Snappy blocks are independent: pieces form one stream once all but the first lose their stream header.
        cramjam = _cramjam()
        framed = snappy.compress(payload) if cramjam is None else bytes(cramjam.snappy.compress(payload))
        stored = framed if self._is_first else framed[len(HEAD) :]
        self._is_first = False
        return stored

    def last(self, payload: memoryview) -> bytes | memoryview:
        stored = self.piece(payload)
        return stored if self._packer is None else bytes(stored) + self._packer.flush()


def decompress(stored: memoryview, compressor: Compressor, limit: int, into: bytearray) -> tuple[bytearray, int]:
    """Return the payload's buffer and size; the buffer is `into`, or a larger one if the payload does not fit."""
    if compressor is Compressor.SNAPPY:
        return _unsnap(stored, limit, into)
    return _gunzip(stored, limit)


def _unsnap(stored: memoryview, limit: int, into: bytearray) -> tuple[bytearray, int]:
    size = snappy_size(stored)
    if size > limit:
        raise TooLargeError
    buffer = into if len(into) >= size + SLACK_BYTES else bytearray(size + SLACK_BYTES)
    if size == 0:
        return buffer, 0
    cramjam = _cramjam()
    into_it, bent = (snappy.decompress_into, snappy.BentError) if cramjam is None else _quick(cramjam)
    try:
        into_it(stored, memoryview(buffer)[:size])
    except bent as error:
        raise BentError(f"snappy cannot read it ({error})") from None
    return buffer, size


def snappy_size(stored: memoryview) -> int:
    """The decompressed size of framed snappy, as its blocks declare it; no block may exceed the format's limit."""
    if stored[: len(HEAD)] != HEAD:
        raise BentError("it is not framed snappy: the stream header is missing")
    at, total, end = len(HEAD), 0, len(stored)
    while at < end:
        kind = stored[at]
        body = at + 4
        after = body + int.from_bytes(stored[at + 1 : body], "little")
        if body > end or after > end:
            raise BentError(f"the snappy block at its byte {at} extends past its end")
        total += _block_size(kind, stored[body:after], at)
        at = after
    return total


def _block_size(kind: int, block: memoryview, at: int) -> int:
    if kind in (COMPRESSED, PLAIN) and len(block) >= CHECKSUM_BYTES:
        content = block[CHECKSUM_BYTES:]
        size = len(content) if kind == PLAIN else _varint(content)
        if size <= BLOCK_BYTES:
            return size
    elif kind >= FIRST_SKIPPABLE:
        return 0
    raise BentError(f"there is no valid snappy block at its byte {at}")


def _varint(content: memoryview) -> int:
    """The size at the start of a block; one with more than three bytes exceeds the block limit."""
    size = 0
    for number, byte in enumerate(content[:3]):
        size |= (byte & 0x7F) << (7 * number)
        if byte < 0x80:
            return size
    return BLOCK_BYTES + 1


def _gunzip(stored: memoryview, limit: int) -> tuple[bytearray, int]:
    made = bytearray()
    rest = bytes(stored)
    while rest:
        unpacker = zlib.decompressobj(wbits=_GZIP)
        rest = _member(unpacker, rest, limit, made)
    return made + bytes(SLACK_BYTES), len(made)


def _member(unpacker: zlib._Decompress, rest: bytes, limit: int, made: bytearray) -> bytes:
    """Decompress one gzip member (there may be several) onto `made`; return the data after it."""
    while not unpacker.eof:
        try:
            piece = unpacker.decompress(rest, min(_PIECE, limit + 1 - len(made)))
        except zlib.error as error:
            raise BentError(f"gzip cannot read it ({error})") from None
        rest = unpacker.unconsumed_tail
        made += piece
        if len(made) > limit:
            raise TooLargeError
        if not piece and not rest and not unpacker.eof:
            raise BentError("its gzip data ends too early")
    return unpacker.unused_data


def _quick(cramjam: ModuleType) -> tuple[Callable[[memoryview, memoryview], object], type[Exception]]:
    return cramjam.snappy.decompress_into, cramjam.DecompressionError


def _cramjam() -> ModuleType | None:
    """The package that is far quicker than ours, if it is there: a task need not have it."""
    try:
        import cramjam
    except ImportError:
        return None
    module: ModuleType = cramjam
    return module
