"""The checksum of a file as HDFS makes it where its clients use CRC32: of each block the MD5 of the CRCs of its chunks,
and of the file that of all of these."""

from __future__ import annotations

import hashlib
import struct
import zlib
from typing import Any

CHUNK_BYTES = 512
BLOCK_BYTES = 128 * 1024 * 1024
_LENGTH = 28
_BUFFER_BYTES = 32


class FileChecksum:
    """Takes a file piece by piece; all but the last piece must be of whole chunks."""

    def __init__(self) -> None:
        self._block = hashlib.md5(usedforsecurity=False)
        self._in_block = 0
        self._size = 0
        self._blocks: list[bytes] = []

    def update(self, piece: bytes) -> None:
        for start in range(0, len(piece), CHUNK_BYTES):
            if self._in_block == BLOCK_BYTES:
                self._end_block()
            chunk = piece[start : start + CHUNK_BYTES]
            self._block.update(zlib.crc32(chunk).to_bytes(4, "big"))
            self._in_block += len(chunk)
        self._size += len(piece)

    def result(self) -> dict[str, Any]:
        """As `FileChecksum` of WebHDFS has it."""
        if self._in_block:
            self._end_block()
        each = BLOCK_BYTES // CHUNK_BYTES if len(self._blocks) > 1 else 0
        chunk = CHUNK_BYTES if self._size else 0
        whole = hashlib.md5(_padded(b"".join(self._blocks)), usedforsecurity=False).digest()
        told = struct.pack(">iq", chunk, each) + whole
        return {
            "algorithm": f"MD5-of-{each}MD5-of-{chunk}CRC32",
            "bytes": (told + bytes(_BUFFER_BYTES - len(told))).hex(),
            "length": _LENGTH,
        }

    def _end_block(self) -> None:
        self._blocks.append(self._block.digest())
        self._block = hashlib.md5(usedforsecurity=False)
        self._in_block = 0


def _padded(blocks: bytes) -> bytes:
    """Hadoop digests the buffer that it has gathered them in, which begins with 32 bytes and doubles as it must."""
    size = _BUFFER_BYTES
    while size < len(blocks):
        size *= 2
    return blocks + bytes(size - len(blocks))
