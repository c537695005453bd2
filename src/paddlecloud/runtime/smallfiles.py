"""Small files by bare system calls: a supervisor is a fork, in which every object that is touched costs the copy of a
page, and the layers below `open` touch a hundred of them.
"""

from __future__ import annotations

import os

_MOST_BYTES = 1 << 20


def read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_all(fd)
    finally:
        os.close(fd)


def read_all(fd: int) -> bytes:
    """All that is left in an open file or pipe."""
    content = b""
    while piece := os.read(fd, _MOST_BYTES):
        content += piece
    return content


def write(path: str, content: bytes) -> None:
    """Write into a file that is there, such as the kernel's."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        write_all(fd, content)
    finally:
        os.close(fd)


def write_new(path: str, content: bytes, mode: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        write_all(fd, content)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(fd, content[written:])
