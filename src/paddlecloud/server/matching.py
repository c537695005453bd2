"""What patterns of paths mean in a store: `*`, `?` and `[…]`, each within one part of a path."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence

from paddlecloud.files.base import Store
from paddlecloud.model import pfs
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind

_PAGE = 10_000


def entry_at(store: Store, path: str) -> FileEntry | None:
    try:
        return store.stat(path)
    except NotFoundError:
        return None


def matches(store: Store, folder: str, parts: Sequence[str]) -> Iterator[FileEntry]:
    """What in a folder the parts of a pattern mean, one below the other."""
    part, rest = parts[0], parts[1:]
    if not pfs.is_pattern(part):
        found = entry_at(store, f"{folder}/{part}")
        candidates: Iterable[FileEntry] = [] if found is None else [found]
    else:
        # Go, whose patterns these are, writes [^a] where a shell also writes [!a].
        fits = re.compile(fnmatch.translate(part.replace("[^", "[!")))
        candidates = (entry for entry in _all_in(store, folder) if fits.match(_name(entry)))
    for entry in candidates:
        if not rest:
            yield entry
        elif entry.kind is Kind.FOLDER:
            yield from matches(store, entry.path.rstrip("/"), rest)


def _all_in(store: Store, folder: str) -> Iterator[FileEntry]:
    """What is in a folder, never more than a page of it in memory."""
    after = ""
    while True:
        page = store.list(folder, after=after, limit=_PAGE)
        yield from page
        if len(page) < _PAGE:
            return
        after = _name(page[-1])


def _name(entry: FileEntry) -> str:
    return entry.path.rpartition("/")[2]
