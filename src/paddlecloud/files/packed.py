"""A folder as one stream (a tar archive), made as it is read: nothing of it is kept."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

_PIECE_BYTES = 1 << 20
_BLOCK_BYTES = tarfile.BLOCKSIZE


def packed(folder: Path) -> Iterator[bytes]:
    """All files, folders and links below a folder; whose they are is nobody's business."""
    for above, names, files in os.walk(folder):
        names.sort()
        for name in sorted([*files, *(one for one in names if os.path.islink(os.path.join(above, one)))]):
            yield from _entry(os.path.join(above, name), folder)
        for name in names:
            if not os.path.islink(os.path.join(above, name)):
                yield from _entry(os.path.join(above, name), folder)
    yield bytes(2 * _BLOCK_BYTES)


def _entry(path: str, folder: Path) -> Iterator[bytes]:
    found = os.lstat(path)
    made = tarfile.TarInfo(os.path.relpath(path, folder))
    made.mode = stat.S_IMODE(found.st_mode)
    made.mtime = int(found.st_mtime)
    if stat.S_ISDIR(found.st_mode):
        made.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(found.st_mode):
        made.type, made.linkname = tarfile.SYMTYPE, os.readlink(path)
    elif stat.S_ISREG(found.st_mode):
        made.size = found.st_size
    else:
        return
    yield made.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
    if made.size:
        yield from _content(path, made.size)


def _content(path: str, size: int) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as file:
        left = size
        while left and (piece := file.read(min(left, _PIECE_BYTES))):
            left -= len(piece)
            yield piece
    if left:
        raise OSError(f"{path} became shorter while it was sent")
    yield bytes(-size % _BLOCK_BYTES)
