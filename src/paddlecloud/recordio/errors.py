"""What is wrong with a file of records, and where: the path, the chunk, the byte.

CorruptError             the bytes are not those that were written; `offset` is where the chunk begins
├── TruncatedError       the file ends within a chunk
├── ForeignError         these are records of another format
└── OversizedError       a chunk would take more memory than the reader was allowed
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
        # It crosses from a reading process to the one that asked.
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
    """What a reader passed over: the fault, and how many bytes of the file were not read because of it."""

    error: CorruptError
    skipped_bytes: int
