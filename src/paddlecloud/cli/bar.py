"""The progress bar of rich, which is an extra of the client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


@contextmanager
def bar(what: str) -> Iterator[Bar]:
    columns = (TextColumn(what), BarColumn(), DownloadColumn(True), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        yield Bar(shown, what)


class Bar:
    def __init__(self, shown: Progress, what: str) -> None:
        self._shown = shown
        self._task = shown.add_task(what, total=None, visible=False)
        self._total = 0

    def total(self, size: int) -> None:
        self._total += size
        self._shown.update(self._task, total=self._total, visible=True)

    def advance(self, size: int) -> None:
        self._shown.advance(self._task, size)
