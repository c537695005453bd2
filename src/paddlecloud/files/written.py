"""Records which byte ranges of a file were written, in a separate file with one `start end` per line."""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.files import disk
from paddlecloud.model.errors import TooLargeError

_COMPACT_LINES = 256
_MAX_RANGES = 10_000  # that do not touch


def add(path: str, start: int, end: int) -> list[tuple[int, int]]:
    """Record a written range and return all ranges; compact the list once it is long."""
    with disk.room_for("this file"):
        _append(path, b"%d %d\n" % (start, end))
        lines = _lines(path)
        found = merged(lines)
        if len(found) > _MAX_RANGES:
            raise TooLargeError(
                f"this file was sent in more than {_MAX_RANGES} separate pieces: send it again from the start"
            )
        if len(lines) >= _COMPACT_LINES and len(found) <= len(lines) // 2:
            Path(f"{path}.new").write_bytes(b"".join(b"%d %d\n" % one for one in found))
            os.rename(f"{path}.new", path)
    return found


def read(path: str) -> list[tuple[int, int]]:
    """All written bytes in as few ranges as possible."""
    return merged(_lines(path))


def _lines(path: str) -> list[tuple[int, int]]:
    """The ranges in the order they were written. A line cut by a full disk is ignored, so its piece is sent again."""
    try:
        text = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    pairs = [line.split() for line in text.split(b"\n")[:-1]]
    return [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2 and all(map(bytes.isdigit, pair))]


def merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes in as few ranges as possible, sorted."""
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
