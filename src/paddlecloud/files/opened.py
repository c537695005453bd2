"""An open file as its bytes were when it was opened: its first `entry.size` are meant, since it may still grow."""

from __future__ import annotations

import os
from collections.abc import Iterator

from paddlecloud.model.transfers import FileEntry

PIECE_BYTES = 1024 * 1024


class OpenedFile:
    """Reads by a descriptor, which it owns."""

    def __init__(self, descriptor: int, entry: FileEntry, etag: str) -> None:
        self._descriptor = descriptor
        self._entry = entry
        self._etag = etag

    @property
    def entry(self) -> FileEntry:
        return self._entry

    @property
    def etag(self) -> str:
        return self._etag

    def fileno(self) -> int:
        return self._descriptor

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end` at once; less if the file ends before, or was cut meanwhile."""
        wanted = min(end, self._entry.size) - start
        if wanted <= 0:
            return b""
        # A single read, which takes no second copy; a signal or a disk of another kind may cut it short.
        content = os.pread(self._descriptor, wanted, start)
        return content if len(content) == wanted else content + b"".join(self.pieces(start + len(content), end))

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The same in pieces of at most a megabyte."""
        end = self._entry.size if end is None else min(end, self._entry.size)
        while start < end:
            piece = os.pread(self._descriptor, min(PIECE_BYTES, end - start), start)
            if not piece:
                return
            yield piece
            start += len(piece)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def etag_of(found: os.stat_result) -> str:
    """With its quotes, as RFC 9110 writes it."""
    return f'"{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ino:x}"'
