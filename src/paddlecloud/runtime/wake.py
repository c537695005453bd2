"""The knock: a datagram that says "look again" to whoever watches these tasks; with no one there, it is dropped.

The socket is reached through its folder's file descriptor, since a socket's path may have 107 bytes at most.
"""

from __future__ import annotations

import os
import socket

_NAME = "wake"


def knock(folder: str) -> None:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, _Folder(folder) as path:
            sender.setblocking(False)
            sender.sendto(b"1", path)
    except OSError:
        return  # polling is the fallback


def listen(folder: str) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        with _Folder(folder) as path:
            if os.path.lexists(path):
                os.unlink(path)
            receiver.bind(path)
    except OSError:
        receiver.close()
        raise
    return receiver


class _Folder:
    """A short path to the socket, for as long as the folder is held open."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._fd = -1

    def __enter__(self) -> str:
        self._fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._fd}/{_NAME}"

    def __exit__(self, *exception: object) -> None:
        os.close(self._fd)
