"""Folders of handles that are over and as good as new, kept to be used again.

When ext4 makes a file it looks at every inode nearby that was deleted in the last minutes: with folders made and
removed for each job, a start would soon cost milliseconds. A folder is kept only if all in it that a task can write to
is empty and unchanged, and for another job of the same user: one may have handed on a descriptor of it.
"""

from __future__ import annotations

import array
import fcntl
import itertools
import os
from collections.abc import Collection
from pathlib import Path

from paddlecloud.runtime.folder import TaskFolder

_MOST = 128
_GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS: what chattr sets


class Spares:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._numbers = itertools.count()
        self._kept: dict[tuple[str, frozenset[str]], list[str]] = {}  # by user, and names of tasks with folders in it

    def put(self, folder: str, user: str, tasks: Collection[str]) -> bool:
        """Keep the folder of a user's handle with these tasks, if there is nothing in it but what every task gets."""
        if not tasks or sum(map(len, self._kept.values())) >= _MOST or not _as_new(folder, tasks):
            return False
        spare = f"{self._root}/.spare-{next(self._numbers)}"
        os.rename(folder, spare)
        self._kept.setdefault((user, frozenset(tasks)), []).append(spare)
        return True

    def take(self, folder: str, user: str, tasks: Collection[str]) -> bool:
        """Put a spare folder of the user's for these tasks at this path, if there is one."""
        kept = self._kept.get((user, frozenset(tasks)))
        if not kept:
            return False
        os.rename(kept.pop(), folder)
        return True


def _as_new(folder: str, tasks: Collection[str]) -> bool:
    try:
        return set(os.listdir(folder)) == set(tasks) and all(_reset(TaskFolder(f"{folder}/{task}")) for task in tasks)
    except OSError:
        return False


def _reset(folder: TaskFolder) -> bool:
    lock = folder.lock()
    if lock is None:
        return False  # its supervisor has not quite ended, and would keep the next one out
    try:
        own = _marks(folder.path)
        written = (folder.own, folder.work, folder.home, folder.temporary, folder.mount)
        return all(_marks(path) == own for path in written) and folder.reset()
    finally:
        os.close(lock)


def _marks(path: str) -> tuple[object, ...]:
    """What a task can change about a folder, except its mode and times: access lists and attributes."""
    flags = array.array("l", [0])
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.ioctl(fd, _GET_FLAGS, flags)
        extended = {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    finally:
        os.close(fd)
    return flags[0], extended
