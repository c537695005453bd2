"""An open file, limited to the `entry.size` bytes it had when opened, since it may still grow."""

from __future__ import annotations

import os
from collections.abc import Iterator

from paddlecloud.model.transfers import FileEntry

PIECE_BYTES = 1024 * 1024


class OpenedFile:
    """Reads through a descriptor that it owns."""

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
        """Return the bytes from `start` up to `end`; fewer if the file ends earlier or was truncated meanwhile."""
        wanted = min(end, self._entry.size) - start
        if wanted <= 0:
            return b""
        # A single read avoids a second copy; a signal or an unusual file system may cut it short.
        content = os.pread(self._descriptor, wanted, start)
        return content if len(content) == wanted else content + b"".join(self.pieces(start + len(content), end))

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the same bytes in pieces of at most one megabyte."""
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
    """Includes the quotes of RFC 9110."""
    return f'"{found.st_size:x}-{found.st_mtime_ns:x}-{found.st_ino:x}"'
