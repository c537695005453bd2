"""The virtual environments of users' jobs on the disk: listed, and removed while nobody builds or runs in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from paddlecloud.runtime import environments, removal
from paddlecloud.runtime.environments import Environment
from paddlecloud.runtime.removal import Pause


@dataclass(frozen=True, slots=True)
class Kept:
    user: str
    name: str
    used_at: datetime


class Environments:
    def __init__(self, root: Path) -> None:
        self.root = root

    def users(self) -> list[str]:
        return _names(self.root)

    def all(self) -> Iterator[Kept]:
        """Each with when it was last used; of one that is not whole, when its building began."""
        for user in self.users():
            for name in _names(self.root / user):
                folder = self.root / user / name
                mark = Path(Environment.at(str(folder)).mark)
                try:
                    used = (mark if mark.exists() else folder).stat().st_mtime
                except FileNotFoundError:
                    continue
                yield Kept(user, name, datetime.fromtimestamp(used, UTC))

    def remove(self, user: str, name: str, pause: Pause) -> bool:
        """Whether it went: not while a task has its lock. What is left of one that is half removed is built anew."""
        one = Environment.at(str(self.root / user / name))
        lock = environments.lock(one)
        try:
            if not environments.try_lock(lock, shared=False):
                return False
            Path(one.mark).unlink(missing_ok=True)
            removal.remove(str(self.root / user), name, pause)
            os.unlink(one.lock_file)
            return True
        finally:
            os.close(lock)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
