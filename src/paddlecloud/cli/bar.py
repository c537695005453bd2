"""The progress bar of rich, which is an extra of the client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from paddlecloud.model.units import format_size


@contextmanager
def bar(what: str) -> Iterator[Bar]:
    with Progress(*columns(what), console=Console(stderr=True)) as shown:
        yield Bar(shown, what)


def columns(what: str) -> tuple[ProgressColumn, ...]:
    return TextColumn(what), BarColumn(), _Amount(), _Speed(), TimeRemainingColumn()


class Bar:
    def __init__(self, shown: Progress, what: str) -> None:
        self._shown = shown
        self._task = shown.add_task(what, total=None, visible=False)
        self._total = 0

    def total(self, size: int) -> None:
        self._total += size
        self._shown.update(self._task, total=self._total, visible=self._total > 0)

    def advance(self, size: int) -> None:
        self._shown.advance(self._task, size)


class _Amount(ProgressColumn):
    """In our units; rich counts amounts in MiB beside a speed in MB."""

    def render(self, task: Task) -> Text:
        return Text(f"{format_size(task.completed)} of {format_size(task.total or 0)}")


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{format_size(speed)}/s")
