"""How things look: tables in kubectl's manner, JSON and YAML, states in colour, times as people read them.

Piped output is never coloured or cut; on a narrow terminal columns are dropped rather than heads wrapped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, NamedTuple, TextIO, TypeVar

from paddlecloud.cli import shell
from paddlecloud.cli.printable import is_unsafe, printable, printable_json
from paddlecloud.model.state import JobState

T = TypeVar("T")

_GAP = "  "
_RESET = "\x1b[0m"
_STATE_COLOURS = {
    JobState.SUCCESS: "32",
    JobState.FAILED: "31",
    JobState.TIMEOUT: "31",
    JobState.SCHEDULE_TIMEOUT: "31",
    JobState.KILLED: "35",
    JobState.KILLING: "35",
    JobState.RUNNING: "36",
    JobState.QUEUE: "33",
}
_TASK_COLOURS = ("36", "33", "32", "35", "34", "96", "93", "92", "95", "94")


class Column(NamedTuple, Generic[T]):
    """`drop`: the higher, the sooner it goes on a narrow screen (0 stays). `wide`: only with -o wide.

    `short` is tried on a narrow screen before a column goes; the last column is cut to no less than `least`.
    """

    head: str
    value: Callable[[T], str]
    drop: int = 0
    wide: bool = False
    colour: Callable[[T], str] | None = None
    short: Callable[[T], str] | None = None
    least: int = 12


def many(
    rows: Sequence[T],
    columns: Sequence[Column[T]],
    output: str,
    name: Callable[[T], str],
    none: str = "",
    *,
    headed: bool = True,
) -> None:
    """Print records in the format asked for; where a table would be empty, `none` is said."""
    if output == "name":
        for row in rows:
            shell.say(printable(name(row)))
    elif output in ("json", "yaml"):
        _plain(list(rows), output)
    elif rows:
        shown = [column for column in columns if output == "wide" or not column.wide]
        width, coloured = shell.width(sys.stdout), shell.has_colour(sys.stdout)
        made = table(rows, shown, width=width, coloured=coloured, headed=headed)
        shell.say(*made.split("\n"))
    elif none:
        shell.talk(none)


def one(record: T, output: str, name: str, text: Callable[[T], str]) -> None:
    """Print one record in the format asked for; `text` is how a person reads it, with all names in it printable."""
    if output == "name":
        shell.say(printable(name))
    elif output in ("json", "yaml"):
        _plain(record, output)
    else:
        shell.say(*text(record).split("\n"))


def table(
    rows: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    width: int | None = None,
    coloured: bool = False,
    headed: bool = True,
) -> str:
    cells, widths = _cells(rows, columns)
    if width is not None and _least_width(columns, widths) > width:
        columns = [column if column.short is None else column._replace(value=column.short) for column in columns]
        cells, widths = _cells(rows, columns)
    kept = _that_fit(columns, widths, width)
    lines = [_line([(column.head, widths[column.head]) for column in kept], width)] if headed else []
    for number, row in enumerate(rows):
        texts = [(cells[column.head][number], widths[column.head]) for column in kept]
        colours = [column.colour(row) if coloured and column.colour else "" for column in kept]
        lines.append(_line(texts, width, colours))
    return "\n".join(lines)


def columns_of(text: str) -> int:
    """How many columns of a terminal a text takes: Chinese characters take two, marks on another character none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of_one(character) for character in text)


def counted(number: float, thing: str) -> str:
    """`1 CPU`, `2 CPUs`."""
    return f"{number:g} {thing}{'' if number == 1 else 's'}"


def fields(pairs: Sequence[tuple[str, str]], *, colours: Mapping[str, str] | None = None) -> str:
    """Names and values, aligned; what is empty is left out. Further lines of a value stand below its first."""
    longest = max(len(name) for name, _ in pairs)
    below = "\n" + " " * (longest + len(_GAP))
    lines = []
    for name, value in pairs:
        shown = below.join(map(printable, value.split("\n")))
        colour = (colours or {}).get(name, "")
        if value:
            lines.append(f"{name:<{longest}}{_GAP}{paint(shown, colour) if colour else shown}")
    return "\n".join(lines)


