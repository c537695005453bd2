"""Stores a datacenter's files in an S3 bucket or a compatible service (BOS, MinIO, SeaweedFS).

A path is a key (see keys.py). A folder exists while keys lie below it; a folder created here contains a marker, so that
it stays when empty: obstore cannot write keys that end in a slash, which other tools use for that.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.files.base import Progress, StoredFile, Usage
from paddlecloud.files.bucket import PAGE, PART_BYTES, Bucket, in_parallel
from paddlecloud.files.copied import exactly
from paddlecloud.files.keys import LAST, MARKER, in_order, key_of, path_of
from paddlecloud.model.errors import ConflictError, NotFoundError, PaddleCloudError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind

if TYPE_CHECKING:
    from obstore import ObjectMeta

_PIECE_BYTES = 1024 * 1024
_EPOCH = datetime.fromtimestamp(0, UTC)


class S3Store:
    """`place` is `bucket/folder` or `bucket`; `endpoint` is the URL of the service, None for AWS."""

    def __init__(self, place: str, *, key_id: str, secret: str, region: str, endpoint: str | None = None) -> None:
        name, _, folder = place.removeprefix("s3://").strip("/").partition("/")
        self._place = place
        self._root = key_of(folder)
        self._bucket = Bucket(name, key_id=key_id, secret=secret, region=region, endpoint=endpoint)

    def __repr__(self) -> str:
        return f"S3Store({self._place!r})"

    @property
    def kind(self) -> str:
        return "s3"

    @property
    def folder(self) -> Path | None:
        return None

    def stat(self, path: str) -> FileEntry:
        found = self._head(path)
        if found is not None:
            return _file(path, found)
        if path and not self._is_folder(path):
            raise NotFoundError(f"there is no file {path!r}")
        return _folder(path)

    def list(self, folder: str, *, after: str = "", limit: int | None = None) -> Sequence[FileEntry]:
        entries = list(itertools.islice(self._children(folder, after), limit))
        if not entries:
            self._check_folder(folder)
        return entries

    def walk(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        self._check_folder(folder)
        start, after_parts = _parts(folder), _parts(after)
        if after_parts[: len(start)] > start:
            return iter(())
        return self._below(folder, after_parts[len(start) :] if after_parts[: len(start)] == start else [])

    def open(self, path: str) -> StoredFile:
        found = self._head(path)
        if found is None:
            self._check_no_folder(path)
            raise NotFoundError(f"there is no file {path!r}")
        return _Opened(self._bucket, self._key(path), _file(path, found), found["e_tag"])

    def write(self, path: str, pieces: Iterable[bytes]) -> FileEntry:
        missing = self._missing_parents(path)
        self._bucket.put_pieces(self._key(path), pieces)
        self._make_folders(missing)
        return self.stat(path)

    def write_all(self, contents: Sequence[tuple[str, bytes]]) -> None:
        for folder in dict.fromkeys(_above(path) for path, _ in contents):
            self.make_folder(folder)
        in_parallel(self._write_small, contents)

    def adopt(self, path: str, whole: Path) -> FileEntry:
        missing = self._missing_parents(path)
        self._bucket.put_file(self._key(path), whole)
        self._make_folders(missing)
        whole.unlink()
        return self.stat(path)

    def copy(self, whole: StoredFile, path: str, progress: Progress) -> FileEntry:
        if not isinstance(whole, _Opened) or whole.bucket is not self._bucket:
            return self.write(path, exactly(whole, progress))
        missing = self._missing_parents(path)
        self._bucket.copy(whole.key, self._key(path), whole.entry.size)
        self._make_folders(missing)
        progress(whole.entry.size)
        return self.stat(path)

    def make_folder(self, path: str) -> None:
        self._make_folders(self._missing_folders(path))

    def move(self, source: str, target: str) -> None:
        found = self.stat(source)
        if source == target:
            return
        if not source or f"{target}/".startswith(f"{source}/"):
            raise ConflictError(f"{source!r} cannot be moved into itself")
        self._check_no_folder(target)
        if found.kind is Kind.FOLDER and self._head(target) is not None:
            raise ConflictError(f"{target!r} is a file; a folder cannot be put in its place")
        self.make_folder(_above(target))
        if found.kind is Kind.FOLDER:
            self._move_folder(source, target)
        else:
            self._bucket.copy(self._key(source), self._key(target), found.size)
            self._bucket.delete([self._key(source)])

    def remove(self, path: str, *, recursive: bool = False) -> None:
        if not path:
            raise ConflictError("the root of a store cannot be removed")
        if self.stat(path).kind is Kind.FILE:
            self._bucket.delete([self._key(path)])
        elif recursive:
            for chunk in self._bucket.chunks(self._key(path)):
                self._bucket.delete([found["path"] for found in chunk])
        else:
            raise ConflictError(f"{path!r} is a folder: remove it with its content (-r), or name a file")

    def usage(self, folder: str) -> Usage:
        size = files = 0
        for chunk in self._bucket.chunks(self._key(folder)):
            own = [found["size"] for found in chunk if found["path"].rpartition("/")[2] != MARKER]
            size, files = size + sum(own), files + len(own)
        return Usage(size_bytes=size, files=files)

    def free_bytes(self) -> int | None:
        return None

    def _children(self, folder: str, after: str) -> Iterator[FileEntry]:
        is_folder = partial(self._has_keys, self._key(folder))
        for name, found in in_order(self._listed_by_key(folder, after), is_folder=is_folder, after=key_of(after)):
            path = _joined(folder, path_of(name))
            yield _folder(path) if found is None else _file(path, found)

    def _below(self, folder: str, after_parts: Sequence[str]) -> Iterator[FileEntry]:
        if after_parts and self._is_folder(_joined(folder, after_parts[0])):
            yield from self._below(_joined(folder, after_parts[0]), after_parts[1:])
        for entry in self._children(folder, after_parts[0] if after_parts else ""):
            yield entry
            if entry.kind is Kind.FOLDER:
                yield from self._below(entry.path, [])

    def _listed_by_key(self, folder: str, after: str) -> Iterator[tuple[str, ObjectMeta | None]]:
        """List a folder by key. The rest of a subfolder is skipped once it fills the end of a page."""
        key = self._key(folder)
        offset = _joined(key, key_of(after)) if after else None
        inside = ""
        while True:
            for chunk in self._bucket.chunks(key, offset):
                for found in chunk:
                    name, in_folder, _ = found["path"][len(key) :].removeprefix("/").partition("/")
                    if in_folder and name != inside:
                        inside = name
                        yield name, None
                    elif not in_folder and name != MARKER:
                        yield name, found
                if in_folder and len(chunk) == PAGE:
                    offset = f"{_joined(key, name)}/{LAST}"
                    break
            else:
                return

    def _head(self, path: str) -> ObjectMeta | None:
        return self._bucket.head(self._key(path)) if path else None

    def _is_folder(self, path: str) -> bool:
        """Look for the marker first: a listing returns a thousand keys where one would do."""
        return self._bucket.head(self._marker(path)) is not None or self._has_keys(self._key(path))

    def _has_keys(self, key: str, name: str = "") -> bool:
        return any(map(len, self._bucket.chunks(_joined(key, name))))

    def _check_folder(self, folder: str) -> None:
        if self.stat(folder).kind is not Kind.FOLDER:
            raise ConflictError(f"{folder!r} is not a folder")

    def _check_no_folder(self, path: str) -> None:
        if not path or self._has_keys(self._key(path)):
            raise ConflictError(f"{path!r} is a folder; name a file in it")

    def _write_small(self, content: tuple[str, bytes]) -> None:
        path, whole = content
        self._check_no_folder(path)
        self._bucket.put(self._key(path), whole)

    def _move_folder(self, source: str, target: str) -> None:
        """Copy everything before deleting anything, so that a failure leaves the old or the new folder complete."""
        here, there = self._key(source), self._key(target)

        def copy(found: ObjectMeta) -> None:
            self._bucket.copy(found["path"], there + found["path"][len(here) :], found["size"])

        try:
            for chunk in self._bucket.chunks(here):
                in_parallel(copy, chunk)
        except BaseException:
            with suppress(PaddleCloudError):
                self.remove(target, recursive=True)
            raise
        self.remove(source, recursive=True)

    def _missing_parents(self, path: str) -> Sequence[str]:
        """Return the missing parent folders of a file, checking that its path is free. The caller creates them after
        the file, so that a failed write leaves no folder."""
        self._check_no_folder(path)
        return self._missing_folders(_above(path))

    def _missing_folders(self, path: str) -> Sequence[str]:
        """Missing folders of a path, including itself, outermost first."""
        missing: list[str] = []
        while path and not self._is_folder(path):
            if self._head(path) is not None:
                raise ConflictError(f"{path!r} is a file, not a folder")
            missing.insert(0, path)
            path = _above(path)
        return missing

    def _make_folders(self, folders: Sequence[str]) -> None:
        for folder in folders:
            self._bucket.put(self._marker(folder), b"")

    def _marker(self, folder: str) -> str:
        return _joined(self._key(folder), MARKER)

    def _key(self, path: str) -> str:
        return _joined(self._root, key_of(path))


class _Opened:
    """An object as it was when opened. Once it is replaced, reading raises ConflictError."""

    def __init__(self, bucket: Bucket, key: str, entry: FileEntry, etag: str | None) -> None:
        self.bucket = bucket
        self.key = key
        self._entry = entry
        self._etag = etag

    @property
    def entry(self) -> FileEntry:
        return self._entry

    @property
    def etag(self) -> str:
        return self._etag or f'"{self._entry.size:x}-{self._entry.modified_at.timestamp()}"'

    def read(self, start: int, end: int) -> bytes:
        end = min(end, self._entry.size)
        return self.bucket.read(self.key, self._etag, start, end) if start < end else b""

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        end = self._entry.size if end is None else min(end, self._entry.size)
        for at in range(start, end, PART_BYTES):
            part = self.read(at, min(at + PART_BYTES, end))
            for begin in range(0, len(part), _PIECE_BYTES):
                yield part[begin : begin + _PIECE_BYTES]

    def close(self) -> None:
        """Nothing to close: each part is a separate request, so that a slow reader holds no connection."""


def _file(path: str, found: ObjectMeta) -> FileEntry:
    return FileEntry(path=path, size=found["size"], modified_at=found["last_modified"], kind=Kind.FILE)


def _folder(path: str) -> FileEntry:
    return FileEntry(path=path, size=0, modified_at=_EPOCH, kind=Kind.FOLDER)


def _above(path: str) -> str:
    return path.rpartition("/")[0]


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)


def _parts(path: str) -> list[str]:
    return path.split("/") if path else []
