"""Downloads a folder from a bucket or store to this disk, and uploads job results to a bucket.

Both can be killed at any moment and restarted. A download is recorded only once it is on disk; an uploaded file appears
complete or not at all. Bucket keys are as untrusted as job code, so they are checked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from paddlecloud.files import disk
from paddlecloud.files.base import Store
from paddlecloud.files.bucket import PAGE, PART_BYTES, Bucket, in_parallel
from paddlecloud.files.keys import LAST, MARKER, key_of, path_of
from paddlecloud.files.results import Results
from paddlecloud.model import paths
from paddlecloud.model.bos import RESULTS
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.runtime.removal import remove

Progress = Callable[[int], None]  # called with the bytes transferred since the last call; may raise to stop

_READ_ONLY = 0o555  # for files too: a bucket does not know which files are executable
_WRITABLE_FOLDER = 0o700
_BATCH_BYTES = 64 * 1024 * 1024
_BATCH_PARTS = 100


@dataclass(frozen=True, slots=True)
class Item:
    """A file in a source: its path below the chosen folder, and its state when it was listed."""

    path: str
    key: str
    size: int
    etag: str | None


class Source(Protocol):
    """Where files are downloaded from: a Bucket, or a store's files."""

    def read(self, key: str, etag: str | None, start: int, end: int, /) -> bytes:
        """Read part of a file as it was when listed; ConflictError if it was replaced."""
        ...


