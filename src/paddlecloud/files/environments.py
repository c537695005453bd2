"""Lists and removes users' virtual environments on disk.

Invariant: an environment is never removed while a task builds it or runs in it.
"""

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
        """Yield each environment with the time of its last use; for an incomplete one, when its build began."""
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
        """Remove an environment; False while a task holds its lock. A half-removed one is rebuilt at its next use."""
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
