"""Holds files written at offsets by clients that never say when they are done.

<draft>/about    its size and owner, the machine's boot id, and whether it starts from the existing file (its base)
<draft>/bytes    the file, with holes where nothing was written; with a base, created at the first difference
<draft>/ranges   the written ranges, one `start end` per line
<draft>/digests  the digests of its pieces, if they were announced in advance

Invariant: nobody sees a draft; it becomes the file when it is complete. Without a base, a draft is complete when every
byte was written. With a base, a file of the same size, it is complete when its last byte was written: clients go from
start to end and skip pieces that are the same, so `read` never reports the end as the same, and they send it.
A power cut may lose writes that are not synced, so a draft from an earlier boot is deleted, and its file is sent again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from paddlecloud.files import disk, written
from paddlecloud.files.base import StoredFile
from paddlecloud.model.errors import ConflictError, TooLargeError
from paddlecloud.model.tree import CHUNK_BYTES

_MAX_DRAFTS = 1000  # per owner
_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class _About:
    size: int
    owner: str
    boot: str
    token: str  # unique for each draft
    based: bool = False
    plan: str = ""  # identifies the digests, if there are any


class Drafts:
    """Create only one instance per folder: it keeps the open drafts in memory."""

    def __init__(self, folder: Path, *, boot: str) -> None:
        self._folder = str(folder)
        self._boot = boot
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._reserved: dict[str, tuple[str, int]] = {}  # by path: owner and final size
        disk.make_folder(self._folder)
        for path in [f"{self._folder}/{name}" for name in os.listdir(self._folder)]:
            about = _read_about(path)
            if about is None or about.boot != boot:
                _remove(path)
            else:
                self._reserved[path] = (about.owner, about.size)

    def held(self, owner: str, *, but: str = "") -> int:
        """Bytes reserved by an owner's open drafts, except the draft named `but`."""
        left_out = self._path(but)
        with self._lock:
            return sum(
                size
                for path, (draft_owner, size) in self._reserved.items()
                if draft_owner == owner and path != left_out
            )

    def begin(self, name: str, size: int, *, owner: str, based: bool = False, digests: Sequence[str] = ()) -> Draft:
        """Start a draft of the file `name`, or resume an existing one with the same size and digests."""
        plan = hashlib.sha256("".join(digests).encode()).hexdigest() if digests else ""
        found = self.find(name)
        if found is not None and (found.size, found.plan) == (size, plan) and (found.based or not based):
            return found
        folder, temporary = self._path(name), disk.new_name(self._folder)
        self._check_count(owner)
        about = _About(size, owner, self._boot, secrets.token_hex(8), based, plan)
        os.mkdir(temporary, 0o700)
        try:
            with disk.room_for("this file"):
                _write(f"{temporary}/about", json.dumps(asdict(about)).encode())
                if digests:
                    _write(f"{temporary}/digests", bytes.fromhex("".join(digests)))
                if not based:
                    _make_hole(f"{temporary}/bytes", size)
            with self._lock:
                self._delete(folder)
                os.rename(temporary, folder)
                self._reserved[folder] = (owner, size)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return self._draft(folder, about)

    def find(self, name: str) -> Draft | None:
        folder = self._path(name)
        about = _read_about(folder)
        return None if about is None else self._draft(folder, about)

    @contextmanager
    def scratch(self, owner: str) -> Iterator[Scratch]:
        """A temporary file for an upload of unknown size; deleted at the end unless it was moved away."""
        path = disk.new_name(self._folder)
        self._check_count(owner)

        def grown(size: int) -> None:
            with self._lock:
                self._reserved[path] = (owner, size)

        with disk.room_for("this file"):
            scratch = Scratch(path, grown)
            try:
                yield scratch
            finally:
                scratch.close()
                with self._lock:
                    self._reserved.pop(path, None)

    def drop(self, name: str) -> None:
        with self._lock:
            self._delete(self._path(name))

    def expire(self, before: float) -> None:
        """Delete drafts not written to since a time, in seconds."""
        for path in disk.older_than(self._folder, before):
            if _last_written(path) < before:
                with self._lock:
                    self._delete(path)

    def _check_count(self, owner: str) -> None:
        with self._lock:
            if sum(draft_owner == owner for draft_owner, _ in self._reserved.values()) >= _MAX_DRAFTS:
                raise TooLargeError(
                    f"{owner} has {_MAX_DRAFTS} unfinished uploads: finish some, or wait a day until they expire"
                )

    def _draft(self, folder: str, about: _About) -> Draft:
        with self._lock:
            lock = self._locks.setdefault(folder, threading.Lock())
        return Draft(folder, about, lock, self._release)

    def _release(self, folder: str) -> None:
        with self._lock:
            self._reserved.pop(folder, None)
            self._locks.pop(folder, None)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:40]}"

    def _delete(self, folder: str) -> None:
        _remove(folder)
        self._reserved.pop(folder, None)
        self._locks.pop(folder, None)


