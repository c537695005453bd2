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
        self._at: dict[tuple[str, str], tuple[datetime, int]] = {}
        self._users: dict[str, set[str]] = {}  # by address

    def note(self, user: str, address: str, now: datetime, epoch: int = 0) -> None:
        """Of more than are kept, who was seen longest ago is forgotten."""
        with self._lock:
            self._at.pop((user, address), None)
            self._at[user, address] = now, epoch
            self._users.setdefault(address, set()).add(user)
            if len(self._at) > self._most:
                self._forget(*next(iter(self._at)))

    def lately(self, user: str, address: str, now: datetime) -> bool:
        with self._lock:
            return self._is_recent(user, address, now)

    def anybody(self, address: str, now: datetime) -> bool:
        """Whether any user was lately seen at an address."""
        with self._lock:
            return any(self._is_recent(user, address, now) for user in self._users.get(address, ()))

    def only(self, address: str, now: datetime) -> str | None:
        """The user lately seen at an address, if there was exactly one."""
        with self._lock:
            found = [user for user in self._users.get(address, ()) if self._is_recent(user, address, now)]
        return found[0] if len(found) == 1 else None

    def epoch(self, user: str, address: str) -> int | None:
        """Their epoch when they were last seen there."""
        with self._lock:
            return self._at.get((user, address), (None, None))[1]

    def _is_recent(self, user: str, address: str, now: datetime) -> bool:
        noted = self._at.get((user, address))
        # A clock that was set back must not keep anybody for longer.
        return noted is not None and abs(now - noted[0]) <= self._lifetime

    def _forget(self, user: str, address: str) -> None:
        del self._at[user, address]
        self._users[address].discard(user)
        if not self._users[address]:
            del self._users[address]

    def __len__(self) -> int:
        return len(self._at)
