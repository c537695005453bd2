"""What users upload: chunks come in, trees come out; nobody gets a file by naming the hash of another user's.

A tree is laid out once, read-only, as links to objects, and appears under its id only when it is whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from paddlecloud.files import disk
from paddlecloud.files.layout import lay_out
from paddlecloud.files.objects import Objects
from paddlecloud.files.partial import Place
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.tree import CHUNK_BYTES, Manifest, check_manifest, is_digest
from paddlecloud.model.user import check_user_name

_LEASE = timedelta(days=1)


class Uploads:
    """`spare_bytes` of the disk are left free: the records of all users need them."""

    def __init__(self, root: Path, *, spare_bytes: int = 0) -> None:
        self._root = root
        self._spare_bytes = spare_bytes
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Of each user's last manifest only: a chunk without a place is kept apart and copied later.
        self._places: dict[str, dict[str, Place | None]] = {}

    def missing(self, user: str, manifest: Manifest) -> list[str]:
        """Digests of the chunks still needed, each once; those that are here are kept for another day."""
        check_manifest(manifest)
        if os.path.exists(self._tree(user, manifest.id)):
            return []
        places = self._objects(user).missing(manifest)
        self._places[user] = places
        return list(places)

    def put_chunk(self, user: str, digest: str, data: bytes) -> None:
        """Keep a chunk; it is on the disk when this returns."""
        self.put_chunks(user, [(digest, data)])

    def put_chunks(self, user: str, chunks: Sequence[tuple[str, bytes]]) -> None:
        """Keep several chunks, at the price of one wait for the disk; none if one of them is not what it says."""
        for digest, data in chunks:
            _check_chunk(digest, data)
        with disk.room_for("this upload"):
            self._objects(user).put(chunks, self._places.get(user, {}))

    def seal(self, user: str, manifest: Manifest) -> str:
        """Lay out the manifest's tree and return its id; ConflictError while chunks are missing."""
        check_manifest(manifest)
        objects, tree = self._objects(user), self._tree(user, manifest.id)
        with disk.room_for("this upload"), self._locked(user):
            if not os.path.exists(tree):
                objects.make(manifest)
                lay_out(manifest, objects, tree)
            objects.forget_chunks(digest for entry in manifest.entries for digest in entry.chunks)
        self._places.pop(user, None)
        return manifest.id

    def tree(self, user: str, tree_id: str) -> Path:
        """The read-only folder that the tree was laid out in."""
        path = self._tree(user, tree_id)
        if not is_digest(tree_id) or not os.path.isdir(path):
            raise NotFoundError(f"there is no uploaded folder {tree_id!r}; upload it first", field="tree")
        return Path(path)

    def remove(self, user: str, tree_id: str) -> None:
        """Remove a tree; the bytes that no other tree has go at the next `expire`."""
        path = self.tree(user, tree_id)
        with self._locked(user):
            leaving = disk.new_name(os.path.dirname(path))
            os.rename(path, leaving)
            disk.remove_tree(leaving)

    def expire(self, now: datetime) -> None:
        """Remove what has been of no use for a day: chunks no tree took, objects no tree has, unfinished writing."""
        before = (now - _LEASE).timestamp()
        for folder in self._root.iterdir():
            with self._locked(folder.name):
                self._objects(folder.name).expire(before)
                for leftover in (folder / "trees").glob(disk.NEW + "*"):
                    disk.remove_tree(str(leftover))

    def free_bytes(self) -> int:
        """What the disk has left for uploads."""
        room = os.statvfs(self._root)
        return max(0, room.f_bavail * room.f_frsize - self._spare_bytes)

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
        """Alone with the user's objects and trees; chunks may come in meanwhile."""
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
