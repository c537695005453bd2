"""The addresses of a Slurm cluster's nodes, as the server would see calls of their tasks come."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Collection

_KEPT_SECONDS = 60.0


class Addresses:
    """Asks for the names of the nodes again when the last answer is a minute old."""

    def __init__(self, names: Callable[[], Collection[str]]) -> None:
        self._names = names
        self._asking = threading.Lock()
        self._known: frozenset[str] = frozenset()
        self._until = 0.0

    def has(self, address: str) -> bool:
        """Whether a node has this address; UnreachableError: Slurm does not tell now."""
        with self._asking:
            if time.monotonic() >= self._until:
                self._known = frozenset(found for name in self._names() for found in _resolved(name))
                self._until = time.monotonic() + _KEPT_SECONDS
            return address in self._known


def _resolved(name: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except OSError:
        return set()
