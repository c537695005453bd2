"""What crosses the wire about files: what a server has of a folder, and what a job left there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paddlecloud.model.tree import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One path of a job's results, named `output/<job>/…` (see `paths.text_of`); a folder's ends in `/`.

    A folder is listed where nothing below it would name it; the results' own folder always is.
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
