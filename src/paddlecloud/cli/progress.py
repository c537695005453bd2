"""Progress of long work: a bar on a terminal, with rich where it is installed; else a plain line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from paddlecloud.cli import shell
from paddlecloud.model.units import format_size

if TYPE_CHECKING:
    from paddlecloud.sdk.transfer import Progress

_QUIET_SECONDS = 5.0


@contextmanager
def progress(what: str, *, again: str | None = "the same again") -> Iterator[Progress]:
    """Shows how much of `what` is done, while it is being done; nothing is shown of what takes no time.

    Who breaks it off is told to type `again`: what was done so far is kept, unless it is None.
    """
    try:
        with _shown(what) as shown:
            yield shown
    except KeyboardInterrupt:
        if again is not None:
            shell.talk("", f"{what} was stopped: type {again} and it goes on where it stopped")
        raise


@contextmanager
def _shown(what: str) -> Iterator[Progress]:
    if shell.is_terminal(sys.stderr):
        try:
            from paddlecloud.cli.bar import bar
        except ImportError:
            pass
        else:
            with bar(what) as shown:
                yield shown
            return
    lines = _PlainLines(what)
    yield lines
    lines.end()


class _PlainLines:
    """A line each few seconds, for logs and terminals without rich."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._total = 0
        self._done = 0
        self._began = self._told = time.monotonic()

    def total(self, size: int) -> None:
        self._total += size

    def advance(self, size: int) -> None:
        self._done += size
        if time.monotonic() - self._told >= _QUIET_SECONDS:
            self._told = time.monotonic()
            shell.talk(f"{self._what}: {format_size(self._done)} of {format_size(self._total)}")

    def end(self) -> None:
        if self._done:
            seconds = max(time.monotonic() - self._began, 0.001)
            shell.talk(f"{self._what}: {format_size(self._done)} in {seconds:.1f} s")
