"""A thread that does what is to be done, one job after the other, and again later what failed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection

from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.units import describe_duration

log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 600.0
_STILL_WANTED_SECONDS = 0.1
_STOP_SECONDS = 1.0


class GoneError(Exception):
    """What is being carried is not wanted any more, or the server ends."""


class Still:
    """Raises GoneError from when it is not wanted any more, which is asked now and then; of many threads."""

    def __init__(self, wanted: Callable[[], bool], stopping: threading.Event) -> None:
        self._wanted = wanted
        self._stopping = stopping
        self._next = time.monotonic() + _STILL_WANTED_SECONDS
        self._gone = False
        self._asking = threading.Lock()

    def check(self) -> None:
        with self._asking:
            if not self._gone and time.monotonic() >= self._next:
                self._gone = not self._wanted()
                self._next = time.monotonic() + _STILL_WANTED_SECONDS
        if self._gone or self._stopping.is_set():
            raise GoneError


class Worker:
    """A thread that goes round when it is rung for, or when what failed is due again."""

    def __init__(self, name: str, go_round: Callable[[], float], stopping: threading.Event) -> None:
        self._go_round = go_round
        self._stopping = stopping
        self._rung = threading.Event()
        self._pauses: dict[str, tuple[float, float]] = {}  # by job: how long it waits, and until when
        # A bucket that does not answer must not hold the process back at its end.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ring(self) -> None:
        self._rung.set()

    def stop(self) -> None:
        self._rung.set()
        self._thread.join(_STOP_SECONDS)

    def forget_others(self, jobs: Collection[str]) -> None:
        self._pauses = {job: pause for job, pause in self._pauses.items() if job in jobs}

    def attempt(self, job: str, act: Callable[[], None], say: Callable[[str, str], None]) -> None:
        """Do it if it is due; if it fails, say why and when it is tried again."""
        pause, until = self._pauses.get(job, (0.0, 0.0))
        if self._stopping.is_set() or until > time.monotonic():
            return
        try:
            act()
        except Exception as error:
            if self._stopping.is_set():
                return
            pause = min(max(pause * 2, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            self._pauses[job] = (pause, time.monotonic() + pause)
            known = isinstance(error, PaddleCloudError)
            why = error.message if isinstance(error, PaddleCloudError) else "a fault of the server"
            why = f"{why}; it is tried again every {describe_duration(pause)}"
            log.warning("%s: %s", job, why, exc_info=None if known else error)
            say(job, why)
        else:
            self._pauses.pop(job, None)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._rung.clear()
            try:
                seconds = self._go_round()
            except Exception as error:
                if self._stopping.is_set():
                    return  # the records are closed
                log.error("carrying files failed; it is tried again: %s", error, exc_info=error)
                seconds = _LONGEST_PAUSE_SECONDS / 60
            self._rung.wait(seconds)
