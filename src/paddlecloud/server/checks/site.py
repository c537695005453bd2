"""What is checked: the settings of a server, its data folder, and its parts if it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paddlecloud.backends.base import Backend
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
    def running_pid(self) -> int | None:
        """The server that holds the folder. Its lock is not tried: one that starts meanwhile would find it taken."""
        try:
            pid = int(self.folder.lock.read_text())
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if b"paddlecloud" in words else None
