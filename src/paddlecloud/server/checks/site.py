"""What is checked: the settings of a server, its data folder, and its parts if it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paddlecloud.backends.base import Backend
from paddlecloud.runtime import rootless
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """`backends` are those of the server that runs in this process; None: one is looked at from outside, perhaps
    because it does not run. `healthy`: it schedules jobs; from outside: it says so when it is asked."""

    settings: Settings
    now: datetime
    backends: Mapping[str, Backend] | None = None
    healthy: bool = True

    @property
    def folder(self) -> DataFolder:
        return DataFolder(self.settings.server.data)

    @property
    def account(self) -> int:
        """The user id that the server runs as; of one that does not run, the owner of its folder, who alone may start
        it, or who looks."""
        if self.backends is not None:
            return rootless.own_uid()
        try:
            pid = self.running_pid
            return self.folder.root.stat().st_uid if pid is None else _user_of(pid)
        except OSError:
            return os.geteuid()

    @property
    def running_pid(self) -> int | None:
        """The server that holds the folder. Its lock is not tried: one that starts meanwhile would find it taken."""
        try:
            pid = int(self.folder.lock.read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if b"paddlecloud" in words else None


def _user_of(pid: int) -> int:
    """Whom a process runs as; its folder in /proc belongs to root where it may not be traced."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[2]) for line in lines if line.startswith("Uid:"))
