"""Files by numbers, as HDFS numbers them: who was told the number of a file may read that very version by it, or none.

A number is made of the path, the size and the time of a file, so that it need not be kept. What it means is remembered
for some files of each user, those asked for last; what a number was first read as is what it stays.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from paddlecloud.files.base import StoredFile
from paddlecloud.model.attributes import version_of
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.transfers import FileEntry

_BITS = 53  # what a client in JavaScript reads exactly
_MOST = 4096  # of one user


@dataclass(slots=True)
class _Known:
    path: str
    etag: str | None = None


def number_of(entry: FileEntry) -> int:
    """0 is nobody's."""
    told = f"{entry.path}\n{version_of(entry)}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(told, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - _BITS) or 1


class Inodes:
    def __init__(self, *, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: dict[str, dict[int, _Known]] = {}

    def note(self, user: str, entry: FileEntry) -> None:
        """The user was told the number of this file."""
        number = number_of(entry)
        with self._lock:
            known = self._known.setdefault(user, {})
            known[number] = known.pop(number, _Known(entry.path))
            if len(known) > self._most:
                del known[next(iter(known))]

    def path(self, user: str, number: int) -> str:
        return self._find(user, number).path

    def open(self, user: str, number: int, opening: Callable[[str], StoredFile]) -> StoredFile:
        """The file that has this number, by what opens a path; NotFoundError if another has its place by now."""
        known = self._find(user, number)
        opened = opening(known.path)
        with self._lock:
            same = number_of(_at(opened, known.path)) == number and known.etag in (None, opened.etag)
            if same:
                known.etag = opened.etag
        if not same:
            opened.close()
            raise _gone(number)
        return opened

    def _find(self, user: str, number: int) -> _Known:
        with self._lock:
            known = self._known.get(user, {}).get(number)
        if known is None:
            raise _gone(number)
        return known


def _at(opened: StoredFile, path: str) -> FileEntry:
    """What was opened, as the PFS names it; a store has another name for it."""
    entry = opened.entry
    return FileEntry(path=path, size=entry.size, modified_at=entry.modified_at, kind=entry.kind)


def _gone(number: int) -> NotFoundError:
    return NotFoundError(f"File does not exist: /.reserved/.inodes/{number}", field="path")
