"""Stores a datacenter's files in an HDFS folder through WebHDFS.

Paths map to paths below that folder, with names escaped that HDFS rejects (see `keys.escaped`). Every file is written
to a staging folder that no path can name, and renamed into place when complete.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from paddlecloud.files.base import Progress, StoredFile, Usage
from paddlecloud.files.bucket import in_parallel
from paddlecloud.files.copied import exactly
from paddlecloud.files.keys import escaped, path_of
from paddlecloud.files.webhdfs import FILE, FOLDER, Status, WebHdfs
from paddlecloud.model import paths
from paddlecloud.model.errors import ConflictError, NotFoundError, PaddleCloudError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind

STAGING = ".paddlecloud-staging"

_RESERVED = (STAGING, ".snapshot", ".reserved")
_SPECIAL = ":"
_STALE_MS = 86_400_000
_PART_BYTES = 8 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
_KINDS = {FILE: Kind.FILE, FOLDER: Kind.FOLDER}
_EPOCH = datetime.fromtimestamp(0, UTC)


class HdfsStore:
    """`place` is a folder of the HDFS file system, such as `/paddlecloud`, or `/`."""

    def __init__(self, url: str, place: str, *, user: str) -> None:
        self._root = place.rstrip("/")
        self._hdfs = WebHdfs(url, user)
        self._last_sweep = 0

    def __repr__(self) -> str:
        return f"HdfsStore({self._root or '/'} at {self._hdfs})"

    @property
    def kind(self) -> str:
        return "hdfs"

    @property
    def folder(self) -> Path | None:
        return None

    def stat(self, path: str) -> FileEntry:
        return _entry(path, self._found(path))

    def list(self, folder: str, *, after: str = "", limit: int | None = None) -> Sequence[FileEntry]:
        return self._children(folder, after)[:limit]

    def walk(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        self._check_folder(folder)
        start, after_parts = _parts(folder), _parts(after)
        if _raw(after_parts[: len(start)]) > _raw(start):
            return iter(())
        return self._below(folder, after_parts[len(start) :] if after_parts[: len(start)] == start else [])

    def open(self, path: str) -> StoredFile:
        found = self._found(path)
        if found["type"] != FILE:
            raise ConflictError(f"{path!r} is a folder; name a file in it")
        return _Opened(self._hdfs, _entry(path, found), found["fileId"])

    def write(self, path: str, pieces: Iterable[bytes]) -> FileEntry:
        self._check_place(path)
        self._write(path, pieces)
        return self.stat(path)

    def write_all(self, contents: Sequence[tuple[str, bytes]]) -> None:
        for folder in dict.fromkeys(_above(path) for path, _ in contents):
            self.make_folder(folder)
        in_parallel(self._write_small, contents)

    def adopt(self, path: str, whole: Path) -> FileEntry:
        self._check_place(path)
        with whole.open("rb") as file:
            self._write(path, iter(lambda: file.read(_PIECE_BYTES), b""))
        whole.unlink()
        return self.stat(path)

    def copy(self, whole: StoredFile, path: str, progress: Progress) -> FileEntry:
        return self.write(path, exactly(whole, progress))

    def make_folder(self, path: str) -> None:
        self._check_above(f"{path}/")
        self._hdfs.make_folder(self._at(path))

    def move(self, source: str, target: str) -> None:
        found = self._found(source)
        if source == target:
            return
        if not source or f"{target}/".startswith(f"{source}/"):
            raise ConflictError(f"{source!r} cannot be moved into itself")
        there = self._check_place(target)
        if found["type"] == FOLDER and there is not None:
            raise ConflictError(f"{target!r} is a file; a folder cannot be put in its place")
        self._hdfs.make_folder(self._at(_above(target)))
        self._hdfs.rename(self._at(source), self._at(target))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        if not path:
            raise ConflictError("the root of a store cannot be removed")
        if self._found(path)["type"] == FOLDER and not recursive:
            raise ConflictError(f"{path!r} is a folder: remove it with its content (-r), or name a file")
        self._hdfs.delete(self._at(path))

    def usage(self, folder: str) -> Usage:
        # For the root, add up its entries: subtracting the staging folder would be wrong, since it changes meanwhile.
        places = [self._at(folder)] if folder else [self._at(entry.path) for entry in self._children("", "")]
        found = [self._usage(place) for place in places]
        return Usage(size_bytes=sum(size for size, _ in found), files=sum(files for _, files in found))

    def free_bytes(self) -> int | None:
        return None

    def _usage(self, place: str) -> tuple[int, int]:
        return (0, 0) if self._hdfs.status(place) is None else self._hdfs.usage(place)

    def _found(self, path: str) -> Status:
        found = self._hdfs.status(self._at(path))
        if found is None and not path:
            return {"type": FOLDER, "modificationTime": 0}  # the first write creates it
        if found is None:
            raise NotFoundError(f"there is no file {path!r}")
        return found

    def _children(self, folder: str, after: str) -> Sequence[FileEntry]:
        self._check_folder(folder)
        try:
            found = self._hdfs.list(self._at(folder))
        except NotFoundError:
            if folder:
                raise
            return []
        inside = {path_of(one["pathSuffix"]): one for one in found if folder or one["pathSuffix"] != STAGING}
        return [
            _entry(_joined(folder, name), inside[name])
            for name in sorted(inside, key=paths.raw_of)
            if paths.raw_of(name) > paths.raw_of(after)
        ]

    def _below(self, folder: str, after_parts: Sequence[str]) -> Iterator[FileEntry]:
        if after_parts and self._is_folder(_joined(folder, after_parts[0])):
            yield from self._below(_joined(folder, after_parts[0]), after_parts[1:])
        for entry in self._children(folder, after_parts[0] if after_parts else ""):
            yield entry
            if entry.kind is Kind.FOLDER:
                yield from self._below(entry.path, [])

    def _is_folder(self, path: str) -> bool:
        found = self._hdfs.status(self._at(path))
        return found is not None and found["type"] == FOLDER

    def _check_folder(self, folder: str) -> None:
        if self._found(folder)["type"] != FOLDER:
            raise ConflictError(f"{folder!r} is not a folder")

    def _check_place(self, path: str) -> Status | None:
        """Return the file that a write would replace, or None; ConflictError if a file cannot be at this path."""
        found = self._hdfs.status(self._at(path)) if path else None
        if not path or (found is not None and found["type"] != FILE):
            raise ConflictError(f"{path!r} is a folder; name a file in it")
        if found is None:
            self._check_above(path)
        return found

    def _check_above(self, path: str) -> None:
        """Check that the nearest existing ancestor of a path is a folder."""
        while path := _above(path):
            found = self._hdfs.status(self._at(path))
            if found is not None and found["type"] != FOLDER:
                raise ConflictError(f"{path!r} is a file, not a folder")
            if found is not None:
                return

    def _write_small(self, content: tuple[str, bytes]) -> None:
        path, whole = content
        self._check_place(path)
        self._write(path, [whole])

    def _write(self, path: str, pieces: Iterable[bytes]) -> None:
        """Create the parent folders after the bytes, so that a failed write leaves no folder after_parts."""
        staged = f"{self._root}/{STAGING}/{secrets.token_hex(16)}"
        pieces = _prefetched(pieces)
        try:
            now = self._hdfs.create(staged, pieces)["modificationTime"]
            self._hdfs.make_folder(self._at(_above(path)))
            self._hdfs.rename(staged, self._at(path))
        except BaseException:
            with suppress(PaddleCloudError):
                self._hdfs.delete(staged)
            raise
        if now - self._last_sweep > _STALE_MS:
            self._last_sweep = now
            self._sweep(now)

    def _sweep(self, now: int) -> None:
        """Remove stale files of crashes. DataNodes leave them too: one may create a file after we gave it up and
        deleted it. Times are the NameNode's."""
        with suppress(PaddleCloudError):
            for one in self._hdfs.list(f"{self._root}/{STAGING}"):
                if now - one["modificationTime"] > _STALE_MS:
                    self._hdfs.delete(f"{self._root}/{STAGING}/{one['pathSuffix']}")

    def _at(self, path: str) -> str:
        names = [escaped(raw, special=_SPECIAL, reserved=_RESERVED) for raw in paths.raw_of(path).split(b"/")]
        return "/".join([self._root, *names]) if path else self._root or "/"


