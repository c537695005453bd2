"""Brings a job's results back into a new folder, and trusts the server with nothing outside of it.

A file is fetched into `.part/`, compared with its digest, then moved to its name; `.part/` goes when all are there,
so a folder that has one can be resumed. The folder stands for `output`: `output/<job>/log/…` becomes `<job>/log/…`.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import BinaryIO

from urllib3.exceptions import HTTPError

from paddlecloud.model import paths, wire
from paddlecloud.model.errors import ConflictError, InvalidError, PaddleCloudError, UnreachableError
from paddlecloud.model.tree import Kind, check_link
from paddlecloud.model.views import FileEntry, FilePage
from paddlecloud.sdk.exchange import Answer, Http, Progress, Shown, in_parallel

_PARTS = ".part"
_JOB = "job"  # in .part/: whose results these are
_PAGE = 5000
_PIECE_BYTES = 256 * 1024
_WORTH_RESUMING = 1024 * 1024
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Downloaded:
    """What came; `skipped` are links that lead out of the results."""

    files: int
    size: int
    skipped: tuple[str, ...] = ()


def download(
    http: Http, job: str, prefix: str, folder: Path, progress: Progress | None = None, *, resume: bool = False
) -> Downloaded:
    """Bring what is at and below `prefix` ("" is all) into `folder`, which must be new, or unfinished to `resume`."""
    if not paths.is_job_id(job):  # it names a folder here, and may be a server's word
        raise InvalidError(f"{job[:80]!r} is not a job's id", field="job")
    _check_folder(folder, job, resume)
    shown = Shown(progress)
    entries = list(_list(http, job, prefix))
    files = [entry for entry in entries if entry.kind is Kind.FILE]
    shown.total(sum(entry.size for entry in files))
    target = _Target(folder, job)
    with _writing(folder):
        target.begin()
        for entry in entries:
            if entry.kind is Kind.FOLDER:
                target.make_folder(_below(job, entry))
    in_parallel((partial(_fetch, http, target, entry, shown) for entry in files), shown)
    with _writing(folder):
        skipped = target.make_links({_below(job, entry): entry.target for entry in entries if entry.kind is Kind.LINK})
        target.end()
    return Downloaded(len(files), sum(entry.size for entry in files), tuple(skipped))


def _check_folder(folder: Path, job: str, resume: bool) -> None:
    if not os.path.lexists(folder):
        return
    try:
        whose = (folder / _PARTS / _JOB).read_text()
    except (OSError, UnicodeDecodeError):
        whose = ""
    if resume and whose == job:
        return
    what = "exists, with an unfinished download in it" if whose else "exists"
    raise InvalidError(f"{str(folder)!r} {what}: name a new folder, such as {unused(folder)}", field="download_dir")


def unused(folder: Path) -> Path:
    """A name beside `folder` that nothing has: `output-2` for `output`."""
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(path for path in numbered if not os.path.lexists(path))


def _list(http: Http, job: str, prefix: str) -> Iterator[FileEntry]:
    cursor: str | None = None
    while True:
        query = {"prefix": prefix or None, "cursor": cursor, "limit": _PAGE}
        page = wire.decode(FilePage, http.request("GET", f"/v1/jobs/{job}/files", query=query).data)
        yield from page.items
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


def _below(job: str, entry: FileEntry) -> str:
    """The entry's checked path inside the results; "" is their own folder."""
    return paths.below_output(job, entry.path)


@dataclass(slots=True)
class _Target:
    """The folder on this machine. Nothing is written by way of a link, not even one of an earlier run."""

    folder: Path
    job: str
    _made: set[str] = field(default_factory=set)

    def begin(self) -> None:
        (self.folder / _PARTS).mkdir(parents=True, exist_ok=True)
        (self.folder / _PARTS / _JOB).write_text(self.job)
        self.make_folder("")

    def part(self, entry: FileEntry) -> Path:
        """Where a file is gathered: another name once it has changed on the server."""
        name = "\0".join((entry.path, str(entry.size), entry.modified_at.isoformat()))
        return self.folder / _PARTS / hashlib.sha256(name.encode()).hexdigest()[:32]

    def path(self, below: str) -> str:
        return os.path.join(self.folder, self.job, os.fsdecode(paths.raw_of(below)))

    def has(self, entry: FileEntry, below: str) -> bool:
        """Whether an earlier run brought the file: it is given its time only when it is whole."""
        try:
            status = os.lstat(self.path(below))
        except OSError:
            return False
        same_time = abs(status.st_mtime - entry.modified_at.timestamp()) < 1e-3
        return stat.S_ISREG(status.st_mode) and status.st_size == entry.size and same_time

    def make_folder(self, below: str) -> None:
        if below in self._made:
            return
        if below:
            self.make_folder(below.rpartition("/")[0])
        path = self.path(below) if below else os.path.join(self.folder, self.job)
        with suppress(FileExistsError):
            os.mkdir(path)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise ConflictError(f"{path!r} is in the way: it is no folder")
        self._made.add(below)

    def finish(self, part: Path, entry: FileEntry, below: str) -> None:
        self.make_folder(below.rpartition("/")[0])
        modified = entry.modified_at.timestamp()
        os.utime(part, (modified, modified))
        os.replace(part, self.path(below))

    def make_links(self, targets: dict[str, str]) -> list[str]:
        """Make the links that stay within the results; the others are returned."""
        skipped = []
        for link, target in targets.items():
            try:
                check_link(link, targets)
                self.make_folder(link.rpartition("/")[0])
                self._link(os.fsdecode(paths.raw_of(target)), self.path(link))
            except (InvalidError, ConflictError, FileExistsError):
                skipped.append(link)
        return skipped

    def _link(self, target: str, path: str) -> None:
        if os.path.islink(path):
            os.unlink(path)
        os.symlink(target, path)

    def end(self) -> None:
        shutil.rmtree(self.folder / _PARTS)