def state_colour(state: JobState) -> str:
    return _STATE_COLOURS.get(state, "")


def state_text(state: JobState, stream: TextIO) -> str:
    colour = state_colour(state)
    return paint(state.label, colour) if colour and shell.has_colour(stream) else state.label


def task_colour(number: int) -> str:
    return _TASK_COLOURS[number % len(_TASK_COLOURS)]


def paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}{_RESET}"


def local_time(at: datetime | None) -> str:
    """Seed 002's form, in the time zone of this machine."""
    return "" if at is None else at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def utc_time(at: datetime) -> str:
    """Seed 000's form in lists of files."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def short_time(seconds: float) -> str:
    """kubectl's ages: 45s, 12m, 3h, 2d."""
    seconds = max(0, int(seconds))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 120 * 60:
        return f"{seconds // 60}m"
    if seconds < 48 * 3600:
        return f"{seconds // 3600}h"
    return f"{seconds // 86400}d"


def _plain(value: object, output: str) -> None:
    from paddlecloud.model import wire

    plain: Any = wire.builtins(value)
    if output == "json":
        import json

        text = printable_json(json.dumps(plain, indent=2, ensure_ascii=not shell.is_unicode(sys.stdout)))
    else:
        text = _yaml(plain)
    shell.say(*text.split("\n"))


def _yaml(plain: object) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        """Quotes what is unsafe, so that it can be escaped: of that PyYAML would leave some as it is."""

        def represent_text(self, text: str) -> yaml.ScalarNode:
            return self.represent_scalar("tag:yaml.org,2002:str", text, style='"' if is_unsafe(text) else None)

    Dumper.add_representer(str, Dumper.represent_text)
    unicode = shell.is_unicode(sys.stdout)
    made: str = yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=unicode, width=sys.maxsize)
    return printable_json(made).removesuffix("\n")


def _cells(rows: Sequence[T], columns: Sequence[Column[T]]) -> tuple[dict[str, list[str]], dict[str, int]]:
    """The texts of each column, and how wide the widest of them is, its head included."""
    cells = {column.head: [printable(column.value(row)) for row in rows] for column in columns}
    return cells, {head: max(columns_of(text) for text in (head, *texts)) for head, texts in cells.items()}


def _that_fit(columns: Sequence[Column[T]], widths: dict[str, int], width: int | None) -> list[Column[T]]:
    kept = list(columns)
    while width is not None and _least_width(kept, widths) > width:
        droppable = [column for column in kept if column.drop]
        if not droppable:
            break
        kept.remove(max(droppable, key=lambda column: column.drop))
    return kept


def _least_width(columns: Sequence[Column[T]], widths: dict[str, int]) -> int:
    # The last column may be cut, down to its head or a few words.
    *others, last = columns
    least = min(widths[last.head], max(len(last.head), last.least))
    return sum(widths[column.head] + len(_GAP) for column in others) + least


def _line(texts: Sequence[tuple[str, int]], width: int | None, colours: Sequence[str] = ()) -> str:
    """One line of a table, cut where the screen ends: a line that wraps can no longer be read as columns."""
    parts: list[str] = []
    room = width
    for number, (text, wide) in enumerate(texts):
        if room is not None and room <= 0:
            break
        shown = cut(text, room)
        blank = (wide if room is None else min(wide, room)) - columns_of(shown)
        padded = shown if number == len(texts) - 1 else shown + " " * blank
        parts.append(paint(padded, colours[number]) if colours and colours[number] else padded)
        room = None if room is None else room - wide - len(_GAP)
    return _GAP.join(parts).rstrip()


def cut(text: str, room: int | None) -> str:
    """A text in at most `room` columns; None: as it is."""
    if room is None or columns_of(text) <= room:
        return text
    kept, taken = "", 0
    for character in text:
        taken += _columns_of_one(character)
        if taken > room - 1:
            break
        kept += character
    return f"{kept}…"


def _columns_of_one(character: str) -> int:
    import unicodedata

    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
