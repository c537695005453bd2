"""Logs that arrive in pieces, from tasks on machines that do not share the server's disk.

A piece says where it belongs, so that it may be sent again whenever its answer was lost: what is there already is not
written twice, and no gap is ever left.
"""

from __future__ import annotations

import fcntl
import os

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


def _write(descriptor: int, piece: bytes, length: int, task: str) -> None:
    try:
        with disk.room_for(f"the log of {task}"):
            disk.write_at(descriptor, piece, length)
            os.fsync(descriptor)
    except BaseException:
        os.ftruncate(descriptor, length)
        raise
