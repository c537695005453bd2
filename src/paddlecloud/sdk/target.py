"""The folder on this machine that results are brought into: nothing is written by way of a link, or outside of it.

A file is gathered in `.part/` and moved to its name when it is whole; `.part/` goes when all are there.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from paddlecloud.model import paths
from paddlecloud.model.errors import ConflictError, InvalidError, PaddleCloudError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import check_link

_PARTS = ".part"
_JOB = "job"  # in .part/: whose results these are
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What changes again within a tick of the server's clock keeps its time: such a file is fetched again the next time.
_TICK = timedelta(seconds=2)


class Target:
    """`listed_at` is the time by the server's clock at which it listed the files; None: it is not known. `settled`: its
    job has ended, and so its files do not change any more."""

    def __init__(self, folder: Path, job: str) -> None:
        self.folder = folder
        self.job = job
        self.listed_at: datetime | None = None
        self.settled = False
        self._root = os.path.join(folder, job)
        self._parts = os.path.join(folder, _PARTS)
        self._made: set[str] = set()

    def whose(self) -> str:
        """The job of which there is an unfinished download; "": there is none."""
        try:
            return Path(self._parts, _JOB).read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    def begin(self, *, ignored: bool = False) -> None:
        """`ignored`: what comes is left out of uploads of the folder around it."""
        if ignored and not os.path.lexists(self.folder):
            os.makedirs(self.folder)
            Path(self.folder, ".gitignore").write_text("*\n")
        os.makedirs(self._parts, exist_ok=True)
        Path(self._parts, _JOB).write_text(self.job)
        self.make_folder("")

    def end(self) -> None:
        shutil.rmtree(self._parts)

    def part(self, entry: FileEntry) -> str:
        """Where a file is gathered: another name once it has changed on the server."""
        name = "\0".join((entry.path, str(entry.size), entry.modified_at.isoformat()))
        return f"{self._parts}/{hashlib.sha256(name.encode()).hexdigest()[:32]}"

    def has_rested(self, entry: FileEntry) -> bool:
        """Whether the time of a file tells its versions apart: it was not written just now, or cannot be again."""
        return self.settled or (self.listed_at is not None and entry.modified_at < self.listed_at - _TICK)

    def has(self, entry: FileEntry, below: str) -> bool:
        """Whether the file is here: it is given its time only when it is whole."""
        try:
            status = os.lstat(self._path(below))
        except OSError:
            return False
        # Microseconds are what the wire carries.
        same_time = status.st_mtime_ns // 1000 == _nanoseconds(entry.modified_at) // 1000
        return stat.S_ISREG(status.st_mode) and status.st_size == entry.size and same_time

    def make_folder(self, below: str) -> None:
        if below in self._made:
            return
        if below:
            self.make_folder(below.rpartition("/")[0])
        path = self._path(below)
        with suppress(FileExistsError):
            os.mkdir(path)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise ConflictError(f"{path!r} is in the way: it is no folder")
        self._made.add(below)

    def write(self, content: bytes, entry: FileEntry, below: str) -> None:
        """A whole file at once."""
        part = self.part(entry)
        with open(part, "wb", buffering=0) as file:
            file.write(content)
        self.finish(part, entry, below)

    def finish(self, part: str, entry: FileEntry, below: str) -> None:
        self.make_folder(below.rpartition("/")[0])
        if self.has_rested(entry):
            modified = _nanoseconds(entry.modified_at)
            os.utime(part, ns=(modified, modified))
        os.replace(part, self._path(below))

    def make_links(self, targets: Mapping[str, str]) -> list[str]:
        """Make the links that stay within the results; the others are returned."""
        skipped = []
        for link, target in targets.items():
            try:
                check_link(link, targets)
                self.make_folder(link.rpartition("/")[0])
                _link(os.fsdecode(paths.raw_of(target)), self._path(link))
            except (InvalidError, ConflictError, FileExistsError):
                skipped.append(link)
        return skipped

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Say what this machine's disk refuses in our words."""
        try:
            yield
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            todo = "make room, then resume the download" if is_full else "name a folder that you can write to"
            raise PaddleCloudError(
                f"cannot write to {str(self.folder)!r}: {(error.strerror or str(error)).lower()}; {todo}"
            ) from None

    def _path(self, below: str) -> str:
        return f"{self._root}/{os.fsdecode(paths.raw_of(below))}" if below else self._root


def _link(target: str, path: str) -> None:
    if os.path.islink(path):
        if os.readlink(path) == target:
            return
        os.unlink(path)
    os.symlink(target, path)


def _nanoseconds(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1) * 1000
