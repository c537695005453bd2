"""What crosses the wire about files: what a server has of a folder, what a job left there, and what the PFS holds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paddlecloud.model.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One path of a job's results, named `output/<job>/…` (see `paths.text_of`), or of the PFS, named `/pfs/…`.

    In results a folder's path ends in `/`, and one is listed where nothing below it would name it; the results' own
    folder always is. In the PFS every folder is listed.
    """

    path: str
    size: int
    modified_at: datetime
    kind: Kind
    target: str = ""  # of a link


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    items: tuple[FileEntry, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PackRequest:
    """Small files of a job's results that are to come in one answer, as `FileEntry` names them."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPlan:
    """The answer to a manifest: its tree's id and the chunks still to send; none missing: the tree is laid out."""

    tree: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRequest:
    """A large file that is to come into the PFS: `chunks` are the SHA-256 digests of its CHUNK_BYTES pieces."""

    path: str
    size: int
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan:
    """The numbers of the pieces still to be sent; none: the file is there."""

    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRequest:
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRequest:
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedFile:
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRequest:
    """Files of the PFS that the server is to copy, each to its very target."""

    files: tuple[CopiedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyReport:
    """A line of the answer to a copy: how much of it is done by now. The last says so, and which error ended it."""

    files: int
    size: int
    last: bool = False
    code: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomRequest:
    """Whether so many bytes more may be kept at a path of the PFS."""

    path: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The first part of a pack of small files for the PFS: their paths, in the order of the parts that follow."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Datacenter:
    """A datacenter whose name may stand in a path: where the caller's home and the public files are."""

    name: str
    home: str
    public: str
    store: str
