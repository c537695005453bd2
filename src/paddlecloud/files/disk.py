"""Writes files so that they survive a crash.

Invariant: a name appears only once its bytes are on disk, and a full disk leaves no partial file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from paddlecloud.model.errors import FullError

NEW = ".new-"  # prefix of names that are still being written; after a crash these can be removed

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL})
_COPY_BYTES = 1024 * 1024
_FSYNC_LIMIT = 16


@contextmanager
def room_for(what: str, folder: str = "") -> Iterator[None]:
    """Raise FullError when the disk is full; `folder` is where, unless the error names it."""
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        named = error.filename if isinstance(error.filename, str) and os.path.isabs(error.filename) else ""
        where = f", in {folder or os.path.dirname(named)}," if folder or named else ""
        raise FullError(f"no space left on the server{where} for {what}: free some space and try again") from None


def check_room(folder: str, size: int, spare: int) -> None:
    """Raise FullError unless `size` more bytes leave `spare` bytes free on the folder's disk."""
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize < size + spare:
        raise FullError(f"no space left on the server, in {folder}, for this upload: free some space and try again")


def make_folder(path: str) -> None:
    """Create a folder that only this account can read, synced to disk, unless it exists."""
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
        sync(os.path.dirname(path))


def there(path: str) -> bool:
    """Whether the name exists, even as a dangling link. Faster than os.path, which raises and catches."""
    return os.access(path, os.F_OK, follow_symlinks=False)


def new_name(folder: str) -> str:
    return f"{folder}/{NEW}{secrets.token_hex(8)}"


def write_all(folder: str, contents: Sequence[tuple[str, bytes]], mode: int) -> None:
    """Write files into one folder, each given as (name, bytes); all are synced to disk."""
    if not contents:
        return
    within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    written: list[tuple[str, str]] = []
    try:
        begin = os.path.basename(new_name(folder))
        for number, (name, content) in enumerate(contents):
            temporary = f"{begin}-{number}"
            written.append((temporary, name))
            _write(temporary, within, content, mode)
        sync_all(within, [temporary for temporary, _ in written])
        for temporary, name in written:
            os.replace(temporary, name, src_dir_fd=within, dst_dir_fd=within)
        os.fsync(within)
    except BaseException:
        for temporary, _ in written:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=within)
        raise
    finally:
        os.close(within)


def write_by(path: str, mode: int, write: Callable[[int], None]) -> None:
    """Create the file `path` from what `write` puts into the given descriptor; the folder is not synced."""
    temporary = new_name(os.path.dirname(path))
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write(descriptor)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_at(descriptor: int, content: bytes, offset: int) -> None:
    rest = memoryview(content)
    while rest:
        count = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[count:], offset + count


def copy(source: int, source_offset: int, target: int, target_offset: int, count: int) -> None:
    """Copy a range between files inside the kernel, or through a small buffer if the kernel does not support it."""
    while count:
        try:
            copied = os.copy_file_range(source, target, count, source_offset, target_offset)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            piece = os.pread(source, min(count, _COPY_BYTES), source_offset)
            write_at(target, piece, target_offset)
            copied = len(piece)
        if not copied:
            raise EOFError("the source file is shorter than expected")
        source_offset, target_offset, count = source_offset + copied, target_offset + copied, count - copied


def sync(path: str, within: int | None = None) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=within)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(folder: int, paths: Sequence[str]) -> None:
    """Sync paths below the descriptor `folder`. Many paths are synced as one file system, since each fsync flushes the
    disk."""
    if len(paths) > _FSYNC_LIMIT and _syncfs is not None:
        if _syncfs(folder):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    else:
        for path in paths:
            sync(path, within=folder)


def remove_tree(path: str) -> None:
    """Remove a tree that may contain read-only folders."""
    for folder, _, _ in os.walk(path):
        os.chmod(folder, 0o700)
    shutil.rmtree(path)


def older_than(folder: str, before: float) -> list[str]:
    """Entries of a folder last modified before a time, in seconds."""
    with os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.stat(follow_symlinks=False).st_mtime < before]


def _write(name: str, within: int, content: bytes, mode: int) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=within)
    try:
        write_at(descriptor, content, 0)
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


# Python lacks syncfs(2); if the C library lacks it too, each file is synced.
_syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
