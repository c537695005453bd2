"""Stores user uploads: receives chunks and builds folder trees from them.

Invariant: nobody gets another user's file by naming its hash. A tree is built once, read-only, from hard links to
objects, and appears under its id only when it is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from paddlecloud.files import disk
from paddlecloud.files.layout import lay_out
from paddlecloud.files.objects import Objects
from paddlecloud.files.partial import Place
from paddlecloud.files.trees import Trees, touched
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.tree import CHUNK_BYTES, Entry, Manifest, check_manifest, is_digest
from paddlecloud.model.user import check_user_name

_UNUSED_FOR = timedelta(days=1)


@dataclass(slots=True)
class _Plan:
    """The tree a client announced, and the positions of the chunks that have not arrived yet."""

    tree: str
    places: dict[str, Place | Entry]


class Uploads:
    """Keeps `spare_bytes` of the disk free for the records of all users."""

    def __init__(self, root: Path, *, spare_bytes: int = 0) -> None:
        self._root = root
        self._spare_bytes = spare_bytes
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.trees = Trees(root)
        # For each user's last manifest only: a chunk without a position is stored separately and copied later.
        self._plans: dict[str, _Plan] = {}

    def missing(self, user: str, manifest: Manifest) -> list[str]:
        """Digests of the chunks still needed, each once; chunks already here are kept for another day."""
        check_manifest(manifest)
        return self._missing(user, manifest, self._tree(user, manifest.id))

    def put_chunk(self, user: str, digest: str, data: bytes) -> None:
        """Store a chunk, synced to disk."""
        self.put_chunks(user, [(digest, data)])

    def put_chunks(self, user: str, chunks: Sequence[tuple[str, bytes]]) -> None:
        """Store several chunks with one sync to disk; store none if one does not match its digest."""
        for digest, data in chunks:
            _check_chunk(digest, data)
        plan = self._plans.get(user, _Plan("", {}))
        with disk.room_for("this upload", self.folder):
            self._objects(user).put(chunks, plan.places)
        for digest, _ in chunks:
            plan.places.pop(digest, None)

    def seal(self, user: str, manifest: Manifest) -> str:
        """Build the manifest's tree and return its id; ConflictError while chunks are missing."""
        check_manifest(manifest)
        tree = self._tree(user, manifest.id)
        self._seal(user, manifest, tree)
        return os.path.basename(tree)

    def take(self, user: str, manifest: Manifest) -> tuple[str, list[str]]:
        """Return the tree's id and its missing chunks (see `missing`); seals the tree if nothing is missing."""
        check_manifest(manifest)
        tree = self._tree(user, manifest.id)
        # Once all requested chunks have arrived, there is no need to search the disk again.
        all_arrived = self._plans.get(user) == _Plan(tree, {})
        missing = [] if all_arrived else self._missing(user, manifest, tree)
        if not missing and not self._sealed(user, manifest, tree):
            # A chunk that was here a moment ago has expired: the client sends it again.
            missing = self._missing(user, manifest, tree)
        return os.path.basename(tree), missing

    def tree(self, user: str, tree_id: str) -> Path:
        """The read-only folder that holds the tree."""
        path = self._tree(user, tree_id)
        if not is_digest(tree_id) or not os.path.isdir(path):
            raise NotFoundError(f"there is no uploaded folder {tree_id!r}; upload it first", field="tree")
        return Path(path)

    def expire(self, now: datetime) -> None:
        """Remove what was unused for a day: chunks and objects that no tree uses, and unfinished writes."""
        before = (now - _UNUSED_FOR).timestamp()
        for folder in self._root.iterdir():
            with self._locked(folder.name):
                self._objects(folder.name).expire(before)
                for leftover in (folder / "trees").glob(disk.NEW + "*"):
                    disk.remove_tree(str(leftover))

    @property
    def folder(self) -> str:
        return str(self._root)

    def free_bytes(self) -> int:
        """Disk space left for uploads."""
        room = os.statvfs(self._root)
        return max(0, room.f_bavail * room.f_frsize - self._spare_bytes)

    def _missing(self, user: str, manifest: Manifest, tree: str) -> list[str]:
        if touched(tree):
            return []
        places = self._objects(user).missing(manifest)
        self._plans[user] = _Plan(tree, places)
        return list(places)

    def _sealed(self, user: str, manifest: Manifest, tree: str) -> bool:
        try:
            self._seal(user, manifest, tree)
        except ConflictError:
            return False
        return True

    def _seal(self, user: str, manifest: Manifest, tree: str) -> None:
        objects = self._objects(user)
        with disk.room_for("this upload", self.folder), self._locked(user):
            if not touched(tree):
                objects.make(manifest)
                lay_out(manifest, objects, tree)
                objects.sync()
            objects.forget_chunks(manifest)
        self._plans.pop(user, None)

    def _objects(self, user: str) -> Objects:
        return Objects(self._folder(user), spare_bytes=self._spare_bytes)

    def _tree(self, user: str, tree_id: str) -> str:
        trees = str(self._folder(user) / "trees")
        disk.make_folder(trees)
        return f"{trees}/{tree_id}"

    def _folder(self, user: str) -> Path:
        folder = self._root / check_user_name(user)
        disk.make_folder(str(folder))
        return folder

    @contextmanager
    def _locked(self, user: str) -> Iterator[None]:
        """Lock the user's objects and trees; chunks may still arrive meanwhile."""
        descriptor = os.open(self._folder(user) / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _check_chunk(digest: str, data: bytes) -> None:
    if not is_digest(digest):
        raise InvalidError(f"{digest!r} is not a SHA-256 digest in lower-case hex", field="digest")
    if not 0 < len(data) <= CHUNK_BYTES:
        raise InvalidError(f"chunk {digest} has {len(data)} bytes; a chunk has 1 to {CHUNK_BYTES}", field="body")
    if (found := hashlib.sha256(data).hexdigest()) != digest:
        raise InvalidError(f"chunk {digest} arrived with the hash {found}; send it again", field="body")
