"""Lists, holds and removes uploaded folders (trees).

Invariant: a tree that a submit has found is not removed before the submit is recorded. Removal first renames the tree,
so that a later submit uploads it again.
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

_REMOVING = ".gone-"  # prefix of a folder that is being removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """An uploaded folder, and when it was last uploaded or requested."""

    user: str
    id: str
    asked_at: datetime


class Trees:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._held: Tally[tuple[str, str]] = Tally()

    def folder(self, user: str) -> str:
        """The folder of a user's trees."""
        return str(self._root / user / "trees")

    @contextmanager
    def held(self, user: str, tree_id: str) -> Iterator[Path]:
        """Keep a tree from being removed meanwhile; NotFoundError if it does not exist."""
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
        """Remove a tree unless it is held or still `needed`; objects that no other tree uses are removed later."""
        folder = self.folder(tree.user)
        leaving = f"{_REMOVING}{secrets.token_hex(8)}"
        # Check under the lock: a submit that found the tree is recorded by now, or else it finds the tree gone.
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
        """Finish removals that a server crash interrupted."""
        for user in self.users():
            with suppress(FileNotFoundError):
                for name in os.listdir(self.folder(user)):
                    if name.startswith(_REMOVING):
                        remove(self.folder(user), name, pause)


def touched(path: str) -> bool:
    """Whether a tree exists; asking keeps it for a while."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _asked_at(found: os.stat_result) -> datetime:
    return datetime.fromtimestamp(found.st_mtime, UTC)
