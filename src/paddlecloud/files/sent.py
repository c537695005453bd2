"""The files that a job was submitted with, listed and read from its uploaded tree."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from paddlecloud.files import below
from paddlecloud.files.opened import OpenedFile, etag_of
from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.transfers import FileEntry, FilePage
from paddlecloud.model.tree import Kind


def list_sent(tree: Path, after: str | None, limit: int) -> FilePage:
    """Files and links, by their paths in the folder; `after` is the cursor of the page before."""
    try:
        behind = None if after is None else paths.raw_of(paths.check_relative(after))
    except (InvalidError, UnicodeEncodeError):
        raise InvalidError(
            f"cursor {after!r} is not one of this list; leave it out to begin anew", field="cursor"
        ) from None
    found = (one for one in below.walk(tree, "", behind, limit + 1) if one.kind is not Kind.FOLDER)
    entries = [_entry(one) for one in itertools.islice(found, limit + 1)]
    more = len(entries) > limit
    return FilePage(items=tuple(entries[:limit]), next_cursor=entries[limit - 1].path if more else None)


def open_sent(tree: Path, path: str) -> OpenedFile:
    """One file, to be closed by the caller."""
    inside = paths.check_relative(path)
    descriptor = below.open_file(tree, inside)
    status = os.fstat(descriptor)
    return OpenedFile(descriptor, _entry(below.Found(paths.raw_of(inside), Kind.FILE, status)), etag_of(status))


def _entry(found: below.Found) -> FileEntry:
    return FileEntry(
        path=paths.text_of(found.path),
        size=found.stat.st_size if found.kind is Kind.FILE else 0,
        modified_at=found.modified_at,
        kind=found.kind,
        target=paths.text_of(found.target),
    )
