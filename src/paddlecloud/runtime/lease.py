"""The lease of an attempt on a node that shares the server's disk: once it is revoked, its tasks end themselves.

Invariant: a task on a node that its cluster took for dead writes nothing beside the next attempt. The server revokes
the lease REVOKED_SECONDS before it calls such a task lost.
"""

from __future__ import annotations

import errno
import os
import time

from paddlecloud.runtime import smallfiles

REVOKED_SECONDS = 10.0  # five looks
_LOOK_SECONDS = 2.0
_GONE = frozenset({errno.ENOENT, errno.ESTALE, errno.ENOTDIR})


def grant(handle_folder: str) -> None:
    smallfiles.write_new(lease_file(handle_folder), b"", 0o600)


def revoke(handle_folder: str) -> None:
    """Written into the file that is there: by NFS, who opens it next sees that, where a new name may take a minute."""
    try:
        fd = os.open(lease_file(handle_folder), os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # its runtime is older than leases
    try:
        os.write(fd, b"revoked\n")
        os.fsync(fd)
    finally:
        os.close(fd)


def lease_file(handle_folder: str) -> str:
    return f"{handle_folder}/lease"


class LeaseWatch:
    """Looked at now and then; `lost` stays true once the lease is revoked, or its folder is gone."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.next_look = 0.0
        self.lost = False

    def look(self) -> bool:
        """Look again; whether the lease is lost. A disk that does not answer takes no writes either."""
        try:
            self.lost = self.lost or smallfiles.read(self._path) != b""
        except OSError as error:
            self.lost = error.errno in _GONE
        self.next_look = time.monotonic() + _LOOK_SECONDS
        return self.lost


def watch(handle_folder: str) -> LeaseWatch | None:
    """None: where the server sees the processes of its tasks, they need no lease."""
    path = lease_file(handle_folder)
    return LeaseWatch(path) if os.path.exists(path) else None
