"""Passwords that were right moments ago, so that clients that send theirs every few seconds do not cost a slow hash
each time: known by a keyed hash under a key that this process alone has, in memory, for a while.

What is remembered is of one name, one address and one epoch of the user: a new password has another.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from datetime import datetime, timedelta

REMEMBERED_FOR = timedelta(minutes=10)
_MOST = 10_000


class RecentPasswords:
    def __init__(self, *, most: int = _MOST) -> None:
        self._key = secrets.token_bytes(32)
        self._most = most
        self._lock = threading.Lock()
        self._right: dict[bytes, tuple[int, datetime]] = {}

    def remember(self, name: str, password: str, address: str, epoch: int, now: datetime) -> None:
        made = self._made(name, password, address)
        with self._lock:
            self._right.pop(made, None)
            self._right[made] = (epoch, now + REMEMBERED_FOR)
            if len(self._right) > self._most:
                del self._right[next(iter(self._right))]

    def epoch(self, name: str, password: str, address: str, now: datetime) -> int | None:
        """The epoch of the user in which this password was right; None: nothing is known of it."""
        made = self._made(name, password, address)
        with self._lock:
            epoch, until = self._right.get(made, (None, now))
            if epoch is not None and now >= until:
                del self._right[made]
                return None
            return epoch

    def __len__(self) -> int:
        return len(self._right)

    def _made(self, name: str, password: str, address: str) -> bytes:
        """Lengths stand before the texts: no two of them make the same whole."""
        parts = [text.encode(errors="surrogatepass") for text in (name, password, address)]
        return hmac.digest(self._key, b"".join(b"%d:%b" % (len(part), part) for part in parts), "sha256")
