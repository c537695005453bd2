"""The interface of a datacenter's file store. Paths are relative to its root; "" is the root (see `paths.text_of`).

Every method may raise NotFoundError, FullError, ConflictError (a file where a folder is expected, or the reverse),
UnreachableError if the store is remote, and ForbiddenError if the server itself lacks permission. Before calling a
method, the caller checks the user's permission and the path's syntax (see `paths.check_relative`). docs/stores.md
lists what each store costs; tests/contract/test_files_stores.py tests what each store must do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from paddlecloud.model.transfers import FileEntry

Progress = Callable[[int], None]  # called with the bytes copied since the last call; may raise to stop the copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    size_bytes: int = 0
    files: int = 0


class StoredFile(Protocol):
    """One version of a file, as it was when opened. The caller closes it.

    Reading on after the file was replaced may raise ConflictError, but never mixes versions.
    """

    @property
    def entry(self) -> FileEntry: ...

    @property
    def etag(self) -> str:
        """Changes whenever the content changes; includes the quotes of RFC 9110."""
        ...

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end`; fewer if the file ends earlier."""
        ...

    def pieces(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the same bytes in pieces of about one megabyte."""
        ...

    def close(self) -> None: ...


class Store(Protocol):
    @property
    def kind(self) -> str:
        """The name of this kind of store in the configuration: local, s3."""
        ...

    @property
    def folder(self) -> Path | None:
        """The folder where tasks on this machine can read the files directly; None if the files are remote."""
        ...

    def stat(self, path: str) -> FileEntry:
        """Describe a file, a folder or a link, without following it. Some stores do not know a folder's time."""
        ...

    def list(self, folder: str, *, after: str = "", limit: int | None = None) -> Sequence[FileEntry]:
        """List a folder sorted by the names' bytes, after the name `after`; holds no more than that in memory."""
        ...

    def walk(self, folder: str, *, after: str = "") -> Iterator[FileEntry]:
        """Yield everything below a folder, each folder before its content, sorted by path parts, after `after`."""
        ...

    def open(self, path: str) -> StoredFile: ...

    def write(self, path: str, pieces: Iterable[bytes]) -> FileEntry:
        """Create or replace a file and its parent folders: readers see the old file or the complete new one."""
        ...

    def write_all(self, contents: Sequence[tuple[str, bytes]]) -> None:
        """Write many small files with one sync to disk."""
        ...

    def adopt(self, path: str, whole: Path) -> FileEntry:
        """Create or replace a file by moving one from this server's disk."""
        ...

    def copy(self, whole: StoredFile, path: str, progress: Progress) -> FileEntry:
        """Create or replace a file with a copy from any store; the copy bypasses this server where possible.

        Raises ConflictError if the source is truncated or replaced meanwhile.
        """
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; an existing folder is left as it is."""
        ...

    def move(self, source: str, target: str) -> None:
        """Rename a file or a folder. A file at the target is replaced; a folder there raises ConflictError."""
        ...

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file, or with `recursive` a folder and its content; ConflictError for a folder without it."""
        ...

    def usage(self, folder: str) -> Usage:
        """Count a folder or a file; a missing path counts as empty."""
        ...

    def free_bytes(self) -> int | None:
        """How many more bytes fit; None if unknown."""
        ...
