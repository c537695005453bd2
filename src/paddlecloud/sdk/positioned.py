"""Reads and writes at a place of an open file, for threads that share it; also on Windows, which has no pread."""

from __future__ import annotations

import os
import threading

_HAS_PREAD = hasattr(os, "pread")
_moving = threading.Lock()


def read_at(descriptor: int, count: int, offset: int) -> bytes:
    if _HAS_PREAD:
        return os.pread(descriptor, count, offset)
    with _moving:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.read(descriptor, count)


def write_at(descriptor: int, content: memoryview, offset: int) -> int:
    """How many bytes were written."""
    if _HAS_PREAD:
        return os.pwrite(descriptor, content, offset)
    with _moving:
        os.lseek(descriptor, offset, os.SEEK_SET)
        return os.write(descriptor, content)
