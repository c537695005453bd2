"""Logs and other files that arrive in pieces, from tasks on machines that do not share the server's disk.

A piece says where it belongs, so that it may be sent again whenever its answer was lost: what is there already is not
written twice, and no gap is ever left.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

from paddlecloud.files import below, disk
from paddlecloud.files.results import Results
from paddlecloud.model import paths
from paddlecloud.model.errors import ConflictError, TooLargeError
from paddlecloud.model.job import Job
from paddlecloud.model.units import format_size

LOG_BYTES = 64 * 2**30


class ArrivingLogs:
    def __init__(self, results: Results, *, spare_bytes: int, log_bytes: int = LOG_BYTES) -> None:
        self._results = results
        self._spare_bytes = spare_bytes
        self._log_bytes = log_bytes

    def append(self, job: Job, task: str, offset: int, piece: bytes) -> int:
        """Keep a piece of a task's log that begins at `offset`; how long the log is, durably, now."""
        folder = self._results.folder(job)
        descriptor = below.open_to_append(folder, paths.log_file(task))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            length = os.fstat(descriptor).st_size
            if offset > length:
                raise ConflictError(
                    f"the log of {task} has {length} bytes: go on from there, not from {offset}", field="offset"
                )
            fresh = piece[length - offset :]
            if length + len(fresh) > self._log_bytes:
                raise TooLargeError(f"the log of {task} may have {format_size(self._log_bytes)} and no more")
            if fresh:
                disk.check_room(str(folder), len(fresh), self._spare_bytes)
                _write(descriptor, fresh, length, task)
            return length + len(fresh)
        finally:
            os.close(descriptor)


class ArrivingFiles:
    """A file is put together in a folder of drafts, and is with the results once it is whole."""

    def __init__(self, results: Results, *, spare_bytes: int) -> None:
        self._results = results
        self._spare_bytes = spare_bytes

    def append(self, path: str, drafts: Path, offset: int, piece: bytes) -> int:
        """Keep a piece; at 0 the file begins anew. How long it is now."""
        drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(_draft(drafts, path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            length = os.fstat(descriptor).st_size
            if offset > length:
                raise ConflictError(f"{path} has {length} bytes here: begin at 0 again", field="offset")
            disk.check_room(str(drafts), len(piece), self._spare_bytes)
            with disk.room_for(path):
                os.ftruncate(descriptor, offset)
                disk.write_at(descriptor, piece, offset)
            return offset + len(piece)
        finally:
            os.close(descriptor)

    def complete(self, job: Job, path: str, drafts: Path, *, executable: bool) -> None:
        """Put a file that is whole in its place, durably; what was there is replaced."""
        draft = _draft(drafts, path)
        above, _, name = paths.raw_of(path).rpartition(b"/")
        folder = below.made_folder(self._results.folder(job), paths.text_of(above))
        try:
            os.chmod(draft, 0o755 if executable else 0o644)
            disk.sync(draft)
            os.rename(draft, name, dst_dir_fd=folder)
            os.fsync(folder)
        except (IsADirectoryError, NotADirectoryError):
            raise ConflictError(f"{path} is a folder in the job's results", field="path") from None
        finally:
            os.close(folder)


def _draft(drafts: Path, path: str) -> str:
    return str(drafts / hashlib.sha256(path.encode()).hexdigest())


def _write(descriptor: int, piece: bytes, length: int, task: str) -> None:
    try:
        with disk.room_for(f"the log of {task}"):
            disk.write_at(descriptor, piece, length)
            os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, length)
        raise
