"""Opens, lists and creates paths inside a folder that job code can write to.

Invariant: nothing outside the folder is reached, whatever job code swaps meanwhile. Each path is walked part by part
through descriptors and never through a link. Sockets, FIFOs and devices are neither opened nor listed. This is the
only module that handles hostile paths.
"""

from __future__ import annotations

import errno
import heapq
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from paddlecloud.model import paths
from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.tree import Kind

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # without NONBLOCK, opening a FIFO would block
_APPEND = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.ENXIO})


@dataclass(frozen=True, slots=True)
class Found:
    """An entry below a folder; `path` is bytes, with parts joined by `/`."""

    path: bytes
    kind: Kind
    stat: os.stat_result
    target: bytes = b""

    @property
    def modified_at(self) -> datetime:
        try:
            return datetime.fromtimestamp(self.stat.st_mtime, UTC)
        except (ValueError, OverflowError):
            # Job code can set any time; one outside the calendar must not break a listing.
            return datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class _WalkOptions:
    """Names are read in batches of `batch`; `every` yields all folders, each before its content."""

    batch: int
    every: bool = False


def open_file(root: Path, path: str) -> int:
    """Return a descriptor of the regular file `path` below `root`; NotFoundError for anything else."""
    *folders, name = paths.raw_of(path).split(b"/")
    folder = _open_folder(root, folders, path)
    try:
        return _open_in(folder, name, path)
    finally:
        os.close(folder)


