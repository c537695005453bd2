"""Asks the kernel for one TCP socket by both of its addresses (NETLINK_SOCK_DIAG, sock_diag(7)).

Reading /proc/net/tcp instead takes time that grows with every connection of the machine, and gives no cookie.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import socket
import struct
from typing import NamedTuple

Address = tuple[str, int]

ESTABLISHED, LISTENING = 1, 10  # TCP_ESTABLISHED and TCP_LISTEN in the kernel's net/tcp_states.h

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = b"\xff" * 8
_HEADER = struct.Struct("=IHHII")  # nlmsghdr
_REQUEST = struct.Struct("=BBBxI")  # inet_diag_req_v2, up to its id
_PORTS = struct.Struct("!HH")
_ID = struct.Struct("=4s16s16sI8s")  # inet_diag_sockid
_REPLY = struct.Struct("=BBBB48sIIIII")  # inet_diag_msg
_REPLY_BYTES = 8192
_SECONDS = 1.0


class Found(NamedTuple):
    """A socket as the kernel describes it. The cookie is never given to another socket, unlike the inode."""

    state: int
    uid: int
    inode: int
    cookie: int


@functools.cache
def is_available() -> bool:
    """Whether the kernel answers: without its module, it reports every socket as missing."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            found = find(listening.getsockname(), ("0.0.0.0", 0))
    except OSError:
        return False
    return found is not None and found.state == LISTENING and found.inode != 0


def find(local: Address, remote: Address) -> Found | None:
    """The socket with these two addresses, or a listening one at `local`; None if there is none."""
    near, far = (ipaddress.ip_address(host) for host, _ in (local, remote))
    if near.version != far.version:
        return None
    family = socket.AF_INET if near.version == 4 else socket.AF_INET6
    wanted = _ID.pack(_PORTS.pack(local[1], remote[1]), near.packed, far.packed, 0, _NO_COOKIE)
    asked = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _ALL_STATES) + wanted
    header = _HEADER.pack(_HEADER.size + len(asked), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as line:
        line.settimeout(_SECONDS)
        line.sendto(header + asked, (0, 0))
        answer = line.recv(_REPLY_BYTES)
    return _read(answer)


def _read(answer: bytes) -> Found | None:
    if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY:
        error = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if error == 2:  # ENOENT
            return None
        raise OSError(error, os.strerror(error))
    _, state, _, _, identity, _, _, _, uid, inode = _REPLY.unpack_from(answer, _HEADER.size)
    return Found(state=state, uid=uid, inode=inode, cookie=int.from_bytes(identity[-8:], "little"))
