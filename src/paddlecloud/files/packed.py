"""Streams a folder, or a task's share of an input, as a tar archive without storing the archive."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from paddlecloud.runtime import inputs
from paddlecloud.runtime.inputs import Opened
from paddlecloud.runtime.taskfile import Given, TaskFile

_PIECE_BYTES = 1 << 20
_BLOCK_BYTES = tarfile.BLOCKSIZE


def packed(folder: Path) -> Iterator[bytes]:
    """Pack all files, folders and links below a folder, without their owners."""
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
        raise OSError(f"{path} was truncated while it was sent")
    yield bytes(-size % _BLOCK_BYTES)


def packed_share(task: TaskFile, given: Given, name: str) -> Iterator[bytes]:
    """Pack a task's share of an input as `name`, or below a folder of that name; empty if the input is missing.

    Links are not followed, since the source belongs to a user. Raises InputError before anything is sent.
    """
    descriptor = inputs.open_one(given)
    if descriptor is None:
        return iter((bytes(2 * _BLOCK_BYTES),))
    opened = Opened(given, descriptor, "")
    try:
        files, is_folder = inputs.share(task, opened), opened.is_folder
    except BaseException:
        os.close(descriptor)
        raise
    stream = _shared(descriptor, files, name, is_folder=is_folder)
    next(stream)  # from now on the generator closes the descriptor, even if nobody reads it
    return stream


def _shared(descriptor: int, files: Sequence[str], name: str, *, is_folder: bool) -> Iterator[bytes]:
    try:
        yield b""
        if is_folder:
            yield _header(name, tarfile.DIRTYPE, 0o755, 0)
        for file in files:
            found = inputs.open_below(os.dup(descriptor), file)
            try:
                about = os.fstat(found)
                if not stat.S_ISREG(about.st_mode):
                    raise OSError(f"{file} is no longer a regular file")
                size = about.st_size
                yield _header(f"{name}/{file}" if file else name, tarfile.REGTYPE, 0o444, size)
                yield from _content(f"/proc/self/fd/{found}", size)
            finally:
                os.close(found)
    finally:
        os.close(descriptor)
    yield bytes(2 * _BLOCK_BYTES)


def _header(name: str, kind: bytes, mode: int, size: int) -> bytes:
    made = tarfile.TarInfo(name)
    made.type, made.mode, made.size = kind, mode, size
    return made.tobuf(tarfile.PAX_FORMAT, errors="surrogateescape")
