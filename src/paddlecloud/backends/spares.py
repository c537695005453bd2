"""Folders of ended tasks that are as good as new, kept to be used again.

When ext4 makes a file it looks at every inode nearby that was deleted in the last minutes: with folders made and
removed for each task, a start would soon cost milliseconds. Nothing of a task may reach the next one, so a folder is
kept only if all in it that a task can write to is empty and unchanged.
"""

from __future__ import annotations

import array
import fcntl
import os
from pathlib import Path

from paddlecloud.runtime.folder import TaskFolder

_MOST = 128
_GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS: what chattr sets


class Spares:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._kept: list[str] = []

    def put(self, folder: TaskFolder) -> None:
        """Keep the folder of a task that is over, if it is as good as new."""
        if len(self._kept) < _MOST and _as_new(folder):
            spare = f"{self._root}/.spare-{len(self._kept)}"
            os.rename(folder.path, spare)
            self._kept.append(spare)

    def take(self, path: str) -> None:
        """Put a spare folder at this path, if there is one."""
        if self._kept:
            os.rename(self._kept.pop(), path)


def _as_new(folder: TaskFolder) -> bool:
    try:
        own = _marks(folder.path)
        written = (folder.own, folder.work, folder.home, folder.temporary, folder.mount)
        return all(_marks(path) == own for path in written) and folder.reset()
    except OSError:
        return False


def _marks(path: str) -> tuple[object, ...]:
    """What can be changed about a folder, but for its mode and times: owner, group, access lists, attributes."""
    flags = array.array("l", [0])
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        fcntl.ioctl(fd, _GET_FLAGS, flags)
        extended = {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    finally:
        os.close(fd)
    return found.st_uid, found.st_gid, flags[0], extended
