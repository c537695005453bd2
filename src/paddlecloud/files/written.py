"""What of a file was written so far: a list of ranges, in a file of its own, one `start end` a line."""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.files import disk
from paddlecloud.model.errors import TooLargeError

_LONG = 256  # lines
_MOST = 10_000  # ranges that do not touch


def add(path: str, start: int, end: int) -> list[tuple[int, int]]:
    """Note that a range was written; a list that has grown long is written anew, with few lines."""
    with disk.room_for("this file"):
        _append(path, b"%d %d\n" % (start, end))
        lines = _lines(path)
        found = merged(lines)
        if len(found) > _MOST:
            raise TooLargeError("this file came in too many pieces that do not touch: send it from its beginning")
        if len(lines) >= _LONG and len(found) <= len(lines) // 2:
            Path(f"{path}.new").write_bytes(b"".join(b"%d %d\n" % one for one in found))
            os.rename(f"{path}.new", path)
    return found


def read(path: str) -> list[tuple[int, int]]:
    """What was written, in as few ranges as possible."""
    return merged(_lines(path))


def _lines(path: str) -> list[tuple[int, int]]:
    """Range by range, as they came. A line that a full disk cut tells nothing, so its piece is asked for again."""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    pairs = [line.split() for line in text.split(b"\n")[:-1]]
    return [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2 and all(map(bytes.isdigit, pair))]


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in as few ranges as possible, in order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def covers(ranges: list[tuple[int, int]], start: int, end: int) -> bool:
    return start >= end or any(first <= start and end <= last for first, last in ranges)


def _append(path: str, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