class Scratch:
    """A file written from start to end."""

    def __init__(self, path: str, grown: Callable[[int], None]) -> None:
        self.path = Path(path)
        self.size = 0
        self._grown = grown
        self._file = open(path, "xb")  # noqa: SIM115 (closed by `close`)

    def write(self, piece: bytes) -> None:
        self._file.write(piece)
        self.size += len(piece)
        self._grown(self.size)

    def whole(self) -> Path:
        """The path of the file, with all writes flushed."""
        self._file.flush()
        return self.path

    def close(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


class Draft:
    """One unfinished file. Reads return only bytes that were written to it or that are in its base."""

    def __init__(self, folder: str, about: _About, lock: threading.Lock, release: Callable[[str], None]) -> None:
        self._folder = folder
        self._about = about
        self._lock = lock
        self._release = release

    @property
    def size(self) -> int:
        return self._about.size

    @property
    def based(self) -> bool:
        return self._about.based

    @property
    def plan(self) -> str:
        return self._about.plan

    def read(self, start: int, end: int, base: StoredFile | None) -> bytes | None:
        """Return the bytes from `start` to `end`, fewer at the file's end; None if some of them are still missing."""
        end = min(end, self.size)
        if start >= end:
            return b""
        if self.based and end == self.size:
            return None
        try:
            with self._opened() as within:
                if self.based:
                    copied = os.path.exists(f"{within}/bytes")
                    return _read(within, start, end) if copied else None if base is None else base.read(start, end)
                with self._lock:
                    covered = written.covers(written.read(f"{within}/ranges"), start, end)
                return _read(within, start, end) if covered else None
        except ConflictError:
            return None

    def write(self, start: int, content: bytes, base: StoredFile | None) -> bool:
        """Write at an offset; True if the draft is now complete and ready to be taken. ConflictError if the draft was
        replaced or the piece does not match its announced digest."""
        with self._opened() as within:
            if self.plan and not _is_planned(within, start, content):
                raise ConflictError(
                    "this piece does not match its announced digest: another upload may have started; send it again"
                )
            if self.based:
                self._write_over(within, start, content, base)
                return start + len(content) >= self.size
            _write_at(within, start, content)
            with self._lock:
                return written.covers(written.add(f"{within}/ranges", start, start + len(content)), 0, self.size)

    def changed(self) -> bool:
        """Whether it differs from its base."""
        return not self.based or os.path.exists(f"{self._folder}/bytes")

    @contextmanager
    def taken(self) -> Iterator[Path]:
        """Yield the complete file for the caller to move into place; the draft is deleted if that succeeds."""
        folder = disk.new_name(os.path.dirname(self._folder))
        try:
            os.rename(self._folder, folder)
        except FileNotFoundError:
            raise ConflictError("another upload of this file has finished meanwhile: send it again") from None
        try:
            yield Path(folder, "bytes")
        except BaseException:
            with suppress(OSError):
                os.rename(folder, self._folder)
            raise
        self._release(self._folder)
        shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def _opened(self) -> Iterator[str]:
        """Yield the draft's folder through a descriptor, which stays valid if the folder's name is reused."""
        try:
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise ConflictError("another upload of this file has finished meanwhile: send it again") from None
        try:
            within = f"/proc/self/fd/{descriptor}"
            if _read_about(within) != self._about:
                raise ConflictError("another upload of this file has started meanwhile: send it again")
            yield within
        finally:
            os.close(descriptor)

    def _write_over(self, within: str, start: int, content: bytes, base: StoredFile | None) -> None:
        """Write to a draft with a base; the base is copied only at the first difference."""
        with self._lock:
            if not os.path.exists(f"{within}/bytes"):
                if base is not None and base.read(start, start + len(content)) == content:
                    return
                _copy(within, self.size, base)
        _write_at(within, start, content)


def _is_planned(within: str, start: int, content: bytes) -> bool:
    number, rest = divmod(start, CHUNK_BYTES)
    descriptor = os.open(f"{within}/digests", os.O_RDONLY | os.O_CLOEXEC)
    try:
        wanted = os.pread(descriptor, _DIGEST_BYTES, number * _DIGEST_BYTES)
    finally:
        os.close(descriptor)
    return not rest and hashlib.sha256(content).digest() == wanted


def _copy(within: str, size: int, base: StoredFile | None) -> None:
    temporary = f"{within}/{disk.NEW}bytes"
    with disk.room_for("this file"):
        _make_hole(temporary, size)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CLOEXEC)
        try:
            at = 0
            for piece in base.pieces() if base is not None else ():
                disk.write_at(descriptor, piece, at)
                at += len(piece)
        finally:
            os.close(descriptor)
    os.rename(temporary, f"{within}/bytes")


def _write_at(within: str, start: int, content: bytes) -> None:
    with disk.room_for("this file"):
        descriptor = os.open(f"{within}/bytes", os.O_WRONLY | os.O_CLOEXEC)
        try:
            disk.write_at(descriptor, content, start)
        finally:
            os.close(descriptor)


def _read(within: str, start: int, end: int) -> bytes:
    descriptor = os.open(f"{within}/bytes", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(descriptor, end - start, start)
    finally:
        os.close(descriptor)


def _read_about(folder: str) -> _About | None:
    try:
        return _About(**json.loads(Path(folder, "about").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _last_written(path: str) -> float:
    """When a draft or scratch file was last written; a folder's own time only changes with new names."""
    times = [0.0]
    for one in (path, f"{path}/ranges", f"{path}/bytes"):
        with suppress(OSError):
            times.append(os.stat(one).st_mtime)
    return max(times)


def _remove(path: str) -> None:
    """Remove a draft or scratch file, first renaming it so that nobody else can reach it."""
    leaving = disk.new_name(os.path.dirname(path))
    with suppress(FileNotFoundError):
        os.rename(path, leaving)
        if os.path.isdir(leaving):
            shutil.rmtree(leaving, ignore_errors=True)
        else:
            os.unlink(leaving)


def _make_hole(path: str, size: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        disk.write_at(descriptor, content, 0)
    finally:
        os.close(descriptor)
