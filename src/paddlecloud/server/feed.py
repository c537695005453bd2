"""The newest events, read once for all who follow: a change costs one query, however many are waiting for it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile

from starlette.concurrency import run_in_threadpool

from paddlecloud.model.errors import UnreachableError
from paddlecloud.model.job import Moved
from paddlecloud.server.changes import Changes, wait
from paddlecloud.store.jobs import Jobs

log = logging.getLogger(__name__)

_KEPT = 10_000
_AT_ONCE = 500
_LOOK_SECONDS = 1.0  # in case a change rang no bell
_MOMENT_SECONDS = 0.01  # in which changes that come in quick succession gather, to be read at once
_BUSY_MOMENT_SECONDS = 0.05  # the same, once so many came at a time that no one waits for a single one
_BUSY = 8


class Feed:
    """Belongs to the event loop: `run` alone changes it, so between two awaits a follower sees one moment."""

    def __init__(
        self,
        jobs: Jobs,
        changes: Changes,
        *,
        kept: int = _KEPT,
        observe: Callable[[Sequence[Moved]], None] = lambda _: None,
    ) -> None:
        self._jobs = jobs
        self._changes = changes
        self._observe = observe
        self._recent: deque[Moved] = deque(maxlen=kept)
        self._turn = asyncio.Event()
        self._forgotten = self.last = jobs.last_event()

    def turn(self) -> asyncio.Event:
        """Set when there is something new, and when the server ends."""
        return self._turn

    def after(self, seq: int) -> list[Moved] | None:
        """What happened after event number `seq`; None: that is too long ago to be known here."""
        if seq < self._forgotten:
            return None
        return list(takewhile(lambda move: move.seq > seq, reversed(self._recent)))[::-1]

    async def run(self) -> None:
        """Read what is new whenever something changes, as long as the server runs."""
        while not self._changes.closed:
            changed = self._changes.turn()
            came = 0
            try:
                came = await self._read()
            except Exception as error:
                known = isinstance(error, UnreachableError)
                log.error(
                    "events could not be read (%s); the next try is in %g s", error, _LOOK_SECONDS, exc_info=not known
                )
            await asyncio.sleep(_MOMENT_SECONDS if came < _BUSY else _BUSY_MOMENT_SECONDS)
            await wait(changed, _LOOK_SECONDS)
        self._wake()

    async def _read(self) -> int:
        """How many were new."""
        came, full = 0, True
        while full:
            moves = await run_in_threadpool(self._jobs.events, after=self.last, user=None, limit=_AT_ONCE)
            full = len(moves) == _AT_ONCE
            if moves:
                self._keep(moves)
                self._wake()
            came += len(moves)
        return came

    def _keep(self, moves: Sequence[Moved]) -> None:
        for move in moves:
            if len(self._recent) == self._recent.maxlen:
                self._forgotten = self._recent[0].seq
            self._recent.append(move)
        self.last = moves[-1].seq
        self._observe(moves)

    def _wake(self) -> None:
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()
