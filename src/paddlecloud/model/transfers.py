"""What crosses the wire about files: what a server has of a folder, what a job left there, and what the PFS holds."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from paddlecloud.model.tree import Kind


class FileEntry(Struct, frozen=True, kw_only=True):
    """One path of a job's results, named `output/<job>/…` (see `paths.text_of`), or of the PFS, named `/pfs/…`.

    In results a folder's path ends in `/`, and one is listed where nothing below it would name it; the results' own
    folder always is. In the PFS every folder is listed.
    """

    path: str
    size: int
    modified_at: datetime
    kind: Kind
    target: str = ""  # of a link


class FilePage(Struct, frozen=True, kw_only=True):
    items: tuple[FileEntry, ...]
    next_cursor: str | None = None


class PackRequest(Struct, frozen=True, kw_only=True):
    """Small files of a job's results that are to come in one answer, as `FileEntry` names them."""

    paths: tuple[str, ...]


class UploadPlan(Struct, frozen=True, kw_only=True):
    """The answer to a manifest: its tree's id and the chunks still to send; none missing: the tree is laid out."""

    tree: str
    missing: tuple[str, ...] = ()


class FileRequest(Struct, frozen=True, kw_only=True):
    """A large file that is to come into the PFS: `chunks` are the SHA-256 digests of its CHUNK_BYTES pieces."""

    path: str
    size: int
    chunks: tuple[str, ...]


class FilePlan(Struct, frozen=True, kw_only=True):
    """The numbers of the pieces still to be sent; none: the file is there."""

    missing: tuple[int, ...] = ()


class FolderRequest(Struct, frozen=True, kw_only=True):
    path: str


class MoveRequest(Struct, frozen=True, kw_only=True):
    source: str
    target: str


class CopiedFile(Struct, frozen=True, kw_only=True):
    source: str
    target: str


class CopyRequest(Struct, frozen=True, kw_only=True):
    """Files of the PFS that the server is to copy, each to its very target."""

    files: tuple[CopiedFile, ...]


class CopyReport(Struct, frozen=True, kw_only=True):
    """A line of the answer to a copy: how much of it is done by now. The last says so, and which error ended it."""

    files: int
    size: int
    last: bool = False
    code: str = ""
    message: str = ""


class RoomRequest(Struct, frozen=True, kw_only=True):
    """Whether so many bytes more may be kept at a path of the PFS."""

    path: str
    size: int


class Packed(Struct, frozen=True, kw_only=True):
    """The first part of a pack of small files for the PFS: their paths, in the order of the parts that follow."""

    paths: tuple[str, ...]


class Datacenter(Struct, frozen=True, kw_only=True):
    """A datacenter whose name may stand in a path: where the caller's home and the public files are."""

    name: str
    home: str
    public: str
    store: str
