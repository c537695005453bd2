"""Opening and listing below a folder that job code can write: the one place that touches hostile paths.

A path is walked one part at a time by descriptors and never through a link, so nothing outside the folder is
reached, whatever is swapped meanwhile. Sockets, FIFOs and devices are neither opened nor listed.
"""

from __future__ import annotations

import errno
import heapq
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.model import paths
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.tree import Kind

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # without NONBLOCK a FIFO would stop us
_APPENDED = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.ENXIO})


@dataclass(frozen=True, slots=True)
class Found:
    """Something below a folder: its path as bytes, parts joined by `/`."""

    path: bytes
    kind: Kind
    stat: os.stat_result
    target: bytes = b""


def open_file(root: Path, path: str) -> int:
    """A descriptor of the regular file `path` below `root`; NotFoundError for anything else."""
    *folders, name = paths.raw_of(path).split(b"/")
    folder = _open_folder(root, folders, path)
    try:
        return _open_in(folder, name, path)
    finally:
        os.close(folder)


def open_files(root: Path, named: Iterable[str]) -> Iterator[int | None]:
    """A descriptor of each regular file below `root`, to be closed by the caller; None for anything else.

    A folder is walked to once for all that follow one another in it.
    """
    folder: int | None = None
    above: bytes | None = None
    try:
        for path in named:
            before, (above, _, name) = above, paths.raw_of(path).rpartition(b"/")
            try:
                if folder is None or above != before:
                    if folder is not None:
                        os.close(folder)
                        folder = None
                    folder = _open_folder(root, above.split(b"/") if above else (), path)
                descriptor = _open_in(folder, name, path)
            except NotFoundError:
                yield None
            else:
                yield descriptor
    finally:
        if folder is not None:
            os.close(folder)


def _open_in(folder: int, name: bytes, path: str) -> int:
    try:
        # Looked at first, since opening some devices does something; and again below, since it may be swapped.
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise NotFoundError(f"{path!r} is not a plain file; links are not followed")
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        raise _absent(error, path) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotFoundError(f"{path!r} is not a plain file")
    return descriptor


def open_to_append(root: Path, path: str) -> int:
    """A descriptor of the regular file `path` below `root` to read and write; it and its folders are made if absent."""
    *folders, name = paths.raw_of(path).split(b"/")
    folder = _open_folder(root, (), path)
    try:
        for part in folders:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=folder)
                os.fsync(folder)
            folder = _replaced(folder, os.open(part, _FOLDER, dir_fd=folder))
        descriptor = os.open(name, _APPENDED, 0o644, dir_fd=folder)
        os.fsync(folder)
    except OSError as error:
        raise _absent(error, path) from None
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotFoundError(f"{path!r} is not a plain file")
    return descriptor


def walk(root: Path, start: str, after: bytes | None, batch: int) -> Iterator[Found]:
    """What is at and below `start` ("" is all), in the order of its paths' parts, behind the path `after`.

    A folder is found where nothing below it is. Names are taken in batches, so that memory stays flat in a folder
    of a million files.
    """
    parts = paths.raw_of(start).split(b"/") if start else []
    behind = after.split(b"/") if after is not None else []
    if behind[: len(parts)] < parts:
        behind = []
    elif behind[: len(parts)] > parts:
        return
    folder = _open_folder(root, parts[:-1], start)
    try:
        if not parts:
            yield from _below(folder, b"", behind, batch)
            return
        _check_present(folder, parts[-1], start)
        above = b"".join(part + b"/" for part in parts[:-1])
        yield from _at(folder, above, parts[-1], behind[len(parts) - 1 :], batch)
    finally:
        os.close(folder)


def _below(folder: int, above: bytes, behind: Sequence[bytes], batch: int) -> Iterator[Found]:
    if behind:
        yield from _at(folder, above, behind[0], behind, batch)
    last = behind[0] if behind else b""
    while True:
        with os.scandir(folder) as entries:
            names = heapq.nsmallest(batch, (raw for raw in _listed(entries) if raw > last))
        for name in names:
            yield from _at(folder, above, name, (), batch)
        if len(names) < batch:
            return
        last = names[-1]


def _listed(entries: Iterator[os.DirEntry[str]]) -> Iterator[bytes]:
    """The names of what is listed. What is not must take no place in a batch: each costs a look at all names."""
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False) or entry.is_symlink():
            yield os.fsencode(entry.name)


def _at(folder: int, above: bytes, name: bytes, behind: Sequence[bytes], batch: int) -> Iterator[Found]:
    """One name of a folder: itself, or what is below it. `behind` begins with the name if some of it was listed."""
    path = above + name
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        target = os.fsencode(os.readlink(name, dir_fd=folder)) if stat.S_ISLNK(status.st_mode) else b""
    except OSError as error:
        if error.errno in _ABSENT or error.errno == errno.EINVAL:
            return  # removed, or replaced, while we looked
        raise
    if stat.S_ISDIR(status.st_mode):
        empty = not behind
        for found in _inside(folder, path, name, behind[1:], batch):
            empty = False
            yield found
        if empty:
            yield Found(path, Kind.FOLDER, status)
    elif not behind and stat.S_ISREG(status.st_mode):
        yield Found(path, Kind.FILE, status)
    elif not behind and target:
        yield Found(path, Kind.LINK, status, target)


def _inside(folder: int, path: bytes, name: bytes, behind: Sequence[bytes], batch: int) -> Iterator[Found]:
    if path.count(b"/") + 2 > paths.LEVELS or len(path) + paths.NAME_BYTES + 1 >= paths.PATH_BYTES:
        return
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in _ABSENT:
            return
        raise
    try:
        yield from _below(inner, path + b"/", behind, batch)
    finally:
        os.close(inner)


def _check_present(folder: int, name: bytes, path: str) -> None:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        raise _absent(error, path) from None


def _open_folder(root: Path, parts: Sequence[bytes], path: str) -> int:
    try:
        folder = os.open(root, _FOLDER)
    except OSError as error:
        raise _absent(error, path) from None
    for part in parts:
        try:
            inner = os.open(part, _FOLDER, dir_fd=folder)
        except OSError as error:
            raise _absent(error, path) from None
        finally:
            os.close(folder)
        folder = inner
    return folder


def _replaced(folder: int, inner: int) -> int:
    os.close(folder)
    return inner


def _absent(error: OSError, path: str) -> Exception:
    """What to raise for a path that could not be opened: links, odd things and what is not there look the same."""
    return NotFoundError(f"there is no file {path!r}") if error.errno in _ABSENT else error
