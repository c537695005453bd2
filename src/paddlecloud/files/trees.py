"""Uploaded folders as wholes: which there are, who holds one just now, and how one that nobody needs goes.

A folder that a submit has found is not taken away before the submit is recorded; one that is taken away is gone at
once, under its name, so that whoever comes later sends it again.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from paddlecloud.files.counting import Counter
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.tree import is_digest
from paddlecloud.runtime.removal import Pause, remove

_GONE = ".gone-"  # begins the name of a folder that is being removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """An uploaded folder, and when it was last sent or asked for."""

    user: str
    id: str
    asked_at: datetime


class Trees:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._held: Tally[tuple[str, str]] = Tally()

    def folder(self, user: str) -> str:
        """Where a user's trees are."""
        return str(self._root / user / "trees")

    @contextmanager
    def held(self, user: str, tree_id: str) -> Iterator[Path]:
        """A tree that is not taken away meanwhile; NotFoundError if there is none."""
        path = f"{self.folder(user)}/{tree_id}"
        with self._lock:
            if not is_digest(tree_id) or not os.path.isdir(path):
                raise NotFoundError(f"there is no uploaded folder {tree_id!r}; upload it first", field="tree")
            self._held[user, tree_id] += 1
        try:
            yield Path(path)
        finally:
            with self._lock:
                self._held[user, tree_id] -= 1
                if not self._held[user, tree_id]:
                    del self._held[user, tree_id]

    def users(self) -> list[str]:
        with suppress(FileNotFoundError), os.scandir(self._root) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        return []

    def of(self, user: str) -> list[Tree]:
        """A user's trees."""
        with suppress(FileNotFoundError), os.scandir(self.folder(user)) as entries:
            return [
                Tree(user=user, id=entry.name, asked_at=_asked_at(entry.stat(follow_symlinks=False)))
                for entry in entries
                if is_digest(entry.name)
            ]
        return []

    def counter(self, user: str, pause: Pause) -> Counter:
        return Counter(self.folder(user), pause)

    def remove(self, tree: Tree, pause: Pause, *, needed: Callable[[Tree], bool]) -> bool:
        """Remove a tree, unless it is held, or `needed` as it is now; the bytes that no other tree has go later."""
        folder = self.folder(tree.user)
        leaving = f"{_GONE}{secrets.token_hex(8)}"
        # Asked under the lock: a submit that finds the tree is recorded before we ask, or finds it gone.
        with self._lock:
            if self._held[tree.user, tree.id]:
                return False
            try:
                found = os.stat(f"{folder}/{tree.id}", follow_symlinks=False)
            except FileNotFoundError:
                return True
            if needed(Tree(user=tree.user, id=tree.id, asked_at=_asked_at(found))):
                return False
            os.rename(f"{folder}/{tree.id}", f"{folder}/{leaving}")
        remove(folder, leaving, pause)
        return True

    def finish(self, pause: Pause) -> None:
        """Remove what was being removed when the server died."""
        for user in self.users():
            with suppress(FileNotFoundError):
                for name in os.listdir(self.folder(user)):
                    if name.startswith(_GONE):
                        remove(self.folder(user), name, pause)


def touched(path: str) -> bool:
    """Whether a tree is there; asking for it keeps it for a while."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _asked_at(found: os.stat_result) -> datetime:
    return datetime.fromtimestamp(found.st_mtime, UTC)
