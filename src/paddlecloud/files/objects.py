"""One user's bytes: chunks that have arrived, and objects, which are whole files.

chunks/<digest>               a chunk whose hash was checked, until a tree takes it or a day has passed; one that is a
                              whole file, as far as the manifest told, is an object as soon as it is here
partial/                      large files that are being filled (partial.py)
objects/<content>.<size>[.x]  a whole file, never changed again; `.x` is executable, since links share a mode
parts/<digest>                a link whose text says in which object, and where, a chunk of a large file is
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

_PLAIN = 0o444
_EXECUTABLE = 0o555


@dataclass(frozen=True, slots=True)
class Held:
    """Where a chunk's bytes are on the disk."""

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
        """The object that holds the bytes of a file."""
        return f"{self._objects}/{_file_name(entry)}"

    def missing(self, manifest: Manifest) -> dict[str, Place | Entry]:
        """Chunks that are not here, each with its place in a large file, or with the file that it is the whole of.

        Those that are here are held longer.
        """
        missing: dict[str, Place | Entry] = {}
        lacking = [entry for entry in _files(manifest) if not self._whole(entry)]
        filled = self._filled(lacking)
        seen: set[tuple[str, int]] = set()
        for entry in lacking:
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
        """Keep chunks whose hash was checked; they are on the disk when it returns."""
        disk.check_room(self._chunks, sum(len(content) for _, content in chunks), self._spare_bytes)
        apart, whole = [], []
        for digest, content in chunks:
            place = places.get(digest)
            if place is None or place.size != len(content):
                apart.append((digest, content))
            elif isinstance(place, Entry):
                whole.append((place, content))
            elif not self._partials.fill(place, content):
                apart.append((digest, content))
        disk.write_all(self._chunks, apart, _PLAIN)
        for executable in (False, True):
            found = [(_file_name(entry), content) for entry, content in whole if entry.executable is executable]
            disk.write_all(self._objects, found, _EXECUTABLE if executable else _PLAIN)

    def make(self, manifest: Manifest) -> None:
        """Make the large objects of a tree, so that what they share with small ones is found in `parts`; `link` makes
        the others. ConflictError if a chunk is not here, InvalidError if the manifest lies."""
        large = [entry for entry in _files(manifest) if len(entry.chunks) > 1 and not disk.there(self.path_of(entry))]
        filled = self._filled(large)
        for entry in sorted(large, key=lambda entry: entry.size, reverse=True):
            path = self.path_of(entry)
            if not disk.there(path):
                self._make(entry, path, filled)

    def link(self, entry: Entry, path: str, folder: int) -> None:
        """Give the object of `entry` one more name, `path` below the descriptor `folder`."""
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
        """Wait until the names of all objects are on the disk."""
        disk.sync(self._objects)

    def forget_chunks(self, manifest: Manifest) -> None:
        """Remove the chunks that the objects of a tree have taken in."""
        if kept := set(os.listdir(self._chunks)):
            for digest in kept.intersection(digest for entry in manifest.entries for digest in entry.chunks):
                with suppress(FileNotFoundError):
                    os.unlink(f"{self._chunks}/{digest}")

    def expire(self, before: float) -> None:
        """Remove what no tree uses and nobody has asked about since `before`, and what a crash left half written."""
        for entry in disk.older_than(self._chunks, before):
            os.unlink(entry)
        self._partials.expire(before)
        for entry in disk.older_than(self._objects, before):
            if os.lstat(entry).st_nlink == 1:
                os.unlink(entry)
        for entry in disk.older_than(self._parts, before):
            if not self._is_object(os.readlink(entry).partition(":")[0]):
                os.unlink(entry)

    def _make(self, entry: Entry, path: str, filled: Mapping[str, Place]) -> None:
        other = path.removesuffix(".x") if entry.executable else path + ".x"
        if disk.there(other) or not entry.size:
            self._copy(Held(other, 0), entry, path)
        elif len(entry.chunks) > 1:
            self._assemble(entry, path, filled)
        else:
            self._take(entry, path)

    def _take(self, entry: Entry, path: str) -> None:
        """Make a file of one chunk: the chunk itself, if it is not part of something else."""
        held = self._find(entry, 0, {})
        if held is None:
            raise _lacking(entry)
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
                            raise _lacking(entry)
                        own[digest] = Held(content, number * CHUNK_BYTES)
                        self._copy_held(held, descriptor, number * CHUNK_BYTES, entry.chunk_size(number))
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
        disk.write_by(path, _mode(entry), lambda target: self._copy_held(held, target, 0, entry.size))

    def _copy_held(self, held: Held, target: int, offset: int, size: int) -> None:
        if not size:
            return
        # One chunk that was sent can be many chunks of a file: what is copied here, nobody has paid for by sending it.
        disk.check_room(self._objects, size, self._spare_bytes)
        source = os.open(held.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            disk.copy(source, held.offset, target, offset, size)
        finally:
            os.close(source)

    def _find(self, entry: Entry, number: int, filled: Mapping[str, Place]) -> Held | None:
        """Where chunk `number` of a file is held; InvalidError if it is held and has another length."""
        digest, size = entry.chunks[number], entry.chunk_size(number)
        path = f"{self._chunks}/{digest}"
        if disk.there(path):
            with suppress(FileNotFoundError):
                _check_size(entry, number, os.stat(path).st_size)
                os.utime(path)
                return Held(path, 0)
        if (whole := self._is_object(f"{digest}.{size}")) is not None:
            return Held(whole, 0)
        part = f"{self._parts}/{digest}"
        if disk.there(part):
            with suppress(FileNotFoundError):
                name, _, place = os.readlink(part).partition(":")
                if (whole := self._is_object(name)) is not None:
                    offset = int(place) * CHUNK_BYTES
                    _check_size(entry, number, min(CHUNK_BYTES, os.stat(whole).st_size - offset))
                    return Held(whole, offset)
        if digest in filled:
            _check_size(entry, number, filled[digest].size)
            return Held(self._partials.path(filled[digest].object), filled[digest].number * CHUNK_BYTES)
        return None

    def _filled(self, entries: Iterable[Entry]) -> dict[str, Place]:
        """The chunks that are at their places in partial files, of any of these files."""
        return {
            entry.chunks[number]: Place(_name(entry), entry.size, number, entry.chunk_size(number))
            for entry in entries
            if len(entry.chunks) > 1
            for number in self._partials.arrived(_name(entry))
        }

    def _whole(self, entry: Entry) -> bool:
        """Whether the bytes of a file are here, in either mode; what no tree has yet is held longer."""
        if not entry.size:
            return True
        plain = f"{self._objects}/{_name(entry)}"
        for path in (plain, plain + ".x"):
            with suppress(FileNotFoundError):
                if os.stat(path).st_nlink == 1:
                    os.utime(path)
                return True
        return False

    def _is_object(self, name: str) -> str | None:
        for path in (f"{self._objects}/{name}", f"{self._objects}/{name}.x"):
            if disk.there(path):
                return path
        return None


def _files(manifest: Manifest) -> Iterator[Entry]:
    return (entry for entry in manifest.entries if entry.kind is Kind.FILE)


def _name(entry: Entry) -> str:
    # With its size: `content` of a large file could be the plain hash of a small one that spells out its digests.
    return f"{entry.content}.{entry.size}"


def _file_name(entry: Entry) -> str:
    return _name(entry) + (".x" if entry.executable else "")


def _mode(entry: Entry) -> int:
    return _EXECUTABLE if entry.executable else _PLAIN


def _check_size(entry: Entry, number: int, found: int) -> None:
    if found != entry.chunk_size(number):
        raise InvalidError(
            f"file {entry.path!r} is said to have {entry.size} bytes, but its chunk {entry.chunks[number]} has "
            f"{found}, not {entry.chunk_size(number)}; list the folder again",
            field="entries",
        )


def _lacking(entry: Entry) -> ConflictError:
    return ConflictError(f"chunks of {entry.path!r} are not here yet; ask what is missing and send it")
