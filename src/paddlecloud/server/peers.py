"""Finds the process on this machine that holds the client's end of a connection, whatever the request says.

All programs of a machine share its addresses, and a process can put anything into its own environment. But the server
knows the pid of each task's supervisor, and all processes of a task are below it.

Invariant: a socket belongs to a task, or to no task, only if a process that holds it proves so. A socket that no
process holds proves nothing: its owner may have parked it in the queue of a Unix socket.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from paddlecloud.runtime import processes
from paddlecloud.server import inet_diag

Address = tuple[str, int]

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = f"{inet_diag.ESTABLISHED:02X}"
_REMEMBERED = 1000
_MOST_WALKS = 3
_OUTSIDE = ""  # of all tasks: no user has such a name


class End(NamedTuple):
    """The client's end of a connection. The cookie names it for ever; None: the kernel does not tell it."""

    inode: int
    uid: int
    cookie: int | None


class Peers:
    """Remembers who holds a connection by its cookie, which no later connection gets, as one may its port or inode."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[int, str], None] = {}

    def end(self, client: Address, server: Address) -> End | None:
        """The client's end of an established connection, if it is on this machine.

        Two sockets of one network namespace never have the same pair of addresses. So this is the end of the caller's
        connection if the server's end, looked at afterwards, is still established; else it may be that of a later one.
        """
        ends = _normal(client), _normal(server)
        return _asked(*ends) if inet_diag.is_available() else listed(*ends)

    def is_below(self, end: End, user: str, supervisors: Iterable[int]) -> bool:
        """Whether a process of these supervisors, which are the user's, holds it."""
        if self._knows(end, user):
            return True
        if not _is_held_below(end.inode, list(supervisors)):
            return False
        self._remember(end, user)
        return True

    def is_outside(self, end: End, supervisors: Callable[[], Iterable[int]]) -> bool:
        """Whether processes hold it that are below none of these supervisors, and no others do.

        Looks at every process that has the user id of who made the socket. The supervisors are asked for afterwards, so
        that a task that started meanwhile is among them.
        """
        holders = [pid for pid in processes.pids() if _user_id(pid) == end.uid and _holds(pid, end.inode)]
        above = [processes.ancestors(pid) for pid in holders]
        of_tasks = set(supervisors())
        if not above or not all(found is not None and of_tasks.isdisjoint(found) for found in above):
            return False
        self._remember(end, _OUTSIDE)
        return True

    def is_known_outside(self, end: End) -> bool:
        """Whether `is_outside` has found so before."""
        return self._knows(end, _OUTSIDE)

    def _knows(self, end: End, user: str) -> bool:
        with self._lock:
            return end.cookie is not None and (end.cookie, user) in self._known

    def _remember(self, end: End, user: str) -> None:
        if end.cookie is None:
            return
        with self._lock:
            self._known[end.cookie, user] = None
            if len(self._known) > _REMEMBERED:
                del self._known[next(iter(self._known))]


def is_here(host: str) -> bool:
    """Whether an address is one of this machine's own: only these can be bound."""
    try:
        found = socket.getaddrinfo(_normal((host, 0))[0], 0, type=socket.SOCK_DGRAM, flags=socket.AI_NUMERICHOST)
        with socket.socket(found[0][0], socket.SOCK_DGRAM) as made:
            made.bind(found[0][4])
    except OSError:
        return False
    return True


def listed(client: Address, server: Address) -> End | None:
    """The client's end as /proc lists it, for a kernel that cannot be asked for one socket."""
    for table in _TABLES:
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] != _ESTABLISHED or fields[9] == "0":
                continue
            if (_ends(fields[1]), _ends(fields[2])) == (client, server):
                return End(inode=int(fields[9]), uid=int(fields[7]), cookie=None)
    return None


def _asked(client: Address, server: Address) -> End | None:
    try:
        found = inet_diag.find(client, server)
    except (OSError, ValueError):
        return None
    if found is None or found.state != inet_diag.ESTABLISHED or not found.inode:
        return None
    return End(inode=found.inode, uid=found.uid, cookie=found.cookie)


def _is_held_below(inode: int, supervisors: Collection[int]) -> bool:
    """Whether a process below these holds a socket. One that ended during a walk may have hidden others: walk again."""
    for _ in range(_MOST_WALKS):
        all_lived = True
        for pid in processes.walk_below(*supervisors):
            holds = _holds(pid, inode)
            if holds:
                return True
            all_lived = all_lived and holds is not None
        if all_lived:
            break
    return False


def _holds(pid: int, inode: int) -> bool | None:
    """Whether a process holds a socket; None: it has ended, or may not be looked at."""
    wanted = f"socket:[{inode}]"
    try:
        folder = os.open(f"/proc/{pid}/fd", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        names = os.listdir(folder)
        return any(_link(name, folder) == wanted for name in names) if names else None
    except OSError:
        return None
    finally:
        os.close(folder)


def _link(name: str, folder: int) -> str:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return ""


def _user_id(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


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
