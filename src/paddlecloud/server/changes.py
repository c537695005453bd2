"""One bell for everyone who waits for records to change: threads ring it, streams wait on it without a thread."""

from __future__ import annotations

import asyncio


class Changes:
    """Rung after every change. A stream takes the next `turn` before it reads, so no change falls between.

    There is no lock in it, since a signal handler rings it too: a race costs one ring too many, never one too few.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Event()
        self._ringing = False
        self.closed = False

    def attach(self) -> None:
        """Belong to the running event loop."""
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        """Something changed; may be called by any thread."""
        if self._loop is None or self._ringing:
            return
        self._ringing = True
        try:
            self._loop.call_soon_threadsafe(self._wake)
        except RuntimeError:
            return  # the event loop has ended, and with it everyone who waited

    def close(self) -> None:
        """The server ends: every stream comes to its end now."""
        self.closed = True
        self.ring()

    def turn(self) -> asyncio.Event:
        """Set at the next ring."""
        return self._turn

    def _wake(self) -> None:
        self._ringing = False
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()


async def wait(turn: asyncio.Event, seconds: float) -> bool:
    """Whether it was set within the time."""
    try:
        async with asyncio.timeout(seconds):
            await turn.wait()
    except TimeoutError:
        return False
    return True
