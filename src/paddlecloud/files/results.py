"""What jobs leave behind: one folder for each job, written by its tasks, listed and read here without trust."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from paddlecloud.files import local
from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.transfers import FileEntry, FilePage
from paddlecloud.model.tree import Kind


class Results:
    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, job: str) -> Path:
        """Where the job's results are kept; made if it is not there."""
        folder = self._folder(job)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        return folder

    def list(self, job: str, prefix: str = "", after: str | None = None, limit: int = 1000) -> FilePage:
        """Files at and below `prefix`, a file or folder, in order; `after` is the cursor of the page before."""
        start = paths.below_output(job, prefix)
        behind = None if after is None else _raw_cursor(job, after)
        entries = list(itertools.islice(self._entries(job, start, behind, limit), limit + 1))
        more = len(entries) > limit
        return FilePage(items=tuple(entries[:limit]), next_cursor=entries[limit - 1].path if more else None)

    def open(self, job: str, path: str) -> tuple[BinaryIO, FileEntry]:
        """The file's bytes, to be closed by the caller, and its entry as of now."""
        below = paths.below_output(job, path)
        if not below:
            raise NotFoundError(f"{path!r} is a folder; name a file in it")
        descriptor = local.open_file(self._folder(job), below)
        file = os.fdopen(descriptor, "rb", buffering=0)
        found = local.Found(paths.raw_of(below), Kind.FILE, os.fstat(descriptor))
        return file, _entry(job, found)

    def read(self, job: str, named: Sequence[str], most: int) -> Iterator[bytes | None]:
        """The bytes of each file named, as of now; None for what is no file, or has more than `most`."""
        below = [paths.below_output(job, path) for path in named]
        return _contents(local.open_files(self._folder(job), below), most)

    def _entries(self, job: str, start: str, behind: bytes | None, limit: int) -> Iterator[FileEntry]:
        folder = self._folder(job)
        if not folder.is_dir():
            return
        if not start and behind is None:
            yield _entry(job, local.Found(b"", Kind.FOLDER, folder.stat()))
        for found in local.walk(folder, start, behind or None, limit + 1):
            yield _entry(job, found)

    def _folder(self, job: str) -> Path:
        if not paths.is_job_id(job):
            raise NotFoundError(f"there is no job {job!r}")
        return self._root / job


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
    raise InvalidError(f"cursor {cursor!r} is not one of this list; leave it out to begin anew", field="cursor")


def _entry(job: str, found: local.Found) -> FileEntry:
    path = f"{paths.output_prefix(job)}/{paths.text_of(found.path)}"
    if found.kind is Kind.FOLDER and found.path:
        path += "/"
    return FileEntry(
        path=path,
        size=found.stat.st_size if found.kind is Kind.FILE else 0,
        modified_at=_when(found.stat.st_mtime),
        kind=found.kind,
        target=paths.text_of(found.target),
    )


def _when(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError):
        # Job code may set any time; one that no calendar has must not end the listing.
        return datetime.fromtimestamp(0, UTC)
