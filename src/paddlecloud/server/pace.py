"""Long work in the background: one piece of it at a time, which rests often and ends when it must."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_STEPS = 256
_REST_SECONDS = 0.002


class TimeUpError(Exception):
    """The work is broken off where it is: its time is up, or the server ends. What is done is done."""


class Pace:
    """Called at every small step of the work, such as a file that was removed."""

    def __init__(self) -> None:
        self._alone = threading.Lock()
        self._stopping = threading.Event()
        self._deadline: float | None = None
        self._steps = 0

    def __call__(self) -> None:
        self._steps += 1
        if self._steps % _STEPS == 0:
            self.rest()

    def rest(self) -> None:
        """Let others have their turn; TimeUpError if there is no time left."""
        late = self._deadline is not None and time.monotonic() > self._deadline
        if self._stopping.wait(_REST_SECONDS) or late:
            raise TimeUpError

    @contextmanager
    def within(self, seconds: float | None) -> Iterator[None]:
        """Work alone, for so long at most; None: as long as it takes."""
        deadline = None if seconds is None else time.monotonic() + seconds
        if not self._alone.acquire(timeout=-1 if seconds is None else seconds):
            raise TimeUpError
        try:
            if self._stopping.is_set():
                raise TimeUpError
            self._deadline = deadline
            yield
        finally:
            self._alone.release()

    def stop(self) -> None:
        """End what is being done, and wait until it has ended."""
        self._stopping.set()
        with self._alone:
            pass
