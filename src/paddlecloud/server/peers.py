"""Whether a request came from a task on this machine: by the process that holds its connection, not by what it says.

Every task here, and every other program, has the same addresses; and what stands in a process's environment it may have
put there itself. But the supervisor of a task is known by its pid, and all processes of the task are below it.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from paddlecloud.runtime import processes

Address = tuple[str, int]

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_REMEMBERED = 1000


class Peers:
    """What was found out of a connection is remembered for as long as it has its socket, by that and its owner."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[int, str], None] = {}

    def socket(self, client: Address, server: Address) -> int | None:
        """The inode of a client's end of a connection, if that is on this machine."""
        wanted = (_normal(client), _normal(server))
        for table in _TABLES:
            try:
                lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
            except OSError:
                continue
            for line in lines:
                fields = line.split()
                if (_ends(fields[1]), _ends(fields[2])) == wanted and fields[9] != "0":
                    return int(fields[9])
        return None

    def is_below(self, socket: int, user: str, supervisors: Iterable[int]) -> bool:
        """Whether a process of these supervisors, which are the user's, holds the socket."""
        with self._lock:
            if (socket, user) in self._known:
                return True
        if not any(_holds(pid, socket) for pid in processes.descendants(*supervisors)):
            return False
        with self._lock:
            self._known[socket, user] = None
            if len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]
        return True


def is_here(host: str) -> bool:
    """Whether an address is one of this machine's own: only these can be bound."""
    try:
        found = socket.getaddrinfo(_normal((host, 0))[0], 0, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
        with socket.socket(found[0][0], socket.SOCK_DGRAM) as made:
            made.bind(found[0][4])
    except OSError:
        return False
    return True


def _holds(pid: int, socket: int) -> bool:
    wanted = f"socket:[{socket}]"
    try:
        return any(_link(f"/proc/{pid}/fd/{name}") == wanted for name in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _normal(address: Address) -> Address:
    try:
        found = ipaddress.ip_address(address[0].partition("%")[0])
    except ValueError:
        return address
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found), address[1]


def _ends(text: str) -> Address:
    """An address as the kernel writes it: words of four bytes in the machine's order, in hexadecimal."""
    host, _, port = text.partition(":")
    raw = bytes.fromhex(host)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return _normal((str(ipaddress.ip_address(raw)), int(port, 16)))
