"""Large files on their way in: each chunk is written where it belongs, so that nothing has to be put together later.

<object>/bytes    the file, with holes where chunks are missing
<object>/0, 1, …  empty; says that this chunk is in `bytes`, and on the disk

A mark must never stand beside bytes that it does not speak of: `bytes` is made once, together with its folder, and
whoever completes or removes the file first takes the folder, with its marks, out of everyone's reach.
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
    """Where a chunk belongs in a large file."""

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
        """The numbers of the chunks that are in the file; asking keeps them for another day."""
        folder = f"{self._folder}/{name}"
        with suppress(FileNotFoundError):
            os.utime(folder)
            return _marks(os.listdir(folder))
        return set()

    def fill(self, place: Place, content: bytes) -> bool:
        """Write a chunk at its place; False if the file was completed or removed meanwhile."""
        folder = f"{self._folder}/{place.object}"
        if not os.path.exists(folder):
            self._begin(place.object_size, folder)
        # All by this descriptor: `folder` may be moved away and made anew, and the mark must stay with its bytes.
        try:
            at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            _write_at_place(at, place, content)
        except FileNotFoundError:
            return False
        except BaseException:
            if not _marks(os.listdir(at)):
                self._remove(place.object)
            raise
        finally:
            os.close(at)
        return True

    @contextmanager
    def taken(self, name: str, size: int) -> Iterator[tuple[str, set[int]]]:
        """The file's path, out of everyone's reach, and the chunks in it. It is removed at the end if that is good."""
        folder, home = disk.new_name(self._folder), f"{self._folder}/{name}"
        if not os.path.exists(home):
            self._begin(size, home)
        os.rename(home, folder)
        try:
            yield f"{folder}/bytes", _marks(os.listdir(folder))
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


def _marks(names: list[str]) -> set[int]:
    return {int(name) for name in names if name.isdigit()}


def _write_at_place(partial: int, place: Place, content: bytes) -> None:
    descriptor = os.open("bytes", os.O_WRONLY | os.O_CLOEXEC, dir_fd=partial)
    try:
        disk.write_at(descriptor, content, place.number * CHUNK_BYTES)
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    os.close(os.open(str(place.number), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=partial))
    os.fsync(partial)
