"""Sizes, times and counts as people write them: "1Gi", "10GB", "00:30:00", "2h", "5 trainers"."""

from __future__ import annotations

import re
from collections.abc import Mapping

from paddlecloud.model.errors import InvalidError

_CLOCK = re.compile(r"(\d{1,4}):(\d{2}):(\d{2})")
_SPANS = re.compile(r"(?:(\d{1,12})d)?(?:(\d{1,12})h)?(?:(\d{1,12})m)?(?:(\d{1,12})s)?")
_SECONDS = re.compile(r"\d{1,15}", re.ASCII)
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([kmgtp]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def parse_duration(text: str, field: str = "time", *, needs_unit: bool = False) -> int:
    """Seconds in "hh:mm:ss", "2h", "1h30m", "90s" or, unless it `needs_unit`, a plain number of seconds."""
    text = text.strip()
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = map(int, clock.groups())
        if minutes < 60 and seconds < 60:
            return hours * 3600 + minutes * 60 + seconds
    elif _SECONDS.fullmatch(text):
        if needs_unit:
            raise InvalidError(f"{field} {text} has no unit: write {text}s, {text}m or 00:30:00", field=field)
        return int(text)
    elif text and (spans := _SPANS.fullmatch(text)):
        days, hours, minutes, seconds = (int(part or 0) for part in spans.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds
    raise InvalidError(f"{field} {text[:80]!r} is not a time: write hh:mm:ss (00:30:00) or 30m, 2h, 1d", field=field)


def format_duration(seconds: float) -> str:
    """hh:mm:ss, as seed 002 writes it."""
    whole = max(0, round(seconds))
    return f"{whole // 3600:02}:{whole % 3600 // 60:02}:{whole % 60:02}"


def describe_duration(seconds: float) -> str:
    """A length of time in a sentence: "45 s", "12 min", "3 h", "2 days"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    if seconds < 36 * 3600:
        return f"{round(seconds / 3600)} h"
    return f"{round(seconds / 86400)} days"


def parse_size(text: str, field: str = "size") -> int:
    """Bytes in "512", "1Gi", "1GiB", "10GB", "1.5g"; without an i the unit is a power of 1000."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise InvalidError(f"{field} {text[:80]!r} is not a size: write 512Mi, 1Gi or 10GB", field=field)
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** _POWERS[unit.lower()])


def describe_counts(counts: Mapping[str, int]) -> str:
    """How many of what, in a sentence: "5 pservers and 1 trainer"."""
    words = [f"{count} {name}" if count == 1 else f"{count} {name}s" for name, count in counts.items()]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def format_size(count: float) -> str:
    """ "1.0 GiB": one decimal, binary units."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
