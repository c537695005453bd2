"""Random access to records by number, using an index built from the chunk headers alone."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from types import TracebackType
from typing import Self, overload

from paddlecloud.recordio.scan import LIMIT_BYTES, ChunkFile, Place


class IndexedReader(Sequence[bytes]):
    """The records of one file by number: `reader[7]`, `reader[-1]`, `len(reader)`, `reader.range(100, 200)`.

    Each chunk is read and checked as a whole; the last one is cached, so reading neighbouring records is cheap.
    """

    def __init__(self, path: str | os.PathLike[str], *, limit_bytes: int = LIMIT_BYTES) -> None:
        self._file = ChunkFile(path, limit_bytes=limit_bytes)
        try:
            self.chunks: tuple[Place, ...] = tuple(self._file.places())
        except BaseException:
            self._file.close()
            raise
        self._firsts = list(accumulate((place.header.records for place in self.chunks), initial=0))
        self._cached: tuple[int, list[bytes]] | None = None

    @property
    def path(self) -> str:
        return self._file.path

    def chunk(self, number: int) -> list[bytes]:
        """All records of one chunk."""
        if self._cached is None or self._cached[0] != number:
            self._cached = (number, list(self._file.records(self.chunks[number])))
        return self._cached[1]

    def range(self, start: int, stop: int) -> Iterator[bytes]:
        """Yield records `start` up to but not including `stop`; reads only the chunks that contain them."""
        start, stop, _ = slice(start, stop).indices(len(self))
        number = bisect_right(self._firsts, start) - 1
        while start < stop:
            first, after = self._firsts[number], self._firsts[number + 1]
            yield from islice(self.chunk(number), start - first, stop - first)
            start, number = after, number + 1

    def __len__(self) -> int:
        return self._firsts[-1]

    @overload
    def __getitem__(self, number: int) -> bytes: ...
    @overload
    def __getitem__(self, number: slice) -> list[bytes]: ...
    def __getitem__(self, number: int | slice) -> bytes | list[bytes]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        at = number + len(self) if number < 0 else number
        if not 0 <= at < len(self):
            raise IndexError(f"{self.path} has {len(self)} records: there is no record {number}")
        chunk = bisect_right(self._firsts, at) - 1
        return self.chunk(chunk)[at - self._firsts[chunk]]

    def __iter__(self) -> Iterator[bytes]:
        return self.range(0, len(self))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
