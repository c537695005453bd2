"""Who was lately seen at which address: in memory, bounded, and forgotten after a while and with the server's end."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

MOST = 10_000


class Seen:
    def __init__(self, lifetime: timedelta, *, most: int = MOST) -> None:
        self._lifetime = lifetime
        self._most = most
        self._lock = threading.Lock()
        self._at: dict[tuple[str, str], datetime] = {}

    def note(self, user: str, address: str, now: datetime) -> None:
        """Of more than are kept, who was seen longest ago is forgotten."""
        with self._lock:
            self._at.pop((user, address), None)
            self._at[user, address] = now
            if len(self._at) > self._most:
                del self._at[next(iter(self._at))]

    def lately(self, user: str, address: str, now: datetime) -> bool:
        with self._lock:
            at = self._at.get((user, address))
        # A clock that was set back must not keep anybody for longer.
        return at is not None and abs(now - at) <= self._lifetime

    def __len__(self) -> int:
        return len(self._at)
