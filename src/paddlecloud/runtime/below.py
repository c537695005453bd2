"""What is made below a folder that tasks write to: by descriptors and never through a link, which may lead anywhere."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_APPENDED = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def make_folder(top: str, path: str) -> None:
    """The folder `path` below `top`, with those above it, if it is not there."""
    os.close(open_folder(top, path))


def give_folder(top: str, path: str, uid: int) -> None:
    """Make an account the owner of the folder `path` below `top`, made if it is not there."""
    folder = open_folder(top, path)
    try:
        os.fchown(folder, uid, uid)
    finally:
        os.close(folder)


def open_to_append(top: str, path: str) -> int:
    """A descriptor of the file `path` below `top`, made if it is not there, with the folders above it."""
    folder = open_folder(top, os.path.dirname(path))
    try:
        file = os.open(os.path.basename(path), _APPENDED, 0o644, dir_fd=folder)
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is no plain file", path)
    os.set_blocking(file, True)
    return file


def open_folder(top: str, path: str) -> int:
    """A descriptor of the folder `path` below `top`, made if it is not there."""
    try:
        folder = os.open(top, _FOLDER)
    except FileNotFoundError:
        os.makedirs(top, exist_ok=True)
        folder = os.open(top, _FOLDER)
    for name in [part for part in path[len(top) :].split("/") if part]:
        outer = folder
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=outer)
            folder = os.open(name, _FOLDER, dir_fd=outer)
        finally:
            os.close(outer)
    return folder
