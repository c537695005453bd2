"""What jobs leave behind: one folder for each job in that of its user, written by its tasks, listed and read here
without trust.

Versions before this one had no folders of users. Results that lie as they put them stay there for as long as tasks that
were told that path may write, and are moved when the job is done.
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
        self._unsettled: frozenset[str] = frozenset()  # jobs whose results are in no user's folder

    def folder(self, job: Job) -> Path:
        """Where the job's results are kept; made if it is not there."""
        folder = self._folder(job)
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        return folder

    def list(self, job: Job, prefix: str = "", after: str | None = None, limit: int = 1000) -> FilePage:
        """Files at and below `prefix`, a file or folder, in order; `after` is the cursor of the page before."""
        start = paths.below_output(job.id, prefix)
        behind = None if after is None else _raw_cursor(job.id, after)
        entries = list(itertools.islice(self._entries(job, start, behind, limit), limit + 1))
        more = len(entries) > limit
        return FilePage(items=tuple(entries[:limit]), next_cursor=entries[limit - 1].path if more else None)

    def open(self, job: Job, path: str) -> OpenedFile:
        """The file as of now, to be closed by the caller."""
        inside = paths.below_output(job.id, path)
        if not inside:
            raise NotFoundError(f"{path!r} is a folder; name a file in it")
        descriptor = below.open_file(self._folder(job), inside)
        found = os.fstat(descriptor)
        entry = _entry(job.id, below.Found(paths.raw_of(inside), Kind.FILE, found))
        return OpenedFile(descriptor, entry, etag_of(found))

    def read(self, job: Job, named: Sequence[str], most: int) -> Iterator[bytes | None]:
        """The bytes of each file named, as of now; None for what is no file, or has more than `most`."""
        inside = [paths.below_output(job.id, path) for path in named]
        return _contents(below.open_files(self._folder(job), inside), most)

    def _entries(self, job: Job, start: str, behind: bytes | None, limit: int) -> Iterator[FileEntry]:
        folder = self._folder(job)
        if not folder.is_dir():
            return
        if not start and behind is None:
            yield _entry(job.id, below.Found(b"", Kind.FOLDER, folder.stat()))
        for found in below.walk(folder, start, behind or None, limit + 1):
            yield _entry(job.id, found)

    def parent(self, user: str, job: str) -> Path:
        """The folder that the job's own is in."""
        if not paths.is_job_id(job):
            raise NotFoundError(f"there is no job {job!r}")
        return self._root if job in self._unsettled else self._root / user

    def unsettled(self) -> Sequence[str]:
        """Jobs whose results lie where versions before this one put them."""
        return list(filter(paths.is_job_id, _names(self._root)))

    def all(self) -> Sequence[tuple[Path, str]]:
        """Whatever there is, of jobs that a record knows or not: the folder that it is in, and its name."""
        found: list[tuple[Path, str]] = []
        for name in _names(self._root):
            folder = self._root / name
            if paths.is_job_id(name) or folder.is_symlink() or not folder.is_dir():
                found.append((self._root, name))
            else:
                found += [(folder, job) for job in _names(folder)]
        return found

    def settle(self, owners: Mapping[str, str], *, busy: Collection[str]) -> Mapping[str, OSError]:
        """Move the results of these jobs, by owner, but for those of `busy` ones; what kept the others from moving.

        Each is at one of the two places whenever this is killed, and what stays is found where it is.
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
    raise InvalidError(f"cursor {cursor!r} is not one of this list; leave it out to begin anew", field="cursor")


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
