"""Removing and counting what job code left: by descriptors and never through a link, so nothing else is reached.

Folders that deny access are opened all the same, and depth costs neither descriptors nor stack: what is too deep is
moved up before it is removed. Whoever is killed in the middle begins again.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from paddlecloud.model import paths
from paddlecloud.model.space import Used

Pause = Callable[[], None]  # called again and again; may wait, or raise to stop
Only = Callable[[str], bool]  # which names of the first level are meant; "" is the folder itself

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNOPENED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK, _CHANGE = 0o500, 0o700
_AT_ONCE = 1000
_DEEP = 64
_BLOCK_BYTES = 512


def everything(_name: str) -> bool:
    return True


def remove(root: str, name: str, pause: Pause, only: Only = everything) -> None:
    """Remove what is called `name` in a folder of ours, with all that is in it; what is not there is fine."""
    with suppress(FileNotFoundError), _root(root) as folder:
        _remove(folder, name, pause, only)
        if only is not everything:
            _remove_empty(folder, name)


class Counter:
    """Counts what is in a folder of ours; a file that it meets again under another name is not counted again."""

    def __init__(self, root: str, pause: Pause) -> None:
        self._root = root
        self._pause = pause
        self._seen: set[int] = set()

    def count(self, name: str, only: Only = everything) -> Used:
        """What is called `name` in the folder, with all that is in it; what is not there is nothing."""
        try:
            with _root(self._root) as folder:
                return self._at(folder, name, 0, only)
        except (FileNotFoundError, NotADirectoryError):
            return Used()

    def _at(self, folder: int, name: str, level: int, only: Only = everything) -> Used:
        self._pause()
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return Used()
        own = found.st_blocks * _BLOCK_BYTES if only("") else 0
        if stat.S_ISDIR(found.st_mode):
            # Deeper than any path that can be listed or sent, nothing is counted.
            below = self._below(folder, name, level + 1, only) if level < paths.LEVELS else Used()
            return below + Used(size_bytes=own)
        if found.st_nlink > 1:
            self._seen.add(found.st_ino)
        return Used(size_bytes=own, files=1)

    def _below(self, folder: int, name: str, level: int, only: Only) -> Used:
        total = Used()
        try:
            with _opened(folder, name, _LOOK, restore=True) as inner, os.scandir(inner) as entries:
                for entry in entries:
                    if only(entry.name) and entry.inode() not in self._seen:
                        total += self._at(inner, entry.name, level)
        except OSError:
            pass  # somebody else's, or swapped while we looked: what is in it cannot be told
        return total


def _remove(folder: int, name: str, pause: Pause, only: Only) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    with _opened(folder, name, _CHANGE) as top:
        _empty(top, top, 0, pause, only)
    if only is everything:
        os.rmdir(name, dir_fd=folder)


def _empty(folder: int, top: int, level: int, pause: Pause, only: Only = everything) -> None:
    # Names are taken in batches and asked for anew: some disks lose their place when what is listed goes.
    while names := _names(folder, only):
        for name, is_folder in names:
            pause()
            with suppress(FileNotFoundError):
                if is_folder:
                    _remove_folder(folder, name, top, level, pause)
                else:
                    os.unlink(name, dir_fd=folder)


def _remove_folder(folder: int, name: str, top: int, level: int, pause: Pause) -> None:
    with _opened(folder, name, _CHANGE) as inner:
        if level == _DEEP:
            os.rename(name, f".deep-{secrets.token_hex(8)}", src_dir_fd=folder, dst_dir_fd=top)
            return
        _empty(inner, top, level + 1, pause)
    os.rmdir(name, dir_fd=folder)


def _names(folder: int, only: Only) -> list[tuple[str, bool]]:
    with os.scandir(folder) as entries:
        meant = ((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if only(entry.name))
        return list(islice(meant, _AT_ONCE))


def _remove_empty(folder: int, name: str) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR):
            raise


@contextmanager
def _root(path: str) -> Iterator[int]:
    """A folder of ours, which may be on another disk by a link of the operator's."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def _opened(folder: int, name: str, needed: int, *, restore: bool = False) -> Iterator[int]:
    """A folder, its mode changed where that keeps us out; with `restore` it is what it was in the end."""
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
        mode = stat.S_IMODE(os.fstat(inner).st_mode)
    except PermissionError:
        inner, mode = _forced(folder, name, needed)
    try:
        if mode & needed != needed:
            os.fchmod(inner, mode | needed)
        yield inner
    finally:
        if restore and mode & needed != needed:
            os.fchmod(inner, mode)
        os.close(inner)


def _forced(folder: int, name: str, needed: int) -> tuple[int, int]:
    """A folder that denies its owner access, opened, and the mode that it had."""
    unopened = os.open(name, _UNOPENED, dir_fd=folder)
    try:
        # By the descriptor: a name may have become a link, which chmod would follow.
        here = f"/proc/self/fd/{unopened}"
        mode = stat.S_IMODE(os.fstat(unopened).st_mode)
        os.chmod(here, mode | needed)
        return os.open(here, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), mode
    finally:
        os.close(unopened)
