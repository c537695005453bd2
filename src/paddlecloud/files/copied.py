"""A file on its way from one store to another: all of it, or an error; a file that was cut must not pass for whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paddlecloud.files.base import Progress, StoredFile
from paddlecloud.model.errors import ConflictError


def exactly(whole: StoredFile, progress: Progress) -> Iterator[bytes]:
    """Its pieces, each told once whoever takes them asks for more."""
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
    return ConflictError(f"what {path!r} is copied from was cut meanwhile: copy it again")
