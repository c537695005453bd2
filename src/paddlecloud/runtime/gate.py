"""Trainers start after the pservers: many a framework fails for good when its server does not listen yet.

Whether one listens is read from the kernel's table, not tried: a server that counts its connections is not disturbed.
"""

from __future__ import annotations

import os
import sys

from paddlecloud.runtime import smallfiles
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.taskfile import TaskFile

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTEN = "0A"
_ANY = {"00000000", "0" * 32}
_OLD_PORT = 7164  # PADDLE_INIT_PORT: where pservers of seed 001 listen


def awaited(task: TaskFile, folder: TaskFolder) -> list[str]:
    """The pservers that a trainer still has to wait for, as `pserver-0 at 127.0.0.4:20000`."""
    if not task.trains or not task.pservers:
        return []
    listening = _listening()
    return [
        f"pserver-{number} at {endpoint}"
        for number, endpoint in enumerate(task.pservers)
        if not _listens(endpoint, listening) and not _has_ended(folder, f"pserver-{number}")
    ]


def _listens(endpoint: str, listening: set[tuple[str, int]]) -> bool:
    host, _, port = endpoint.rpartition(":")
    own = {_as_in_table(host), *_ANY}
    return any((address, int(port)) in listening for address in own) or (_as_in_table(host), _OLD_PORT) in listening


def _has_ended(folder: TaskFolder, task: str) -> bool:
    """One that has ended will not listen any more; whether the job goes on is for others to say."""
    return TaskFolder(os.path.join(os.path.dirname(folder.path), task)).ended is not None


def _listening() -> set[tuple[str, int]]:
    found = set()
    for table in _TABLES:
        try:
            lines = smallfiles.read(table).decode("ascii").splitlines()[1:]
        except OSError:
            continue  # a kernel without IPv6
        for line in lines:
            local, _, state = line.split()[1:4]
            if state == _LISTEN:
                address, _, port = local.partition(":")
                found.add((address, int(port, 16)))
    return found


def _as_in_table(address: str) -> str:
    """An IPv4 address as the kernel prints it: its four bytes as one number of this machine."""
    numbers = bytes(map(int, address.split(".")))
    return f"{int.from_bytes(numbers, sys.byteorder):08X}"
