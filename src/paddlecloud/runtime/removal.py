"""Removing what job code left: by descriptors and never through a link, so nothing else is reached.

Folders that deny access are opened all the same, and depth costs neither descriptors nor stack: what is too deep is
moved up before it is removed. Whoever is killed in the middle begins again.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Callable, Iterator

Pause = Callable[[], None]  # called again and again; may wait, or raise to stop
Only = Callable[[str], bool]  # which names of the first level are meant; "" is the folder itself

LOOK, CHANGE = 0o500, 0o700
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNOPENED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_AT_ONCE = 1000
_DEEP = 64


def everything(_name: str) -> bool:
    return True


def at_once() -> None:
    """No pause."""


def remove(root: str, name: str, pause: Pause = at_once, only: Only = everything) -> None:
    """Remove what is called `name` in a folder of ours, with all that is in it; what is not there is fine."""
    with suppress(FileNotFoundError), opened_root(root) as folder:
        _remove(folder, name, pause, only)
        if only is not everything:
            _remove_empty(folder, name)


def _remove(folder: int, name: str, pause: Pause, only: Only) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=folder)
        return
    with opened(folder, name, CHANGE) as top:
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
    with opened(folder, name, CHANGE) as inner:
        if level == _DEEP:
            os.rename(name, f".deep-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=top)
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
def opened_root(path: str) -> Iterator[int]:
    """A folder of ours, which may be on another disk by a link of the operator's."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def opened(folder: int, name: str, needed: int, *, restore: bool = False) -> Iterator[int]:
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
