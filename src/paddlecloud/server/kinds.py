"""What a setting may be: each kind reads a value as TOML gives it, or says in words what it must be."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from paddlecloud.backends.slurmscript import check_option
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.units import parse_duration, parse_size

T = TypeVar("T")

_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_PASSWORD_OF_USER = re.compile(r"(://[^:@/?]*):.*@")
_PASSWORD_AS_OPTION = re.compile(r"([?&](?:ssl)?password=)[^&]*")


class WrongError(Exception):
    """A value that a setting cannot take; the message says what it takes."""


class Table(dict[str, str]):
    """Texts by name. Nobody changes one, so it may be what a setting is where none is given."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def setting(default: T, parse: Callable[[object], object], help: str) -> T:
    """One line of settings.py. A field of a dataclass, typed as the value that it holds."""
    made: T = field(default=default, metadata={"parse": parse, "help": help})
    return made


def text(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise WrongError("a text")
    return value


def database(value: object) -> str:
    url = text(value)
    if url and not url.startswith(("postgresql://", "postgres://")):
        raise WrongError("a URL such as postgresql://user@host:port/name, or empty for SQLite in the data folder")
    return url


def without_password(value: str) -> str:
    """A URL, or any other text, as it may be shown."""
    return _PASSWORD_AS_OPTION.sub(r"\1…", _PASSWORD_OF_USER.sub(r"\1:…@", value))


def id_range(value: object) -> range:
    first, _, last = text(value).partition("-")
    if not (first.isdigit() and last.isdigit() and 1000 <= int(first) < int(last) < 2**31 - 1):
        raise WrongError('two numbers above 1000, such as "1900000000-1900065535"')
    return range(int(first), int(last) + 1)


def visible(value: object) -> tuple[str, ...]:
    found = value if isinstance(value, list) else [value]
    for one in found:
        path = one.removesuffix(":rw") if isinstance(one, str) else ""
        if not path.startswith("/") or os.path.normpath(path) != path or "\0" in path or path == "/":
            raise WrongError('a list of full paths, such as ["/data", "/scratch:rw"], and not "/"')
    return tuple(found)


def choice(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in choices:
            raise WrongError("one of " + ", ".join(choices))
        return str(value)

    return parse


def whole(least: int, most: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise WrongError(f"a whole number from {least} to {most}")
        return value

    return parse


def yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise WrongError("true or false")
    return value


def cpus(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1_000_000:
        raise WrongError("a number of CPUs above 0")
    return float(value)


def size(value: object) -> int:
    try:
        found = parse_size(value) if isinstance(value, str) else whole(1, 2**60)(value)
    except (InvalidError, WrongError):
        found = 0
    if found <= 0:
        raise WrongError('a size such as "512Mi", "10GB" or a number of bytes')
    return found


def duration(least: int) -> Callable[[object], timedelta]:
    def parse(value: object) -> timedelta:
        try:
            seconds = parse_duration(value) if isinstance(value, str) else whole(0, 2**31)(value)
        except (InvalidError, WrongError):
            seconds = -1
        if not least <= seconds <= 2**31:
            raise WrongError(f'a time such as "00:30:00", "2h" or a number of seconds, at least {least} s')
        return timedelta(seconds=seconds)

    return parse


def program(value: object) -> str:
    path = text(value)
    if path and not (Path(path).is_absolute() and os.access(path, os.X_OK)):
        raise WrongError("the full path of a program that is there")
    return path


def folder(value: object) -> Path:
    return Path(text(value)).expanduser()


def names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise WrongError("a list of names")
    return tuple(value)


def table(value: object) -> Table:
    if not isinstance(value, dict) or not all(isinstance(one, str | int) for one in value.values()):
        raise WrongError('a table of texts, such as {partition = "batch"}')
    return Table({name: ("true" if one is True else str(one)) for name, one in value.items()})


def sbatch(value: object) -> Table:
    found = table(value)
    for name, text in found.items():
        if why := check_option(name, text):
            raise WrongError(f"options of sbatch: {why}")
    return found


def option_names(value: object) -> tuple[str, ...]:
    found = names(value)
    for name in found:
        if why := check_option(name, ""):
            raise WrongError(f"names of options of sbatch: {why}")
    return found


def accounts(value: object) -> Table:
    found = table(value)
    for account in found.values():
        if not _ACCOUNT.fullmatch(account) or account == "root":
            raise WrongError(f'a table of names of Unix accounts, such as {{alice = "a123"}}, and {account!r} is none')
    return found


def timezone(value: object) -> str:
    try:
        return ZoneInfo(text(value)).key
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise WrongError('a time zone such as "UTC" or "Asia/Shanghai"') from None
