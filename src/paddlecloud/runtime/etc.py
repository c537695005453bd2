"""Caches the small /etc of tasks as folders, so that a task's root needs one mount instead of one file after another.

Invariant: a folder in use is never removed. The process that makes a folder holds a lock on it, and so do its forks,
among them the supervisor of each task that uses the folder.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import Any, Mapping, Sequence

from paddlecloud.runtime import removal, smallfiles
from paddlecloud.runtime.machine import Entry

_PREFIX = ".etc-"
_HELD = 64  # folders kept locked for the next task; one folder serves all tasks of a user


class EtcFolders:
    """The /etc folders that one process has made, by their content."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._made = 0
        self._held: dict[Any, tuple[str, int]] = {}  # path and lock; the most recently used is last
        for name in os.listdir(root):
            if name.startswith(_PREFIX):
                _remove_unused(f"{root}/{name}")

    def folder(self, files: Mapping[str, bytes], entries: Sequence[Entry]) -> str:
        """Returns a folder with these files and links, and with a mount point for each other entry."""
        wanted = (tuple(files.items()), tuple(entries))
        held = self._held.pop(wanted, None) or self._make(files, entries)
        self._held[wanted] = held
        if len(self._held) > _HELD:
            os.close(self._held.pop(next(iter(self._held)))[1])
        return held[0]

    def _make(self, files: Mapping[str, bytes], entries: Sequence[Entry]) -> tuple[str, int]:
        self._made += 1
        path = f"{self._root}/{_PREFIX}{os.getpid()}-{self._made}"
        os.mkdir(path, 0o755)
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(lock, fcntl.LOCK_SH)
        for name, content in files.items():
            _make_file(f"{path}/{name}", content)
        for entry in entries:
            place = path + entry.path[len("/etc") :]
            if entry.leads_to:
                os.makedirs(os.path.dirname(place), 0o755, exist_ok=True)
                os.symlink(entry.leads_to, place)
            elif entry.is_folder:
                os.makedirs(place, 0o755, exist_ok=True)
            else:
                _make_file(place, b"")
        return path, lock


def _make_file(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
    smallfiles.write_new(path, content, 0o644)


def _remove_unused(path: str) -> None:
    with suppress(OSError):  # a task still uses it, or another process is removing it
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            removal.remove(os.path.dirname(path), os.path.basename(path))
        finally:
            os.close(lock)
