"""Bytes in and out of the server: uploads within their limits, results and logs of jobs.

Whether the user may see a job is settled before anything here is called.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.files.opened import OpenedFile
from paddlecloud.files.results import Results
from paddlecloud.files.sent import list_sent, open_sent
from paddlecloud.files.uploads import Uploads
from paddlecloud.model import paths
from paddlecloud.model.errors import FullError, InvalidError, NotFoundError, TooLargeError
from paddlecloud.model.job import Job
from paddlecloud.model.transfers import FilePage, UploadPlan
from paddlecloud.model.tree import (
    CHUNK_BYTES,
    LEFT_OUT,
    PACK_BYTES,
    PACK_CHUNKS,
    PACKED_BYTES,
    Kind,
    Manifest,
    check_total,
    outline,
    pack,
    unpack,
)
from paddlecloud.model.units import format_size

_READ_BYTES = 1024 * 1024
_TAIL_BYTES = 64 * 1024
_TAIL_MOST_BYTES = 64 * 1024 * 1024
_VALUES_OF_AN_ENTRY = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferLimits:
    """The most that one upload may have."""

    upload_bytes: int
    entries: int = 200_000
    folder_characters: int = 64 * 1024 * 1024  # in the paths of all its folders, which are held in memory
    page: int = 10_000


class Transfers:
    def __init__(self, uploads: Uploads, results: Results, limits: TransferLimits) -> None:
        self._uploads = uploads
        self._results = results
        self._limits = limits

    @property
    def upload_limit_bytes(self) -> int:
        return self._limits.upload_bytes

    def check_length(self, manifest: bytes) -> None:
        """Refuse a manifest, as it came, that has more in it than any folder within the limits: it is not worth the
        memory that it would take. Every value but the first of its list or object has a comma before it."""
        most = self._limits.entries * _VALUES_OF_AN_ENTRY + self._limits.upload_bytes // CHUNK_BYTES
        if manifest.count(b",") > most:
            raise self._too_many("too many")

    def plan(self, user: str, manifest: Manifest) -> UploadPlan:
        """What is still to be sent of a folder; with nothing missing it is laid out, and may be named by a job."""
        self._check_limits(manifest)
        tree, missing = self._uploads.take(user, manifest)
        if missing:
            self._check_room(manifest, missing)
        return UploadPlan(tree=tree, missing=tuple(missing))

    def put(self, user: str, digest: str, data: bytes) -> None:
        if len(data) > CHUNK_BYTES:
            raise TooLargeError(f"chunk {digest} has {len(data)} bytes; the limit is {CHUNK_BYTES}", field="body")
        self._uploads.put_chunk(user, digest, data)

    def put_pack(self, user: str, data: bytes) -> None:
        """Keep all chunks of a pack (see `tree.pack`), or none."""
        if len(data) > PACK_BYTES:
            raise TooLargeError(f"the pack has {len(data)} bytes; the limit is {PACK_BYTES}", field="body")
        self._uploads.put_chunks(user, unpack(data))

    def tree(self, user: str, tree_id: str) -> Path:
        return self._uploads.tree(user, tree_id)

    def list(self, job: Job, prefix: str = "", cursor: str | None = None, limit: int = 1000) -> FilePage:
        if not 0 < limit <= self._limits.page:
            raise InvalidError(f"limit {limit} is not between 1 and {self._limits.page}", field="limit")
        return self._results.list(job, prefix, cursor, limit)

    def list_sent(self, job: Job, cursor: str | None = None, limit: int = 1000) -> FilePage:
        """What the job was submitted with; nothing of one that was sent no folder."""
        if not 0 < limit <= self._limits.page:
            raise InvalidError(f"limit {limit} is not between 1 and {self._limits.page}", field="limit")
        return FilePage(items=()) if job.spec.tree is None else list_sent(self._sent(job), cursor, limit)

    def open_sent(self, job: Job, path: str) -> OpenedFile:
        return open_sent(self._sent(job), path)

    def _sent(self, job: Job) -> Path:
        try:
            return self._uploads.tree(job.user, job.spec.tree or "")
        except NotFoundError:
            raise NotFoundError(f"the files that {job.id} was submitted with are not kept any more") from None

    def pack(self, job: Job, named: Sequence[str]) -> Iterator[bytes]:
        """Small files of a job's results as one pack (see `tree.pack`), in the order of their names, in pieces.

        A name that is of no file, or of one that is too much for this pack, stands there as LEFT_OUT without bytes.
        """
        return packed(self._results.read(job, named, PACKED_BYTES), len(named))

    def open(self, job: Job, path: str) -> OpenedFile:
        return self._results.open(job, path)

    def open_log(self, job: Job, task: str) -> OpenedFile:
        """A task's log as it is now; NotFoundError before the task has one."""
        if "/" in task:
            raise NotFoundError(f"{job.id} has no task {task!r}", field="task")
        return self.open(job, paths.log_file(task))

    def log_size(self, job: Job, task: str) -> int:
        """How long a task's log is; 0 before it has one."""
        try:
            opened = self.open_log(job, task)
        except NotFoundError:
            return 0
        opened.close()
        return opened.entry.size

    def read_log(self, job: Job, task: str, offset: int, limit: int) -> bytes:
        """At most `limit` bytes of a task's log from `offset`; none at its end, or before the task has a log."""
        try:
            opened = self.open_log(job, task)
        except NotFoundError:
            return b""
        with closing(opened):
            return os.pread(opened.fileno(), min(limit, _READ_BYTES), offset)

    def tail_log(self, job: Job, task: str, lines: int) -> int:
        """The offset at which the last `lines` lines of a task's log begin, or as many as its last 64 MiB have."""
        try:
            opened = self.open_log(job, task)
        except NotFoundError:
            return 0
        with closing(opened):
            return _last_lines(opened.fileno(), opened.entry.size, lines)

    def log_tail(self, job: Job, task: str, lines: int) -> bytes:
        """The last `lines` lines of a task's log, or as many as its last 64 MiB have; none before it has a log."""
        try:
            opened = self.open_log(job, task)
        except NotFoundError:
            return b""
        with closing(opened):
            start = _last_lines(opened.fileno(), opened.entry.size, lines)
            return opened.read(start, opened.entry.size)

    def _check_limits(self, manifest: Manifest) -> None:
        if len(manifest.entries) > self._limits.entries:
            raise self._too_many(str(len(manifest.entries)))
        found = outline(manifest)
        if found.paths > self._limits.entries:
            raise self._too_many(str(found.paths))
        if found.folder_characters > self._limits.folder_characters:
            raise TooLargeError(
                f"the paths of the folder's {found.paths} files and folders are too long: those of folders alone have "
                f"{format_size(found.folder_characters)}, the limit is {format_size(self._limits.folder_characters)}; "
                "pack them into an archive, or leave some out with a .paddleignore file",
                field="entries",
            )
        check_total(((entry.path, entry.size) for entry in manifest.entries), self._limits.upload_bytes)

    def _too_many(self, count: str) -> TooLargeError:
        return TooLargeError(
            f"the folder has {count} files and folders, the limit is {self._limits.entries}; "
            "pack them into an archive, or leave some out with a .paddleignore file",
            field="entries",
        )

    def _check_room(self, manifest: Manifest, missing: Sequence[str]) -> None:
        sizes = {
            digest: entry.chunk_size(number)
            for entry in manifest.entries
            if entry.kind is Kind.FILE
            for number, digest in enumerate(entry.chunks)
        }
        needed = sum(sizes[digest] for digest in missing)
        free = self._uploads.free_bytes()
        if needed > free:
            raise FullError(
                f"{format_size(needed)} are to be sent and the server has room for {format_size(free)} in "
                f"{self._uploads.folder}; "
                "ask its operator for more, or send less"
            )