class _Opened:
    """A file as it was when opened. Once it is replaced, reading raises ConflictError."""

    def __init__(self, hdfs: WebHdfs, entry: FileEntry, inode: int) -> None:
        self._hdfs = hdfs
        self._entry = entry
        self._inode = inode

    @property
    def entry(self) -> FileEntry:
        return self._entry

    @property
    def etag(self) -> str:
        return f'"{self._inode:x}-{self._entry.size:x}-{self._entry.modified_at.timestamp()}"'

    def read(self, start: int, end: int) -> bytes:
        end = min(end, self._entry.size)
        return self._hdfs.read(self._inode, start, end) if start < end else b""

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        end = self._entry.size if end is None else min(end, self._entry.size)
        for at in range(start, end, _PART_BYTES):
            part = self.read(at, min(at + _PART_BYTES, end))
            for begin in range(0, len(part), _PIECE_BYTES):
                yield part[begin : begin + _PIECE_BYTES]

    def close(self) -> None:
        """Nothing to close: each part is a separate request, so that a slow reader holds no connection."""


def _prefetched(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Wait for the first megabyte, so that a source that fails earlier creates nothing in HDFS."""
    pieces, begin, size = iter(pieces), [], 0
    for piece in pieces:
        begin.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES:
            break
    return itertools.chain(begin, pieces)


def _entry(path: str, found: Status) -> FileEntry:
    at = datetime.fromtimestamp(found["modificationTime"] / 1000, UTC) if found["modificationTime"] else _EPOCH
    kind = _KINDS.get(found["type"], Kind.LINK)
    return FileEntry(path=path, size=found["length"] if kind is Kind.FILE else 0, modified_at=at, kind=kind)


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _parts(path: str) -> list[str]:
    return path.split("/") if path else []


def _raw(parts: Sequence[str]) -> list[bytes]:
    return [paths.raw_of(part) for part in parts]
