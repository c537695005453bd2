"""What one user may take of the server at a time: threads, memory for bodies, streams.

All requests share a few threads and one memory. A flood of one user's waits in that user's own line, so that nobody
else waits for it. Belongs to the event loop: there is no lock in it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from anyio import CapacityLimiter

from paddlecloud.model.errors import QuotaError

TURNS = 8
BODY_BYTES = 128 * 1024 * 1024
STREAMS = 200
DIGESTS = 4


class Shares:
    def __init__(self, *, turns: int = TURNS, body_bytes: int = BODY_BYTES, streams: int = STREAMS) -> None:
        self.turns = Share(turns)
        self.bodies = Share(body_bytes)
        self.digests = Share(DIGESTS)
        self.hashing = CapacityLimiter(DIGESTS)  # threads of their own, since a digest takes as long as a file is large
        self._most_streams = streams
        self._streams: dict[str, int] = {}

    @property
    def open_streams(self) -> int:
        return sum(self._streams.values())

    @contextmanager
    def stream(self, user: str) -> Iterator[None]:
        """One more stream of the user's, as long as it is open; those that are open do not end by waiting."""
        count = self._streams.get(user, 0)
        if count >= self._most_streams:
            raise QuotaError(f"quota: {user} has {count} streams of logs or events open; close some, then try again")
        self._streams[user] = count + 1
        try:
            yield
        finally:
            self._streams[user] -= 1
            if not self._streams[user]:
                del self._streams[user]


class Share:
    """So much for each user; whoever asks for more waits, in the order of asking, until some is given back."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def take(self, user: str, amount: int = 1) -> AsyncIterator[None]:
        amount = min(amount, self._most)
        line = self._lines.setdefault(user, _Line())
        line.claims += 1
        try:
            await self._wait(line, amount)
            try:
                yield
            finally:
                self._give_back(line, amount)
        finally:
            line.claims -= 1
            if not line.claims:
                del self._lines[user]

    async def _wait(self, line: _Line, amount: int) -> None:
        if not line.waiting and line.taken + amount <= self._most:
            line.taken += amount
            return
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.waiting.append((amount, granted))
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._give_back(line, amount)
            raise

    def _give_back(self, line: _Line, amount: int) -> None:
        line.taken -= amount
        while line.waiting:
            wanted, granted = line.waiting[0]
            if granted.done():  # by whoever stopped waiting
                line.waiting.popleft()
            elif line.taken + wanted <= self._most:
                line.waiting.popleft()
                line.taken += wanted
                granted.set_result(None)
            else:
                return


@dataclass(slots=True)
class _Line:
    taken: int = 0
    claims: int = 0
    waiting: deque[tuple[int, asyncio.Future[None]]] = field(default_factory=deque)
