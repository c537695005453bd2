"""Ports for servers whose port must be known before they start, or be the same after a restart.

They are below those that the system gives to connections (from 32768), and not those of tasks (from 20000), so that
nothing takes one of them in between.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

_PORTS = range(10_000, 20_000)
_CHANCE = random.SystemRandom()  # tests in other processes choose, too


def free_ports(count: int) -> list[int]:
    """All at once, so that none is given twice."""
    found: list[int] = []
    with ExitStack() as held:
        while len(found) < count:
            probe = held.enter_context(socket.socket())
            port = _CHANCE.choice(_PORTS)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def free_port() -> int:
    return free_ports(1)[0]
