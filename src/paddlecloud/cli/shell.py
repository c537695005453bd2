"""What the command takes from where it was typed, and the one way out to it: variables, the time, stdout and stderr.

Invariant: nothing but the log of a job reaches the terminal unescaped. `say` and `talk` take lines, so a line break
inside one is somebody else's, and is escaped too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import TextIO

from paddlecloud.cli.printable import printable_line


def variables() -> Mapping[str, str]:
    """The one place of the command that reads the environment."""
    return os.environ


def now() -> datetime:
    """The one clock of the command, for ages and times of day."""
    return datetime.now(UTC)


def is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def has_colour(stream: TextIO) -> bool:
    """Whether to colour: on a terminal that can, unless NO_COLOR (no-color.org) is set."""
    shell = variables()
    return is_terminal(stream) and not shell.get("NO_COLOR") and shell.get("TERM") != "dumb"


def is_unicode(stream: TextIO) -> bool:
    """Whether every character can be written to it, in one encoding of Unicode or another."""
    return (stream.encoding or "").lower().startswith("utf")


def replace_unencodable() -> None:
    """From now on a character that stdout cannot encode is written as `?`, in logs of jobs too."""
    if isinstance(sys.stdout, TextIOWrapper) and not (is_unicode(sys.stdout) and sys.stdout.errors != "strict"):
        sys.stdout.reconfigure(errors="replace")


def width(stream: TextIO) -> int | None:
    """Columns of the terminal; None where output goes elsewhere and nothing is to be cut."""
    if not is_terminal(stream):
        return None
    import shutil

    return shutil.get_terminal_size().columns


def say(*lines: str, flush: bool = False) -> None:
    """Write lines of data to stdout. Colours count on a terminal alone."""
    coloured = has_colour(sys.stdout)
    for line in lines:
        print(printable_line(line, coloured=coloured))
    if flush:
        sys.stdout.flush()


def talk(*lines: str) -> None:
    """Say something to the person; never mixed with data, which goes to stdout."""
    sys.stdout.flush()
    for line in lines:
        print(printable_line(line), file=sys.stderr)
    sys.stderr.flush()