def packed(contents: Iterator[bytes | None], count: int) -> Iterator[bytes]:
    """The contents as one pack, in pieces; None, and what does not fit any more, as LEFT_OUT."""
    if count > PACK_CHUNKS:
        raise TooLargeError(f"{count} files were asked for at once, the limit is {PACK_CHUNKS}", field="paths")
    return _packed(contents)


def _packed(contents: Iterator[bytes | None]) -> Iterator[bytes]:
    room = PACK_BYTES
    frames: list[tuple[str, bytes]] = []
    size = 0
    for content in contents:
        if content is None or len(content) > room:
            frames.append((LEFT_OUT, b""))
            continue
        frames.append((hashlib.sha256(content).hexdigest(), content))
        room -= len(content)
        size += len(content)
        if size >= _READ_BYTES:
            yield pack(frames)
            frames, size = [], 0
    yield pack(frames)


def _last_lines(descriptor: int, size: int, lines: int) -> int:
    if lines <= 0:
        return size
    # The newline that ends the last line begins no further one.
    end = size - 1 if size and os.pread(descriptor, 1, size - 1) == b"\n" else size
    first = max(0, size - _TAIL_MOST_BYTES)
    while end > first:
        start = max(first, end - _TAIL_BYTES)
        block = os.pread(descriptor, end - start, start)
        at = len(block)
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            lines -= 1
            if not lines:
                return start + at + 1
        end = start
    return first
