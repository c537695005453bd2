"""When a round runs: at once when something happened, and from time to time in any case.

Much may happen at once, and a round deals with all of it for little more than the price of one: between two rounds
there is a moment in which what happens gathers, so that under load they are fewer.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime

from paddlecloud.model.errors import UnreachableError
from paddlecloud.scheduler.plan import Snapshot
from paddlecloud.scheduler.round import Round

log = logging.getLogger(__name__)

_PAUSE_SECONDS = 0.5
_IDLE_SECONDS = 10.0
_AFTER_FAULT_SECONDS = 2.0
_SHORTEST_MOMENT_SECONDS = 0.005
_LONGEST_MOMENT_SECONDS = 0.025


class Loop:
    """A thread that runs rounds. Rounds never overlap: the store has one scheduler."""

    def __init__(
        self,
        round: Round,
        *,
        clock: Callable[[], datetime],
        on_change: Callable[[], None] = lambda: None,
        observe: Callable[[float, bool], None] = lambda _seconds, _failed: None,
    ) -> None:
        self._round = round
        self._clock = clock
        self._on_change = on_change
        self._observe = observe
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)
        self._last_fault: str | None = None

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something happened: a job was submitted or killed, a task started or ended."""
        self._woken.set()

    def stop(self) -> None:
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def healthy(self) -> bool:
        return self._thread.is_alive() and self._last_fault is None

    def snapshot(self) -> Snapshot:
        return self._round.snapshot(self._clock())

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            began = time.monotonic()
            try:
                changed = self._round.run(self._clock())
                self._observe(time.monotonic() - began, False)
                if changed:
                    self._on_change()
                self._last_fault = None
            except Exception as error:
                self._observe(time.monotonic() - began, True)
                known = isinstance(error, UnreachableError)
                log.error("a round failed (%s); the next is in %g s", error, _AFTER_FAULT_SECONDS, exc_info=not known)
                self._last_fault = str(error)
                self._stopping.wait(_AFTER_FAULT_SECONDS)
            self._stopping.wait(_moment(time.monotonic() - began))
            self._woken.wait(_IDLE_SECONDS if self._round.idle else _PAUSE_SECONDS)


def _moment(took: float) -> float:
    """How long to wait after a round: the longer it took, the more is gathered for the next."""
    return min(max(_SHORTEST_MOMENT_SECONDS, 2 * took), _LONGEST_MOMENT_SECONDS)
