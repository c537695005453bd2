"""What the file store of a datacenter can do. Paths are below its root, "" being the root (see `paths.text_of`).

Every method may raise NotFoundError, FullError, ConflictError (a file where a folder is meant, or the other way),
UnreachableError where the store is elsewhere, and ForbiddenError if the server itself may not. Whether the caller may
is settled before any is called, and so is that a path is one (see `paths.check_relative`). What stores cost is in
docs/stores.md; tests/contract/test_files_stores.py is what each must do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from paddlecloud.model.transfers import FileEntry

Progress = Callable[[int], None]  # bytes that were copied since the last call; may raise to stop


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    size_bytes: int = 0
    files: int = 0


class StoredFile(Protocol):
    """One version of a file: what it was when it was opened. The caller closes it.

    Where an old version cannot be read on, reading is a ConflictError once the file was replaced, and never a mix.
    """

    @property
    def entry(self) -> FileEntry: ...

    @property
    def etag(self) -> str:
        """Another one if the content is another; with its quotes, as RFC 9110 writes it."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end` at once; less if the file ends before."""
        ...

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The same in pieces of about a megabyte."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def kind(self) -> str:
        """What a config calls such a store: local, s3."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where tasks on this machine may find the files as they are; None: they are elsewhere."""
        ...

    def stat(self, path: str) -> FileEntry:
        """What is there: a file, a folder, or a link, which is never followed. Some do not know a folder's time."""
        ...

    def list(self, folder: str, *, after: str = "", limit: int | None = None) -> Sequence[FileEntry]:
        """What is in a folder, by the bytes of the names, behind the name `after`; never more in memory than that."""
        ...

    def walk(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        """All below a folder, each folder before what is in it, in the order of the paths' parts, behind `after`."""
        ...

    def open(self, path: str) -> StoredFile: ...

    def write(self, path: str, pieces: Iterable[bytes]) -> FileEntry:
        """Make or replace a file: readers see the old one or the whole new one. Folders above it are made."""
        ...

    def write_all(self, contents: Sequence[tuple[str, bytes]]) -> None:
        """The same for many small files, on the disk together."""
        ...

    def adopt(self, path: str, whole: Path) -> FileEntry:
        """Make or replace a file by one on this server's disk, which is gone from there afterwards."""
        ...

    def copy(self, whole: StoredFile, path: str, progress: Progress) -> FileEntry:
        """Make or replace a file by another of any store, without its bytes coming through here where that can be.

        ConflictError if that one is cut or replaced meanwhile.
        """
        ...

    def make_folder(self, path: str) -> None:
        """With the folders above it; one that is there stays as it is."""
        ...

    def move(self, source: str, target: str) -> None:
        """Rename a file or a folder. A file at the target is replaced; a folder there is a ConflictError."""
        ...

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """A folder only if `recursive`, whatever is in it; else ConflictError."""
        ...

    def usage(self, folder: str) -> Usage:
        """What is in a folder, or a file; of what is not there, nothing."""
        ...

    def free_bytes(self) -> int | None:
        """How much more may be written; None: nobody knows."""
        ...
