"""Copies a file from one store to another.

Invariant: a copy is complete or raises an error; a truncated file never passes for a complete one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paddlecloud.files.base import Progress, StoredFile
from paddlecloud.model.errors import ConflictError


def exactly(whole: StoredFile, progress: Progress) -> Iterator[bytes]:
    """Yield the file's pieces; `progress` counts a piece once the next one is requested."""
    left = whole.entry.size
    for piece in whole.pieces():
        yield piece
        left -= len(piece)
        progress(len(piece))
    if left:
        raise _changed(whole.entry.path)


@contextmanager
def cut_short(path: str) -> Iterator[None]:
    try:
        yield
    except EOFError:
        raise _changed(path) from None


def _changed(path: str) -> ConflictError:
    return ConflictError(f"the source of {path!r} was truncated while it was copied: copy it again")