def _fetch(http: Http, target: _Target, entry: FileEntry, shown: Shown) -> None:
    below = _below(target.job, entry)
    if target.has(entry, below):
        shown.advance(entry.size)
        return
    with _writing(target.folder):
        part = target.part(entry)
        _Fetching(http, f"/v1/jobs/{target.job}/files/{below}", entry, part, shown).run()
        target.finish(part, entry, below)


class _Fetching:
    """One file on its way into its part, by as many requests as it takes."""

    def __init__(self, http: Http, path: str, entry: FileEntry, part: Path, shown: Shown) -> None:
        self._http = http
        self._path = path
        self._entry = entry
        self._part = part
        self._etag_file = part.with_suffix(".etag") if entry.size >= _WORTH_RESUMING else None
        self._shown = shown
        self._told = 0

    def run(self) -> None:
        fruitless = 0
        while fruitless < _TRIES:
            before = self._told
            try:
                whole = self._try()
            except HTTPError as error:
                broken = f"the connection broke ({error})"
            else:
                if whole:
                    if self._etag_file is not None:
                        self._etag_file.unlink(missing_ok=True)
                    self._shown.advance(self._entry.size - self._told)
                    return
                broken = "it arrived with a wrong digest: it changes all the time, or is damaged on the way"
                self._part.unlink()
            fruitless = 0 if self._told > before else fruitless + 1
        raise UnreachableError(f"cannot fetch {self._entry.path}: {broken}; resume the download later")

    def _try(self) -> bool:
        """One request; whether the file is whole and right after it."""
        start, etag = self._resumable()
        headers = {"Want-Repr-Digest": "sha-256=10", "Accept-Encoding": "identity"}
        if start:
            headers |= {"Range": f"bytes={start}-", "If-Range": etag}
        answer = self._http.request("GET", self._path, headers=headers, stream=True)
        try:
            wanted = _repr_digest(answer, self._entry)
            self._keep_etag(answer)
            found = self._receive(answer, start if answer.status == 206 else 0)
        except BaseException:
            answer.close()
            raise
        answer.release_conn()
        return found == wanted

    def _resumable(self) -> tuple[int, str]:
        """How much of the file is here, and the tag of the version that it is of."""
        if self._etag_file is None:
            return 0, ""
        try:
            etag = self._etag_file.read_text()
            # One byte at least is asked for: no range of a file is empty.
            return min(self._part.stat().st_size, self._entry.size - 1), etag
        except (OSError, UnicodeDecodeError):
            return 0, ""

    def _keep_etag(self, answer: Answer) -> None:
        etag = answer.headers.get("ETag", "")
        if self._etag_file is not None and etag:
            self._etag_file.write_text(etag)

    def _receive(self, answer: Answer, start: int) -> bytes:
        with open(self._part, "r+b" if start else "wb") as file:
            digest = hashlib.sha256()
            for piece in _first_bytes(file, start):
                digest.update(piece)
            file.truncate(start)
            self._tell(start)
            for piece in answer.stream(_PIECE_BYTES):
                file.write(piece)
                digest.update(piece)
                start += len(piece)
                self._tell(start)
        return digest.digest()

    def _tell(self, position: int) -> None:
        """Advance the progress, but never twice for the same bytes."""
        position = min(position, self._entry.size)
        if position > self._told:
            self._shown.advance(position - self._told)
            self._told = position


def _first_bytes(file: BinaryIO, count: int) -> Iterator[bytes]:
    while count and (piece := file.read(min(_PIECE_BYTES, count))):
        yield piece
        count -= len(piece)


def _repr_digest(answer: Answer, entry: FileEntry) -> bytes:
    """The file's SHA-256 as the server tells it (RFC 9530)."""
    for member in answer.headers.get("Repr-Digest", "").split(","):
        name, _, value = member.strip().partition("=")
        if name == "sha-256":
            with suppress(ValueError):
                return base64.b64decode(value.strip(":"), validate=True)
    raise PaddleCloudError(f"the server sent {entry.path} without a digest to check it by")


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Say what this machine's disk refuses in our words."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        todo = "make room, then resume the download" if is_full else "name a folder that you can write to"
        raise PaddleCloudError(
            f"cannot write to {str(folder)!r}: {(error.strerror or str(error)).lower()}; {todo}"
        ) from None
