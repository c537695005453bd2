"""Receives logs and result files in pieces from tasks on machines that do not share the server's disk.

Each piece carries its offset, so a client can safely resend a piece whose response was lost.
Invariant: bytes are never written twice, and no gap is ever left.
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
        """Append a piece of a task's log that starts at `offset`; return the log's length, synced to disk."""
        folder = self._results.folder(job)
        descriptor = below.open_to_append(folder, paths.log_file(task))
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            length = os.fstat(descriptor).st_size
            if offset > length:
                raise ConflictError(
                    f"the log of {task} has {length} bytes: continue at {length}, not at {offset}", field="offset"
                )
            fresh = piece[length - offset :]
            if length + len(fresh) > self._log_bytes:
                raise TooLargeError(f"the log of {task} has reached its limit of {format_size(self._log_bytes)}")
            if fresh:
                disk.check_room(str(folder), len(fresh), self._spare_bytes)
                _write(descriptor, fresh, length, task)
            return length + len(fresh)
        finally:
            os.close(descriptor)


class ArrivingFiles:
    """Assembles each file in a folder of drafts and moves it to the results once it is complete."""

    def __init__(self, results: Results, *, spare_bytes: int) -> None:
        self._results = results
        self._spare_bytes = spare_bytes

    def append(self, path: str, drafts: Path, offset: int, piece: bytes) -> int:
        """Append a piece and return the new length; offset 0 starts the file over."""
        drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(_draft(drafts, path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            length = os.fstat(descriptor).st_size
            if offset > length:
                raise ConflictError(f"{path} has {length} bytes on the server: start again at offset 0", field="offset")
            disk.check_room(str(drafts), len(piece), self._spare_bytes)
            with disk.room_for(path):
                os.ftruncate(descriptor, offset)
                disk.write_at(descriptor, piece, offset)
            return offset + len(piece)
        finally:
            os.close(descriptor)

    def complete(self, job: Job, path: str, drafts: Path, *, executable: bool) -> None:
        """Move a complete file to its place, synced to disk, replacing any file there."""
        draft = _draft(drafts, path)
        above, _, name = paths.raw_of(path).rpartition(b"/")
        folder = below.made_folder(self._results.folder(job), paths.text_of(above))
        try:
            os.chmod(draft, 0o755 if executable else 0o644)
            disk.sync(draft)
            os.rename(draft, name, dst_dir_fd=folder)
            os.fsync(folder)
        except (IsADirectoryError, NotADirectoryError):
            raise ConflictError(f"{path} is a folder in the job's results: use another name", field="path") from None
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
