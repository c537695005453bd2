"""Stores one user's uploaded bytes: chunks, and objects, which are complete files.

chunks/<digest>               a chunk with a verified hash, kept until a tree uses it or for a day; a chunk that the
                              manifest lists as a complete file becomes an object at once
partial/                      large files that are being filled (partial.py)
objects/<content>.<size>[.x]  a complete file, never changed again; `.x` if executable, since hard links share a mode
parts/<digest>                a link whose target text names the object and position of a large file's chunk
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.files import disk
from paddlecloud.files.partial import Partials, Place
from paddlecloud.model.errors import ConflictError, InvalidError
from paddlecloud.model.tree import CHUNK_BYTES, Entry, Kind, Manifest

_MODE = 0o444
_EXECUTABLE_MODE = 0o555


@dataclass(frozen=True, slots=True)
class Held:
    """Where a chunk's bytes are on disk."""

    path: str
    offset: int


class Objects:
    def __init__(self, folder: Path, *, spare_bytes: int = 0) -> None:
        self._spare_bytes = spare_bytes
        self._chunks = str(folder / "chunks")
        self._objects = str(folder / "objects")
        self._parts = str(folder / "parts")
        for path in (self._chunks, self._objects, self._parts):
            disk.make_folder(path)
        self._partials = Partials(folder / "partial")

    def path_of(self, entry: Entry) -> str:
        """The object with the bytes of a file."""
        return f"{self._objects}/{_file_name(entry)}"

    def missing(self, manifest: Manifest) -> dict[str, Place | Entry]:
        """Missing chunks, each with its position in a large file, or with the file that consists of it alone.

        Chunks that are not missing are kept longer.
        """
        missing: dict[str, Place | Entry] = {}
        incomplete = [entry for entry in _files(manifest) if not self._is_complete(entry)]
        filled = self._partial_chunks(incomplete)
        seen: set[tuple[str, int]] = set()
        for entry in incomplete:
            for number, digest in enumerate(entry.chunks):
                size = entry.chunk_size(number)
                if (digest, size) in seen:
                    continue
                seen.add((digest, size))
                if self._find(entry, number, filled) is None:
                    if len(entry.chunks) > 1:
                        missing[digest] = Place(_name(entry), entry.size, number, size)
                    else:
                        missing.setdefault(digest, entry)
        return missing

    def put(self, chunks: Sequence[tuple[str, bytes]], places: Mapping[str, Place | Entry]) -> None:
        """Store chunks with verified hashes, synced to disk."""
        disk.check_room(self._chunks, sum(len(content) for _, content in chunks), self._spare_bytes)
        separate, whole = [], []
        for digest, content in chunks:
            place = places.get(digest)
            if place is None or place.size != len(content):
                separate.append((digest, content))
            elif isinstance(place, Entry):
                whole.append((place, content))
            elif not self._partials.fill(place, content):
                separate.append((digest, content))
        disk.write_all(self._chunks, separate, _MODE)
        for executable in (False, True):
            found = [(_file_name(entry), content) for entry, content in whole if entry.executable is executable]
            disk.write_all(self._objects, found, _EXECUTABLE_MODE if executable else _MODE)

    def make(self, manifest: Manifest) -> None:
        """Create the large objects of a tree first, so that small ones find shared chunks in `parts`; `link` creates
        the others. ConflictError if a chunk is missing, InvalidError if the manifest contradicts the chunks."""
        large = [entry for entry in _files(manifest) if len(entry.chunks) > 1 and not disk.there(self.path_of(entry))]
        filled = self._partial_chunks(large)
        for entry in sorted(large, key=lambda entry: entry.size, reverse=True):
            path = self.path_of(entry)
            if not disk.there(path):
                self._make(entry, path, filled)

    def link(self, entry: Entry, path: str, folder: int) -> None:
        """Hard-link the object of `entry` as `path` below the descriptor `folder`."""
        source = self.path_of(entry)
        try:
            os.link(source, path, dst_dir_fd=folder)
        except FileNotFoundError:
            self._make(entry, source, {})
            os.link(source, path, dst_dir_fd=folder)
        except OSError as error:
            if error.errno != errno.EMLINK:
                raise
            self._copy(Held(source, 0), entry, source)
            os.link(source, path, dst_dir_fd=folder)

    def sync(self) -> None:
        """Sync the names of all objects to disk."""
        disk.sync(self._objects)

    def forget_chunks(self, manifest: Manifest) -> None:
        """Remove the chunks that are now part of a tree's objects."""
        if kept := set(os.listdir(self._chunks)):
            for digest in kept.intersection(digest for entry in manifest.entries for digest in entry.chunks):
                with suppress(FileNotFoundError):
                    os.unlink(f"{self._chunks}/{digest}")

    def expire(self, before: float) -> None:
        """Remove what no tree uses and nobody requested since `before`, and half-written files left by a crash."""
        for entry in disk.older_than(self._chunks, before):
            os.unlink(entry)
        self._partials.expire(before)
        for entry in disk.older_than(self._objects, before):
            if os.lstat(entry).st_nlink == 1:
                os.unlink(entry)
        for entry in disk.older_than(self._parts, before):
            if not self._object_path(os.readlink(entry).partition(":")[0]):
                os.unlink(entry)

    def _make(self, entry: Entry, path: str, filled: Mapping[str, Place]) -> None:
        other = path.removesuffix(".x") if entry.executable else path + ".x"
        if disk.there(other) or not entry.size:
            self._copy(Held(other, 0), entry, path)
        elif len(entry.chunks) > 1:
            self._assemble(entry, path, filled)
        else:
            self._make_from_chunk(entry, path)

    def _make_from_chunk(self, entry: Entry, path: str) -> None:
        """Create a file of one chunk: move the chunk itself, unless it is part of another file."""
        held = self._find(entry, 0, {})
        if held is None:
            raise _missing_chunks(entry)
        if os.path.dirname(held.path) == self._chunks:
            os.chmod(held.path, _mode(entry))
            os.replace(held.path, path)
        else:
            self._copy(held, entry, path)

    def _assemble(self, entry: Entry, path: str, filled: Mapping[str, Place]) -> None:
        name = _name(entry)
        with self._partials.taken(name, entry.size) as (content, here):
            own = {entry.chunks[number]: Held(content, number * CHUNK_BYTES) for number in here}
            descriptor = os.open(content, os.O_RDWR | os.O_CLOEXEC)
            try:
                for number, digest in enumerate(entry.chunks):
                    if number not in here:
                        held = own.get(digest) or self._find(entry, number, filled)
                        if held is None:
                            raise _missing_chunks(entry)
                        own[digest] = Held(content, number * CHUNK_BYTES)
                        self._copy_chunk(held, descriptor, number * CHUNK_BYTES, entry.chunk_size(number))
                os.fchmod(descriptor, _mode(entry))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.replace(content, path)
        for number, digest in enumerate(entry.chunks):
            with suppress(FileNotFoundError):
                os.unlink(f"{self._parts}/{digest}")
            os.symlink(f"{name}:{number}", f"{self._parts}/{digest}")

    def _copy(self, held: Held, entry: Entry, path: str) -> None:
        disk.write_by(path, _mode(entry), lambda target: self._copy_chunk(held, target, 0, entry.size))

    def _copy_chunk(self, held: Held, target: int, offset: int, size: int) -> None:
        if not size:
            return
        # One uploaded chunk may occur many times in a file, so the bytes copied here can far exceed those uploaded.
        disk.check_room(self._objects, size, self._spare_bytes)
        source = os.open(held.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            disk.copy(source, held.offset, target, offset, size)
        finally:
            os.close(source)

    def _find(self, entry: Entry, number: int, filled: Mapping[str, Place]) -> Held | None:
        """Where chunk `number` of a file is; InvalidError if it is stored with another length."""
        digest, size = entry.chunks[number], entry.chunk_size(number)
        path = f"{self._chunks}/{digest}"
        if disk.there(path):
            with suppress(FileNotFoundError):
                _check_size(entry, number, os.stat(path).st_size)
                os.utime(path)
                return Held(path, 0)
        if (whole := self._object_path(f"{digest}.{size}")) is not None:
            return Held(whole, 0)
        part = f"{self._parts}/{digest}"
        if disk.there(part):
            with suppress(FileNotFoundError):
                name, _, place = os.readlink(part).partition(":")
                if (whole := self._object_path(name)) is not None:
                    offset = int(place) * CHUNK_BYTES
                    _check_size(entry, number, min(CHUNK_BYTES, os.stat(whole).st_size - offset))
                    return Held(whole, offset)
        if digest in filled:
            _check_size(entry, number, filled[digest].size)
            return Held(self._partials.path(filled[digest].object), filled[digest].number * CHUNK_BYTES)
        return None

    def _partial_chunks(self, entries: Iterable[Entry]) -> dict[str, Place]:
        """Chunks of these files that are already in their partial files."""
        return {
            entry.chunks[number]: Place(_name(entry), entry.size, number, entry.chunk_size(number))
            for entry in entries
            if len(entry.chunks) > 1
            for number in self._partials.arrived(_name(entry))
        }

    def _is_complete(self, entry: Entry) -> bool:
        """Whether the bytes of a file are here, in either mode; an object that no tree uses yet is kept longer."""
        if not entry.size:
            return True
        plain = f"{self._objects}/{_name(entry)}"
        for path in (plain, plain + ".x"):
            with suppress(FileNotFoundError):
                if os.stat(path).st_nlink == 1:
                    os.utime(path)
                return True
        return False

    def _object_path(self, name: str) -> str | None:
        for path in (f"{self._objects}/{name}", f"{self._objects}/{name}.x"):
            if disk.there(path):
                return path
        return None


def _files(manifest: Manifest) -> Iterator[Entry]:
    return (entry for entry in manifest.entries if entry.kind is Kind.FILE)


def _name(entry: Entry) -> str:
    # Include the size: a large file's `content` could equal the hash of a small file that spells out its digests.
    return f"{entry.content}.{entry.size}"


def _file_name(entry: Entry) -> str:
    return _name(entry) + (".x" if entry.executable else "")


def _mode(entry: Entry) -> int:
    return _EXECUTABLE_MODE if entry.executable else _MODE


def _check_size(entry: Entry, number: int, found: int) -> None:
    if found != entry.chunk_size(number):
        raise InvalidError(
            f"file {entry.path!r} is listed with {entry.size} bytes, but its chunk {entry.chunks[number]} has "
            f"{found} bytes, not {entry.chunk_size(number)}; list the folder again",
            field="entries",
        )


def _missing_chunks(entry: Entry) -> ConflictError:
    return ConflictError(f"chunks of {entry.path!r} are missing; ask for the missing chunks and send them")
