"""Counts the disk usage of job files.

Invariant: it uses descriptors and never follows a link, so nothing outside the folder is counted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from paddlecloud.model import paths
from paddlecloud.model.space import Used
from paddlecloud.runtime.removal import LOOK, Only, Pause, everything, opened, opened_root

_BLOCK_BYTES = 512


def occupied(found: os.stat_result) -> int:
    """Bytes allocated on disk."""
    return found.st_blocks * _BLOCK_BYTES


def content(found: os.stat_result) -> int:
    """A file's length, but for a sparse file no more than what is allocated on disk."""
    return min(found.st_size, occupied(found)) if stat.S_ISREG(found.st_mode) else 0


class Counter:
    """Counts entries of one folder; a file with several hard links is counted once."""

    def __init__(self, root: str, pause: Pause, size: Callable[[os.stat_result], int] = occupied) -> None:
        self._root = root
        self._pause = pause
        self._size = size
        self._counted_inodes: set[int] = set()

    def count(self, name: str, only: Only = everything) -> Used:
        """Count the entry `name` and everything below it; a missing entry counts as empty."""
        try:
            with opened_root(self._root) as folder:
                return self._at(folder, name, 0, only)
        except (FileNotFoundError, NotADirectoryError):
            return Used()

    def _at(self, folder: int, name: str, level: int, only: Only = everything) -> Used:
        self._pause()
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return Used()
        own = self._size(found) if only("") else 0
        if stat.S_ISDIR(found.st_mode):
            # Skip folders deeper than any path that can be listed or sent.
            below = self._below(folder, name, level + 1, only) if level < paths.LEVELS else Used()
            return below + Used(size_bytes=own)
        if found.st_nlink > 1:
            self._counted_inodes.add(found.st_ino)
        return Used(size_bytes=own, files=1)

    def _below(self, folder: int, name: str, level: int, only: Only) -> Used:
        total = Used()
        try:
            with opened(folder, name, LOOK, restore=True) as inner, os.scandir(inner) as entries:
                for entry in entries:
                    if only(entry.name) and entry.inode() not in self._counted_inodes:
                        total += self._at(inner, entry.name, level)
        except OSError:
            pass  # not permitted, or swapped meanwhile: its content cannot be counted
        return total
