"""What stores find, as pages of entries by the names that callers know."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.pfs import Place
from paddlecloud.model.transfers import FileEntry, FilePage
from paddlecloud.model.tree import Kind

PAGE = 10_000
_EPOCH = datetime.fromtimestamp(0, UTC)


def check_limit(limit: int) -> None:
    if not 0 < limit <= PAGE:
        raise InvalidError(f"limit {limit} is not between 1 and {PAGE}", field="limit")


def page(entries: Sequence[FileEntry], limit: int) -> FilePage:
    more = len(entries) > limit
    return FilePage(items=tuple(entries[:limit]), next_cursor=entries[limit - 1].path if more else None)


def below_behind(place: Place, cursor: str) -> str:
    """The part of a cursor, a path of the page before, below the place."""
    whole = place.path + "/"
    if not cursor.startswith(whole) or not cursor[len(whole) :].strip("/"):
        raise InvalidError(f"cursor {cursor!r} is not one of this list; leave it out to begin anew", field="cursor")
    return paths.check_relative(cursor[len(whole) :].rstrip("/"), "cursor")


def named(entry: FileEntry, place: Place, root: str) -> FileEntry:
    """What a store found at or below `root`, as the place names it."""
    below = entry.path.rstrip("/")[len(root) :].strip("/")
    path = f"{place.path}/{below}" if below else place.path
    return replace(entry, path=path)


def folder(path: str) -> FileEntry:
    return FileEntry(path=path, size=0, modified_at=_EPOCH, kind=Kind.FOLDER)
