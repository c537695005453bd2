"""The knock: a byte that says "look again" to whoever watches these tasks; with no one there, it is dropped.

It goes through a named pipe: a pipe that is full of knocks needs no further one, and its path may have any length.
"""

from __future__ import annotations

import os

_NAME = "wake"


def knock(folder: str) -> None:
    try:
        fd = os.open(os.path.join(folder, _NAME), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # polling is the fallback
    knock_at(fd)
    os.close(fd)


def knock_at(fd: int) -> None:
    try:
        os.write(fd, b"1")
    except OSError:
        return  # no one reads it any more, or it is full


def listen(folder: str) -> int:
    """A new pipe to read knocks from, which stays open until it is closed here; an earlier listener hears no more."""
    path = os.path.join(folder, _NAME)
    if os.path.lexists(path):
        os.unlink(path)
    os.mkfifo(path, 0o600)
    # For writing too: without any writer a read would see the end of the pipe.
    return os.open(path, os.O_RDWR | os.O_CLOEXEC)