class FilesOf:
    """Makes a store a source of downloads."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def listed(self, path: str, name: str) -> list[Item]:
        """List a file, or all files in a folder, with `name` as the first part of their paths."""
        found = self._store.stat(path)
        if found.kind is Kind.FILE:
            return [Item(name, path, found.size, _version(found))]
        begin = len(path) + 1 if path else 0
        return [
            Item(_joined(name, paths.check_relative(entry.path[begin:])), entry.path, entry.size, _version(entry))
            for entry in self._store.walk(path)
            if entry.kind is Kind.FILE
        ]

    def read(self, key: str, etag: str | None, start: int, end: int) -> bytes:
        with closing(self._store.open(key)) as opened:
            if _version(opened.entry) != etag:
                raise ConflictError(f"{key!r} was replaced while it was read; read it again")
            return opened.read(start, end)


def _version(entry: FileEntry) -> str:
    return f"{entry.size}-{entry.modified_at.isoformat()}"


def listed(bucket: Bucket, folder: str) -> Iterator[Item]:
    """List all files of a folder except results of earlier jobs, which may far outnumber them."""
    root = key_of(folder)
    results = f"{_joined(root, RESULTS)}/"
    offset: str | None = None
    while True:
        for chunk in bucket.chunks(root, offset):
            for found in chunk:
                if item := _item(root, Item("", found["path"], found["size"], found["e_tag"])):
                    yield item
            if len(chunk) == PAGE and chunk[-1]["path"].startswith(results):
                offset = results + LAST
                break
        else:
            return


def wanted(items: Iterable[Item]) -> list[Item]:
    """Select items that can coexist on a disk: if a file and a folder share a name, the folder wins."""
    found = {item.path: item for item in items}
    for folder in _folders(found):
        found.pop(folder, None)
    return [found[path] for path in sorted(found)]


class Brought:
    """A local copy of a source's files: `tree` is what tasks see, ready once `bring` has returned."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self._name = name
        self.tree = root / name / "files"
        self._record = root / name / "whole"

    def remove(self) -> None:
        remove(str(self._root), self._name)

    def bring(self, source: Source, items: Sequence[Item], *, spare_bytes: int, progress: Progress) -> None:
        """Download missing files; FullError, if possible before the download, to keep `spare_bytes` free."""
        self.tree.mkdir(mode=0o755, parents=True, exist_ok=True)
        missing = self._missing(items)
        here = sum(item.size for item in items) - sum(item.size for item in missing)
        disk.check_room(str(self.tree), sum(item.size for item in missing), spare_bytes)
        progress(here)
        folders = sorted(_folders(item.path for item in items))
        with disk.room_for("the files of a job"):
            for folder in folders:
                os.makedirs(self._at(folder), mode=_WRITABLE_FOLDER, exist_ok=True)
            for batch in _batches(missing):
                disk.check_room(str(self.tree), sum(part.size for part in batch), spare_bytes)
                in_parallel(partial(self._fetch, source, progress), batch)
                self._confirm([part.item for part in batch if part.last])
            self._close(folders)

    def _missing(self, items: Sequence[Item]) -> list[Item]:
        """Items to download; other files on this disk are deleted."""
        recorded = self._read()
        whole = {item.path for item in items if recorded.get(item.path) == (item.size, item.etag) and self._has(item)}
        kept = {self._at(path) for path in whole}
        for folder, _, names in os.walk(self.tree):
            os.chmod(folder, _WRITABLE_FOLDER)
            for name in names:
                if (path := os.path.join(folder, name)) not in kept:
                    os.unlink(path)
        for folder, _, _ in os.walk(self.tree, topdown=False):
            if folder != str(self.tree) and not os.listdir(folder):
                os.rmdir(folder)
        return [item for item in items if item.path not in whole]

    def _has(self, item: Item) -> bool:
        try:
            return os.lstat(self._at(item.path)).st_size == item.size
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _fetch(self, source: Source, progress: Progress, part: _Part) -> None:
        progress(0)  # raises if the download was cancelled
        content = source.read(part.item.key, part.item.etag, part.start, part.end) if part.size else b""
        descriptor = os.open(self._at(part.item.path), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            disk.write_at(descriptor, content, part.start)
        finally:
            os.close(descriptor)
        progress(part.size)

    def _confirm(self, items: Sequence[Item]) -> None:
        if not items:
            return
        names = [self._at(item.path) for item in items]
        for name in names:
            os.chmod(name, _READ_ONLY)
        root = os.open(self.tree, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            disk.sync_all(root, names)
        finally:
            os.close(root)
        lines = "".join(json.dumps([item.path, item.size, item.etag]) + "\n" for item in items)
        with self._record.open("a", encoding="ascii") as record:
            record.write(lines)
            record.flush()
            os.fsync(record.fileno())

    def _close(self, folders: Sequence[str]) -> None:
        for folder in [*reversed(folders), ""]:
            os.chmod(self._at(folder), _READ_ONLY)
            disk.sync(self._at(folder))
        disk.sync(str(self.tree.parent))

    def _read(self) -> dict[str, tuple[int, str | None]]:
        try:
            lines = self._record.read_text(encoding="ascii", errors="replace").splitlines()
        except FileNotFoundError:
            return {}
        found: dict[str, tuple[int, str | None]] = {}
        for line in lines:
            try:
                path, size, etag = json.loads(line)
            except ValueError:
                continue  # line truncated by a full disk or a power cut
            found[path] = size, etag
        return found

    def _at(self, path: str) -> str:
        return os.path.join(self.tree, os.fsdecode(paths.raw_of(path))) if path else str(self.tree)


@dataclass(frozen=True, slots=True)
class _Part:
    item: Item
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def last(self) -> bool:
        return self.end == self.item.size


def send(bucket: Bucket, folder: str, results: Results, job: Job, *, progress: Progress) -> Sequence[str]:
    """Upload all files of a finished job to a bucket; return the paths that cannot be keys.

    A file that is there with the same size is not sent again: nobody else writes below the job's id.
    """
    there = _sizes(bucket, _joined(folder, paths.output_prefix(job.id)))
    refused: list[str] = []

    def carry(entry: FileEntry) -> None:
        try:
            key = key_of(_joined(folder, entry.path))
        except InvalidError:
            refused.append(entry.path)
            return
        if there.get(key) == entry.size:
            return
        try:
            file = results.open(job, entry.path)
        except NotFoundError:
            return  # deleted meanwhile
        with closing(file):
            # Use the descriptor: the name may lead to another file by now.
            bucket.put_file(key, Path(f"/proc/self/fd/{file.fileno()}"))
        progress(entry.size)

    for page in left(results, job):
        in_parallel(carry, page)
    return refused


def left(results: Results, job: Job) -> Iterator[Sequence[FileEntry]]:
    """Yield pages of a job's files. Links and empty folders are left out, since a bucket cannot store them."""
    cursor: str | None = None
    while True:
        page = results.list(job, after=cursor)
        if files := [entry for entry in page.items if entry.kind is Kind.FILE]:
            yield files
        if (cursor := page.next_cursor) is None:
            return


def _sizes(bucket: Bucket, folder: str) -> Mapping[str, int]:
    return {found["path"]: found["size"] for chunk in bucket.chunks(key_of(folder)) for found in chunk}


def _item(root: str, found: Item) -> Item | None:
    """Return None for keys that are not files: folder markers, ours or others', and results."""
    path = path_of(found.key[len(root) :].removeprefix("/"))
    if not path or path.rpartition("/")[2] == MARKER or path.startswith(f"{RESULTS}/"):
        return None
    if path == RESULTS and not found.size:
        return None
    return Item(paths.check_relative(path, "key"), found.key, found.size, found.etag)


def _folders(files: Iterable[str]) -> set[str]:
    folders: set[str] = set()
    for path in files:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _parts(items: Iterable[Item]) -> Iterator[_Part]:
    for item in items:
        for start in range(0, max(item.size, 1), PART_BYTES):
            yield _Part(item, start, min(start + PART_BYTES, item.size))


def _batches(items: Iterable[Item]) -> Iterator[list[_Part]]:
    batch: list[_Part] = []
    size = 0
    for part in _parts(items):
        batch.append(part)
        size += part.size
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_PARTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)
