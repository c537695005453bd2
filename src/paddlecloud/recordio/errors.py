"""Errors in record files, with the path, the chunk and the byte offset.

CorruptError             the bytes differ from those written; `offset` is where the chunk begins
├── TruncatedError       the file ends within a chunk
├── ForeignError         the records have another format
└── OversizedError       a chunk would take more memory than the reader allows
MissingPartError         a compressor or codec needs a package that is not installed
"""

from __future__ import annotations

from typing import NamedTuple


class CorruptError(ValueError):
    def __init__(self, path: str, chunk: int, offset: int, reason: str) -> None:
        super().__init__(f"{path}: chunk {chunk} at byte {offset}: {reason}")
        self.path = path
        self.chunk = chunk
        self.offset = offset
        self.reason = reason

    def __reduce__(self) -> tuple[type[CorruptError], tuple[str, int, int, str]]:
        # Lets pickle pass the error from a worker process to the caller.
        return type(self), (self.path, self.chunk, self.offset, self.reason)


class TruncatedError(CorruptError):
    pass


class ForeignError(CorruptError):
    pass


class OversizedError(CorruptError):
    pass


class MissingPartError(ImportError):
    def __init__(self, what: str, package: str) -> None:
        super().__init__(f"{what} needs {package}, which is not installed: pip install 'paddlecloud[recordio]'")


class Skipped(NamedTuple):
    """A part of a file that a reader skipped: the error, and the number of bytes skipped because of it."""

    error: CorruptError
    skipped_bytes: int
