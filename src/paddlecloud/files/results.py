"""Stores job results: one folder per job inside its user's folder, written by tasks, read here without trust.

Older versions had no user folders. Results in the old place stay there while tasks that know that path may still
write, and are moved once the job is done.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from paddlecloud.files import below, disk
from paddlecloud.files.opened import OpenedFile, etag_of
from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.model.transfers import FileEntry, FilePage
from paddlecloud.model.tree import Kind


class Results:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._unsettled: frozenset[str] = frozenset()  # jobs whose results are not in a user's folder yet

    def folder(self, job: Job) -> Path:
        """The folder of the job's results, created if missing."""
        folder = self._folder(job)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        return folder

    def list(self, job: Job, prefix: str = "", after: str | None = None, limit: int = 1000) -> FilePage:
        """List files at and below `prefix`, a file or folder, in order; `after` is the cursor of the previous page."""
        start = paths.below_output(job.id, prefix)
        after_raw = None if after is None else _raw_cursor(job.id, after)
        entries = list(itertools.islice(self._entries(job, start, after_raw, limit), limit + 1))
        more = len(entries) > limit
        return FilePage(items=tuple(entries[:limit]), next_cursor=entries[limit - 1].path if more else None)

    def open(self, job: Job, path: str) -> OpenedFile:
        """Open the current version of a file; the caller closes it."""
        inside = paths.below_output(job.id, path)
        if not inside:
            raise NotFoundError(f"{path!r} is a folder; name a file in it")
        descriptor = below.open_file(self._folder(job), inside)
        found = os.fstat(descriptor)
        entry = _entry(job.id, below.Found(paths.raw_of(inside), Kind.FILE, found))
        return OpenedFile(descriptor, entry, etag_of(found))

    def read(self, job: Job, named: Sequence[str], most: int) -> Iterator[bytes | None]:
        """Yield each file's current bytes; None if it is not a regular file or is larger than `most` bytes."""
        inside = [paths.below_output(job.id, path) for path in named]
        return _contents(below.open_files(self._folder(job), inside), most)

    def _entries(self, job: Job, start: str, after_raw: bytes | None, limit: int) -> Iterator[FileEntry]:
        folder = self._folder(job)
        if not folder.is_dir():
            return
        if not start and after_raw is None:
            yield _entry(job.id, below.Found(b"", Kind.FOLDER, folder.stat()))
        for found in below.walk(folder, start, after_raw or None, limit + 1):
            yield _entry(job.id, found)

    def parent(self, user: str, job: str) -> Path:
        """The folder that contains the job's folder."""
        if not paths.is_job_id(job):
            raise NotFoundError(f"there is no job {job!r}")
        return self._root if job in self._unsettled else self._root / user

    def unsettled(self) -> Sequence[str]:
        """Jobs whose results are still where older versions put them."""
        return list(filter(paths.is_job_id, _names(self._root)))

    def all(self) -> Sequence[tuple[Path, str]]:
        """All result folders, recorded in the database or not, as (parent folder, name)."""
        found: list[tuple[Path, str]] = []
        for name in _names(self._root):
            folder = self._root / name
            if paths.is_job_id(name) or folder.is_symlink() or not folder.is_dir():
                found.append((self._root, name))
            else:
                found += [(folder, job) for job in _names(folder)]
        return found

    def settle(self, owners: Mapping[str, str], *, busy: Collection[str]) -> Mapping[str, OSError]:
        """Move these jobs' results to their owners' folders, except those of `busy` jobs; return errors by job.

        If this is killed, each result is in one of the two places; results that were not moved are still found.
        """
        self._unsettled = frozenset(owners)
        refused: dict[str, OSError] = {}
        for job in owners.keys() - set(busy):
            try:
                self._move(job, owners[job])
            except OSError as error:
                refused[job] = error
            else:
                self._unsettled -= {job}
        return refused

    def _move(self, job: str, user: str) -> None:
        target = self._root / user
        target.mkdir(mode=0o755, exist_ok=True)
        (self._root / job).rename(target / job)
        for folder in (target, self._root):
            disk.sync(str(folder))

    def _folder(self, job: Job) -> Path:
        return self.parent(job.user, job.id) / job.id


def _names(folder: Path) -> Sequence[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _contents(descriptors: Iterable[int | None], most: int) -> Iterator[bytes | None]:
    for descriptor in descriptors:
        if descriptor is None:
            yield None
            continue
        try:
            size = os.fstat(descriptor).st_size
            content = os.pread(descriptor, size, 0) if size <= most else None
        finally:
            os.close(descriptor)
        yield content


def _raw_cursor(job: str, cursor: str) -> bytes:
    whole = paths.output_prefix(job) + "/"
    try:
        if cursor.startswith(whole):
            return paths.raw_of(cursor[len(whole) :].rstrip("/"))
    except UnicodeEncodeError:
        pass
    raise InvalidError(f"cursor {cursor!r} is not from this list; omit it to start over", field="cursor")


def _entry(job: str, found: below.Found) -> FileEntry:
    path = f"{paths.output_prefix(job)}/{paths.text_of(found.path)}"
    if found.kind is Kind.FOLDER and found.path:
        path += "/"
    return FileEntry(
        path=path,
        size=found.stat.st_size if found.kind is Kind.FILE else 0,
        modified_at=found.modified_at,
        kind=found.kind,
        target=paths.text_of(found.target),
    )