def open_files(root: Path, named: Iterable[str]) -> Iterator[int | None]:
    """Yield a descriptor for each regular file below `root`, which the caller closes; None for anything else.

    Consecutive files of one folder share one walk to it.
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
        # Check first, since opening some devices has side effects; and again below, since it may be swapped.
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise NotFoundError(f"{path!r} is not a regular file; links are not followed")
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError as error:
        raise _absent(error, path) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotFoundError(f"{path!r} is not a regular file")
    return descriptor


def open_to_append(root: Path, path: str) -> int:
    """Open the regular file `path` below `root` for reading and writing; create it and its folders if missing."""
    above, _, name = paths.raw_of(path).rpartition(b"/")
    folder = made_folder(root, paths.text_of(above))
    try:
        descriptor = os.open(name, _APPEND, 0o644, dir_fd=folder)
        if os.fstat(descriptor).st_size == 0:
            inherit(descriptor, folder)
        os.fsync(folder)
    except OSError as error:
        raise _absent(error, path) from None
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotFoundError(f"{path!r} is not a regular file")
    return descriptor


def open_folder(root: Path, path: str) -> int:
    """Return a descriptor of the folder `path` below `root`; NotFoundError for anything else."""
    return _open_folder(root, _parts(path), path)


def made_folder(root: Path, path: str) -> int:
    """Return a descriptor of the folder `path`, creating it and its parents if missing, all synced to disk."""
    folder = _open_folder(root, (), path)
    try:
        for part in _parts(path):
            folder = _replaced(folder, _made_in(folder, part, path))
    except BaseException:
        os.close(folder)
        raise
    return folder


def look(root: Path, path: str) -> Found:
    """Describe `path` below `root` without following a link; NotFoundError also for entries that are never listed."""
    *folders, name = _parts(path) or [b"."]
    folder = _open_folder(root, folders, path)
    try:
        found = _look(folder, b"".join(part + b"/" for part in folders), name)
    finally:
        os.close(folder)
    if found is None:
        raise NotFoundError(f"there is no file {path!r}")
    return found


def children(root: Path, path: str, after: bytes, limit: int | None) -> Iterator[Found]:
    """Yield the entries of the folder `path`, sorted by name, after the name `after`."""
    folder = open_folder(root, path)
    above = b"".join(part + b"/" for part in _parts(path))
    try:
        while True:
            names = _first_names(folder, after, limit)
            found = [one for name in names if (one := _look(folder, above, name)) is not None]
            yield from found
            if limit is None or len(names) < limit or len(found) == limit:
                return
            after, limit = names[-1], limit - len(found)  # some entries were removed meanwhile
    finally:
        os.close(folder)


def walk(root: Path, start: str, after: bytes | None, batch: int, *, every: bool = False) -> Iterator[Found]:
    """Yield everything at and below `start` ("" is the root), sorted by path parts, after the path `after`.

    By default only empty folders are yielded; with `every` all are, each before its content. Names are read in
    batches, so that memory stays flat in a folder of a million files.
    """
    parts = _parts(start)
    after_parts = after.split(b"/") if after is not None else []
    if after_parts[: len(parts)] < parts:
        after_parts = []
    elif after_parts[: len(parts)] > parts:
        return
    options = _WalkOptions(batch, every)
    folder = _open_folder(root, parts[:-1], start)
    try:
        if not parts:
            yield from _below(folder, b"", after_parts, options)
            return
        _check_present(folder, parts[-1], start)
        above = b"".join(part + b"/" for part in parts[:-1])
        yield from _at(folder, above, parts[-1], after_parts[len(parts) - 1 :], options)
    finally:
        os.close(folder)


def _below(folder: int, above: bytes, after_parts: Sequence[bytes], options: _WalkOptions) -> Iterator[Found]:
    if after_parts:
        yield from _at(folder, above, after_parts[0], after_parts, options)
    last = after_parts[0] if after_parts else b""
    while True:
        names = _first_names(folder, last, options.batch)
        for name in names:
            yield from _at(folder, above, name, (), options)
        if len(names) < options.batch:
            return
        last = names[-1]


def _first_names(folder: int, after: bytes, count: int | None) -> list[bytes]:
    with os.scandir(folder) as entries:
        names = (raw for raw in _listed(entries) if raw > after)
        return sorted(names) if count is None else heapq.nsmallest(count, names)


def _listed(entries: Iterator[os.DirEntry[str]]) -> Iterator[bytes]:
    """Names of listed entries. Others must not fill a batch: each batch scans the whole folder again."""
    for entry in entries:
        if entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False) or entry.is_symlink():
            yield os.fsencode(entry.name)


def _at(folder: int, above: bytes, name: bytes, after_parts: Sequence[bytes], options: _WalkOptions) -> Iterator[Found]:
    """Yield the entry `name`, or what is below it. `after_parts` starts with the name if part of it was listed."""
    itself = _look(folder, above, name)
    if itself is None:
        return
    if itself.kind is not Kind.FOLDER:
        if not after_parts:
            yield itself
        return
    empty = not after_parts
    if options.every and empty:
        yield itself
    for found in _inside(folder, itself.path, name, after_parts[1:], options):
        empty = False
        yield found
    if empty and not options.every:
        yield itself


def _look(folder: int, above: bytes, name: bytes) -> Found | None:
    path = above + name
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return Found(path, Kind.LINK, status, os.fsencode(os.readlink(name, dir_fd=folder)))
    except OSError as error:
        if error.errno in _ABSENT or error.errno == errno.EINVAL:
            return None  # removed or replaced meanwhile
        raise
    if stat.S_ISDIR(status.st_mode):
        return Found(path, Kind.FOLDER, status)
    return Found(path, Kind.FILE, status) if stat.S_ISREG(status.st_mode) else None


def _inside(
    folder: int, path: bytes, name: bytes, after_parts: Sequence[bytes], options: _WalkOptions
) -> Iterator[Found]:
    if path.count(b"/") + 2 > paths.LEVELS or len(path) + paths.NAME_BYTES + 1 >= paths.PATH_BYTES:
        return
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in _ABSENT:
            return
        raise
    try:
        yield from _below(inner, path + b"/", after_parts, options)
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


def _made_in(folder: int, part: bytes, path: str) -> int:
    made = False
    try:
        with suppress(FileExistsError):
            os.mkdir(part, 0o755, dir_fd=folder)
            made = True
            os.fsync(folder)
        inner = os.open(part, _FOLDER, dir_fd=folder)
    except OSError as error:
        if is_file(folder, part):
            raise ConflictError(f"{paths.text_of(part)!r} in {path!r} is a file, not a folder") from None
        raise _absent(error, path) from None
    if made:
        os.fchmod(inner, 0o755)
        inherit(inner, folder)
    return inner


def inherit(descriptor: int, folder: int) -> None:
    """Give a new file or folder the owner of its parent folder, since the user's tasks run as that account. In a
    folder shared by a group, also let the group's members change it."""
    above, found = os.fstat(folder), os.fstat(descriptor)
    if (above.st_uid, above.st_gid) != (found.st_uid, found.st_gid) and os.geteuid() == 0:
        os.fchown(descriptor, above.st_uid, above.st_gid)
    if above.st_mode & stat.S_ISGID:
        shared = stat.S_ISGID | 0o070 if stat.S_ISDIR(found.st_mode) else 0o060
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode) | shared)


def is_file(folder: int, name: bytes) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return False


def _parts(path: str) -> list[bytes]:
    return paths.raw_of(path).split(b"/") if path else []


def _replaced(folder: int, inner: int) -> int:
    os.close(folder)
    return inner


def _absent(error: OSError, path: str) -> Exception:
    """The error for a path that could not be opened: a link, a special file and a missing file look the same."""
    return NotFoundError(f"there is no file {path!r}") if error.errno in _ABSENT else error
