"""Large files while they are uploaded: each chunk is written at its final offset, so no assembly is needed.

<object>/bytes    the file, with holes where chunks are missing
<object>/0, 1, …  empty marker files; each says that this chunk is in `bytes` and synced to disk

Invariant: a marker only ever stands next to the bytes that it describes. `bytes` is created once, together with its
folder, and to complete or remove the file, the folder is first renamed, with its markers, to a name nobody else uses.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.files import disk
from paddlecloud.model.tree import CHUNK_BYTES


@dataclass(frozen=True, slots=True)
class Place:
    """A chunk's position in a large file."""

    object: str
    object_size: int
    number: int
    size: int


class Partials:
    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        disk.make_folder(self._folder)

    def path(self, name: str) -> str:
        return f"{self._folder}/{name}/bytes"

    def arrived(self, name: str) -> set[int]:
        """Numbers of the chunks that have arrived; asking keeps them for another day."""
        folder = f"{self._folder}/{name}"
        with suppress(FileNotFoundError):
            os.utime(folder)
            return _chunk_numbers(os.listdir(folder))
        return set()

    def fill(self, place: Place, content: bytes) -> bool:
        """Write a chunk at its offset; False if the file was completed or removed meanwhile."""
        folder = f"{self._folder}/{place.object}"
        if not os.path.exists(folder):
            self._begin(place.object_size, folder)
        # Use only this descriptor: `folder` may be renamed and recreated, and the marker must stay with its bytes.
        try:
            at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            _write_chunk(at, place, content)
        except FileNotFoundError:
            return False
        except BaseException:
            if not _chunk_numbers(os.listdir(at)):
                self._remove(place.object)
            raise
        finally:
            os.close(at)
        return True

    @contextmanager
    def taken(self, name: str, size: int) -> Iterator[tuple[str, set[int]]]:
        """Yield the file's path, renamed so that nobody else can reach it, and its chunks. Success removes the file."""
        folder, home = disk.new_name(self._folder), f"{self._folder}/{name}"
        if not os.path.exists(home):
            self._begin(size, home)
        os.rename(home, folder)
        try:
            yield f"{folder}/bytes", _chunk_numbers(os.listdir(folder))
        except BaseException:
            with suppress(OSError):
                os.stat(f"{folder}/bytes")
                os.rename(folder, home)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def expire(self, before: float) -> None:
        for folder in disk.older_than(self._folder, before):
            self._remove(os.path.basename(folder))

    def _begin(self, size: int, folder: str) -> None:
        temporary = disk.new_name(self._folder)
        os.mkdir(temporary, 0o700)
        try:
            descriptor = os.open(f"{temporary}/bytes", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.ftruncate(descriptor, size)
            finally:
                os.close(descriptor)
            disk.sync(temporary)
            os.rename(temporary, folder)
            disk.sync(self._folder)
        except BaseException as error:
            shutil.rmtree(temporary, ignore_errors=True)
            begun_by_another = isinstance(error, OSError) and error.errno in (errno.ENOTEMPTY, errno.EEXIST)
            if not begun_by_another:
                raise

    def _remove(self, name: str) -> None:
        leaving = disk.new_name(self._folder)
        with suppress(FileNotFoundError):
            os.rename(f"{self._folder}/{name}", leaving)
            shutil.rmtree(leaving, ignore_errors=True)


def _chunk_numbers(names: list[str]) -> set[int]:
    return {int(name) for name in names if name.isdigit()}


def _write_chunk(partial: int, place: Place, content: bytes) -> None:
    descriptor = os.open("bytes", os.O_WRONLY | os.O_CLOEXEC, dir_fd=partial)
    try:
        disk.write_at(descriptor, content, place.number * CHUNK_BYTES)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    os.close(os.open(str(place.number), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=partial))
    os.fsync(partial)
