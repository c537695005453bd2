"""Gives files to the account that a task runs as. Folders hold what job code made, so no link is ever followed.

Invariant: a folder gets its mark, its own owner and mode, after all that is in it: a walk that was interrupted is done
again, and one that was finished is not.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNOPENED = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DEEPEST = 200  # deeper folders of job code stay as they are
_AS_IT_IS = -1


class Claim(NamedTuple):
    """What every file of a folder has to have: an owner, a group, bits of its mode. -1: whatever it has."""

    uid: int = _AS_IT_IS
    gid: int = _AS_IT_IS
    bits: int = 0
    folder_bits: int = 0

    def holds(self, found: os.stat_result) -> bool:
        return self._owned(found) and found.st_mode & self._wanted(found) == self._wanted(found)

    def make(self, name: str, folder: int, found: os.stat_result) -> None:
        """Make it hold for a name in an open folder, which `found` was found at."""
        if self.holds(found):
            return
        opened = os.open(name, _UNOPENED, dir_fd=folder)
        try:
            here, now = f"/proc/self/fd/{opened}", os.fstat(opened)
            if not self._owned(now) and not self._is_linked_elsewhere(now):
                os.chown(here, self.uid, self.gid)
                now = os.fstat(opened)  # without setuid bits
            if now.st_mode & self._wanted(now) != self._wanted(now):
                os.chmod(here, stat.S_IMODE(now.st_mode) | self._wanted(now))
        finally:
            os.close(opened)

    def _owned(self, found: os.stat_result) -> bool:
        return self.uid in (_AS_IT_IS, found.st_uid) and self.gid in (_AS_IT_IS, found.st_gid)

    def _is_linked_elsewhere(self, found: os.stat_result) -> bool:
        """Whether another account's file has other names too: in a shared folder, where it must stay that account's."""
        anothers = self.uid not in (_AS_IT_IS, found.st_uid) and found.st_uid != os.geteuid()
        return anothers and stat.S_ISREG(found.st_mode) and found.st_nlink > 1

    def _wanted(self, found: os.stat_result) -> int:
        if stat.S_ISDIR(found.st_mode):
            return self.folder_bits
        # A program stays one for all who may read it.
        return (
            self.bits | (self.bits >> 2 & 0o111 if found.st_mode & 0o111 else 0) if stat.S_ISREG(found.st_mode) else 0
        )


def owned(uid: int) -> Claim:
    """Everything belongs to the account, whatever its mode."""
    return Claim(uid, uid)


def lent(uid: int | None) -> Claim:
    """The account may change everything: what it changes is its own copy, in an overlay."""
    return Claim(bits=0o200, folder_bits=0o700) if uid is None else Claim(uid, uid, 0o200, 0o700)


def shared(gid: int) -> Claim:
    """All members of the group may change everything, and what they make is the group's too."""
    return Claim(gid=gid, bits=0o660, folder_bits=0o2770)


PUBLIC = Claim(bits=0o444, folder_bits=0o555)


def claim(folder: str, wanted: Claim) -> None:
    """Make a claim hold for a folder of the server's and all that is in it, unless it did at the end of an earlier
    walk."""
    if not wanted.holds(os.lstat(folder)):
        _walk_and_mark(folder, wanted)


def claim_all(folder: str, wanted: Claim) -> None:
    """Make a claim hold for a folder of the server's and all that is in it, whatever an earlier walk did."""
    _walk_and_mark(folder, wanted)


def claim_new(folder: str, wanted: Claim) -> None:
    """The same, also for what has come to the top of the folder since: files that an operator copied there."""
    claim(folder, wanted)
    with suppress(FileNotFoundError):
        opened = os.open(folder, _FOLDER)
        try:
            with os.scandir(opened) as entries:
                new = [entry.name for entry in entries if not wanted.holds(entry.stat(follow_symlinks=False))]
            for name in new:
                _claim_one(opened, name, wanted, 0)
        finally:
            os.close(opened)


def _walk_and_mark(folder: str, wanted: Claim) -> None:
    above = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _claim_one(above, os.path.basename(folder), wanted, 0)
    finally:
        os.close(above)


def _claim_one(folder: int, name: str, wanted: Claim, level: int) -> None:
    with suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode) and level < _DEEPEST:
            with suppress(NotADirectoryError):
                _claim_inside(folder, name, wanted, level + 1)
        wanted.make(name, folder, found)


def _claim_inside(folder: int, name: str, wanted: Claim, level: int) -> None:
    inner = os.open(name, _FOLDER, dir_fd=folder)
    try:
        for inside in os.listdir(inner):
            _claim_one(inner, inside, wanted, level)
    finally:
        os.close(inner)


def reclaim(folder: str, wanted: Claim, since: float) -> None:
    """Make a claim hold for what was made in a shared folder since a time: by a program that set a mode of its own."""
    with suppress(OSError):
        opened = os.open(folder, _FOLDER)
        try:
            _reclaim(opened, wanted, since, 0)
        finally:
            os.close(opened)


def _reclaim(folder: int, wanted: Claim, since: float, level: int) -> None:
    changed = os.fstat(folder).st_mtime >= since
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if is_folder and level < _DEEPEST:
            with suppress(OSError):
                inner = os.open(name, _FOLDER, dir_fd=folder)
                try:
                    _reclaim(inner, wanted, since, level + 1)
                finally:
                    os.close(inner)
        if changed:
            with suppress(OSError):
                wanted.make(name, folder, os.stat(name, dir_fd=folder, follow_symlinks=False))
