"""Stores a datacenter's files as a plain folder tree on this server's disk, which operators may fill by any means.

Every file is written to `.staging`, which no path can name, and moved into place when complete and synced to disk.
The user's job code may swap any part of a path for a link at any moment, so all operations use descriptors.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path

from msgspec.structs import replace

from paddlecloud.files import below, disk
from paddlecloud.files.base import Progress, StoredFile, Usage
from paddlecloud.files.below import Found
from paddlecloud.files.copied import cut_short, exactly
from paddlecloud.files.counting import Counter, content
from paddlecloud.files.opened import OpenedFile, etag_of
from paddlecloud.model import paths
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnsupportedError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.runtime.removal import CHANGE, at_once, opened, opened_root, remove

log = logging.getLogger(__name__)

STAGING = ".staging"
_STAGED = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE = 0o644
_COPIED_BYTES = 64 * 1024 * 1024  # between two progress calls
_BATCH = 10_000  # names of a folder that a walk holds in memory; each batch scans the whole folder again
_OCCUPIED = frozenset({errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST})
_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_UNNAMEABLE = frozenset({errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL})


class LocalStore:
    """Creates `root` if missing. Only one process may use a root: opening it deletes leftovers in `.staging`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
        disk.make_folder(self._staging)
        for name in os.listdir(self._staging):
            try:
                remove(self._staging, name)
            except OSError as error:
                log.warning("cannot remove %s/%s: %s", self._staging, name, error)

    @property
    def kind(self) -> str:
        return "local"

    @property
    def folder(self) -> Path | None:
        return self._root

    def stat(self, path: str) -> FileEntry:
        return _entry(path, below.look(self._root, _checked(path)))

    def list(self, folder: str, *, after: str = "", limit: int | None = None) -> Sequence[FileEntry]:
        self._check_folder(folder)
        # List one more in the root: the staging folder is filtered out.
        count = limit if limit is None or folder else limit + 1
        found = below.children(self._root, folder, paths.raw_of(after), count)
        return [_entry(paths.text_of(one.path), one) for one in found if _is_listed(one)][:limit]

    def walk(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        self._check_folder(folder)
        itself = paths.raw_of(folder)
        found = below.walk(self._root, folder, paths.raw_of(after) or None, _BATCH, every=True)
        return (_entry(paths.text_of(one.path), one) for one in found if _is_listed(one) and one.path != itself)

    def open(self, path: str) -> StoredFile:
        try:
            descriptor = below.open_file(self._root, _checked(path))
        except NotFoundError:
            self._check_no_folder(path)
            raise
        found = os.fstat(descriptor)
        return OpenedFile(descriptor, _entry(path, Found(b"", Kind.FILE, found)), etag_of(found))

    def write(self, path: str, pieces: Iterable[bytes]) -> FileEntry:
        self._check_no_folder(path)
        with self._staged(path) as (staging, name):

            def fill(descriptor: int) -> None:
                at = 0
                for piece in pieces:
                    with disk.room_for(repr(path)):
                        disk.write_at(descriptor, piece, at)
                    at += len(piece)

            entry = _made(staging, name, path, fill)
            self._place(staging, name, path)
            return entry

    def write_all(self, contents: Sequence[tuple[str, bytes]]) -> None:
        for path, _ in contents:
            self._check_no_folder(path)
        with self._opened_staging() as staging:
            token = secrets.token_hex(8)
            staged = [(f"{token}-{number}", path, whole) for number, (path, whole) in enumerate(contents)]
            try:
                with disk.room_for(f"{len(contents)} files"):
                    for name, _, whole in staged:
                        _write_small(staging, name, whole)
                    disk.sync_all(staging, [name for name, _, _ in staged])
                self._place_all(staging, [(name, path) for name, path, _ in staged])
            finally:
                for name, _, _ in staged:
                    _unlink(staging, name)

    def adopt(self, path: str, whole: Path) -> FileEntry:
        self._check_no_folder(path)
        descriptor = os.open(whole, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, _MODE)
            os.fsync(descriptor)
            entry = _entry(path, Found(b"", Kind.FILE, os.fstat(descriptor)))
            if not self._renamed(whole, path):
                entry = self._copied(descriptor, entry)
        finally:
            os.close(descriptor)
        whole.unlink(missing_ok=True)
        return entry

    def copy(self, whole: StoredFile, path: str, progress: Progress) -> FileEntry:
        self._check_no_folder(path)
        if not isinstance(whole, OpenedFile):
            return self.write(path, exactly(whole, progress))
        return self._copied(whole.fileno(), replace(whole.entry, path=path), progress)

    def make_folder(self, path: str) -> None:
        with _translated_errors(path):
            os.close(below.made_folder(self._root, _checked(path)))

    def move(self, source: str, target: str) -> None:
        is_folder = self._is_folder(source)
        if source == target:
            return
        if not source or f"{target}/".startswith(f"{source}/"):
            raise ConflictError(f"{source!r} cannot be moved into itself")
        self._check_no_folder(target)
        with self._opened_parent(source) as (here, old), self._opened_parent(target, make=True) as (there, new):
            if is_folder and below.is_file(there, new):
                raise ConflictError(f"{target!r} is a file; a folder cannot be put in its place")
            with _translated_errors(target):
                os.rename(old, new, src_dir_fd=here, dst_dir_fd=there)
                os.fsync(there)
                os.fsync(here)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        found = below.look(self._root, _checked(path))
        if not path:
            raise ConflictError("the root of a store cannot be removed")
        with self._opened_parent(path) as (folder, name), _translated_errors(path):
            if found.kind is not Kind.FOLDER:
                os.unlink(name, dir_fd=folder)
            elif recursive:
                self._remove_folder(folder, name)
            else:
                raise ConflictError(f"{path!r} is a folder: remove it with its content (-r), or name a file")
            os.fsync(folder)

    def usage(self, folder: str) -> Usage:
        above, _, name = _checked(folder).rpartition("/")
        if not folder:
            counter = Counter(str(self._root.parent), at_once, content)
            used = counter.count(self._root.name, lambda name: name != STAGING)
            return Usage(size_bytes=used.size_bytes, files=used.files)
        try:
            descriptor = below.open_folder(self._root, above)
        except NotFoundError:
            return Usage()
        try:
            counter = Counter(f"/proc/self/fd/{descriptor}", at_once, content)
            used = counter.count(os.fsdecode(paths.raw_of(name)))
        finally:
            os.close(descriptor)
        return Usage(size_bytes=used.size_bytes, files=used.files)

    def free_bytes(self) -> int | None:
        room = os.statvfs(self._root)
        return room.f_bavail * room.f_frsize

    def _check_folder(self, folder: str) -> None:
        if self.stat(folder).kind is not Kind.FOLDER:
            raise ConflictError(f"{folder!r} is not a folder")

    def _is_folder(self, path: str) -> bool:
        """Works also for entries that are never listed, such as FIFOs, which may be in the way."""
        if not path:
            return True
        with self._opened_parent(path) as (folder, name), _translated_errors(path):
            return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)

    def _check_no_folder(self, path: str) -> None:
        """Check before anything is written: a large file should not be uploaded only to be rejected."""
        _checked(path)
        with suppress(NotFoundError):
            if self.stat(path).kind is Kind.FOLDER:
                raise ConflictError(f"{path!r} is a folder; name a file in it")

    def _renamed(self, whole: Path, path: str) -> bool:
        """Rename a file of this server into place; False if it is on another disk."""
        if os.stat(self._root).st_dev != os.lstat(whole).st_dev:
            return False
        with disk.room_for(repr(path)), self._opened_parent(path, make=True) as (folder, name):
            _inherit(whole, folder)
            try:
                os.rename(whole, name, dst_dir_fd=folder)
            except OSError as error:
                if error.errno == errno.EXDEV:
                    return False
                with _translated_errors(path):
                    raise
            os.fsync(folder)
        return True

    def _copied(self, descriptor: int, entry: FileEntry, progress: Progress = lambda _: None) -> FileEntry:
        def fill(copy: int) -> None:
            with disk.room_for(repr(entry.path)), cut_short(entry.path):
                for at in range(0, entry.size, _COPIED_BYTES):
                    count = min(_COPIED_BYTES, entry.size - at)
                    disk.copy(descriptor, at, copy, at, count)
                    progress(count)

        with self._staged(entry.path) as (staging, name):
            made = _made(staging, name, entry.path, fill)
            self._place(staging, name, entry.path)
        return made

    def _place(self, staging: int, name: str, path: str) -> None:
        self._place_all(staging, [(name, path)])

    def _place_all(self, staging: int, staged: Sequence[tuple[str, str]]) -> None:
        """Rename staged files, given as (name, path), to their paths; files of one folder share one walk to it."""
        for above, group in groupby(staged, lambda one: one[1].rpartition("/")[0]):
            with disk.room_for(repr(above)), _translated_errors(above):
                folder = below.made_folder(self._root, above)
            try:
                for name, path in group:
                    with disk.room_for(repr(path)), _translated_errors(path):
                        _inherit(name, folder, staging)
                        os.rename(name, _last(path), src_dir_fd=staging, dst_dir_fd=folder)
                os.fsync(folder)
            finally:
                os.close(folder)

    def _remove_folder(self, folder: int, name: bytes) -> None:
        """Hide the folder at once, whatever its mode; then delete its content, now or when the store is next opened."""
        leaving = secrets.token_hex(8)
        with self._opened_staging() as staging:
            with opened(folder, os.fsdecode(name), CHANGE):
                os.rename(name, leaving, src_dir_fd=folder, dst_dir_fd=staging)
        remove(self._staging, leaving)

    @contextmanager
    def _staged(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield the staging folder and a new name in it, which is deleted at the end."""
        _checked(path)
        with self._opened_staging() as staging:
            name = secrets.token_hex(8)
            try:
                yield staging, name
            finally:
                _unlink(staging, name)

    @contextmanager
    def _opened_staging(self) -> Iterator[int]:
        with opened_root(self._staging) as staging:
            yield staging

    @contextmanager
    def _opened_parent(self, path: str, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield the parent folder's descriptor and the name in it."""
        above = _checked(path).rpartition("/")[0]
        with _translated_errors(path):
            folder = (below.made_folder if make else below.open_folder)(self._root, above)
        try:
            yield folder, _last(path)
        finally:
            os.close(folder)

    @property
    def _staging(self) -> str:
        return f"{self._root}/{STAGING}"


def _checked(path: str) -> str:
    if path.partition("/")[0] == STAGING:
        raise NotFoundError(f"there is no file {path!r}")
    return path


def _is_listed(found: Found) -> bool:
    return found.path.partition(b"/")[0] != STAGING.encode()


def _last(path: str) -> bytes:
    return paths.raw_of(path.rpartition("/")[2])


def _entry(path: str, found: Found) -> FileEntry:
    return FileEntry(
        path=path,
        size=found.stat.st_size if found.kind is Kind.FILE else 0,
        modified_at=found.modified_at,
        kind=found.kind,
        target=paths.text_of(found.target),
    )


def _made(staging: int, name: str, path: str, fill: Callable[[int], None]) -> FileEntry:
    descriptor = os.open(name, _STAGED, 0o600, dir_fd=staging)
    try:
        fill(descriptor)
        os.fchmod(descriptor, _MODE)
        with disk.room_for(repr(path)):
            os.fsync(descriptor)
        return _entry(path, Found(b"", Kind.FILE, os.fstat(descriptor)))
    finally:
        os.close(descriptor)


def _write_small(staging: int, name: str, whole: bytes) -> None:
    descriptor = os.open(name, _STAGED, 0o600, dir_fd=staging)
    try:
        disk.write_at(descriptor, whole, 0)
        os.fchmod(descriptor, _MODE)
    finally:
        os.close(descriptor)


def _inherit(name: str | Path, folder: int, staging: int | None = None) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=staging)
    try:
        below.inherit(descriptor, folder)
    finally:
        os.close(descriptor)


def _unlink(folder: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)


@contextmanager
def _translated_errors(path: str) -> Iterator[None]:
    """Translate errors of the operating system."""
    try:
        yield
    except OSError as error:
        if error.errno in _OCCUPIED:
            raise ConflictError(f"{path!r} cannot be created: a file or a folder is in its place") from None
        if error.errno in _DENIED:
            raise ForbiddenError(
                f"the server has no permission to change {path!r}: check its folder's owner and mode"
            ) from None
        if error.errno in _UNNAMEABLE:
            raise InvalidError(f"path {path!r} cannot be stored on the server; rename it", field="path") from None
        if error.errno == errno.ENOENT:
            raise NotFoundError(f"there is no file {path!r}") from None
        if error.errno == errno.EXDEV:
            raise UnsupportedError(
                f"{path!r} is on another disk than its store: configure that disk as a datacenter"
            ) from None
        raise
