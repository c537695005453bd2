"""Files of the PFS on their way to this machine: each is gathered beside its place and gets its name when it is whole.

Small files come many at a time, large ones in ranges side by side; each is compared with its digest. What is here
already is replaced; an unfinished file is gone on with.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError, PaddleCloudError
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import PACKED_BYTES, RANGE_BYTES, Kind
from paddlecloud.sdk.exchange import Http, Progress, Shown, in_packs, in_parallel
from paddlecloud.sdk.fetching import Fetching, fetch_pack
from paddlecloud.sdk.ranges import Ranges

_LARGE_BYTES = 2 * RANGE_BYTES


@dataclass(frozen=True, slots=True)
class Fetched:
    files: int
    size: int
    skipped: tuple[str, ...] = ()  # links, which are not brought


def fetch(http: Http, entries: Sequence[FileEntry], root: str, target: Path, progress: Progress | None) -> Fetched:
    """Bring what was listed at and below the path `root` to `target`: a file to that very name, or a folder's content
    into that folder."""
    shown = Shown(progress)
    files = [(entry, _local(entry, root, target)) for entry in entries if entry.kind is Kind.FILE]
    shown.total(sum(entry.size for entry, _ in files))
    with _writing(target):
        for entry in entries:
            if entry.kind is Kind.FOLDER:
                os.makedirs(_local(entry, root, target), exist_ok=True)
        for folder in {os.path.dirname(local) for _, local in files}:
            os.makedirs(folder or ".", exist_ok=True)
        _fetch(http, files, shown)
    links = tuple(entry.path for entry in entries if entry.kind is Kind.LINK)
    return Fetched(len(files), sum(entry.size for entry, _ in files), links)


def _fetch(http: Http, files: Sequence[tuple[FileEntry, str]], shown: Shown) -> None:
    for entry, local in files:
        if entry.size >= _LARGE_BYTES:
            _fetch_large(http, entry, local, shown)
    small = [one for one in files if one[0].size <= PACKED_BYTES]
    middle = [one for one in files if PACKED_BYTES < one[0].size < _LARGE_BYTES]
    calls = [
        *(partial(_fetch_small, http, pack, shown) for pack in in_packs(small, lambda one: one[0].size)),
        *(partial(_fetch_whole, http, entry, local, shown) for entry, local in middle),
    ]
    in_parallel(calls, shown)


def _fetch_large(http: Http, entry: FileEntry, local: str, shown: Shown) -> None:
    part = _part(entry, local)
    ranges = Ranges(http, f"/v1/files{entry.path}", entry, part, shown)
    if ranges.run():
        os.replace(part, local)
    else:
        _fetch_whole(http, entry, local, shown, ranges.told)


def _fetch_small(http: Http, pack: Sequence[tuple[FileEntry, str]], shown: Shown) -> None:
    came = 0
    contents = fetch_pack(http, "/v1/packs/read", [entry for entry, _ in pack])
    for (entry, local), content in zip(pack, contents, strict=True):
        if content is None:
            _fetch_whole(http, entry, local, shown)
            continue
        part = _part(entry, local)
        with open(part, "wb", buffering=0) as file:
            file.write(content)
        os.replace(part, local)
        came += entry.size
    shown.advance(came)


def _fetch_whole(http: Http, entry: FileEntry, local: str, shown: Shown, told: int = 0) -> None:
    part = _part(entry, local)
    Fetching(http, f"/v1/files{entry.path}", entry, Path(part), shown, told).run()
    os.replace(part, local)


def _part(entry: FileEntry, local: str) -> str:
    """Where a file is gathered: another name once it has changed on the server."""
    version = f"{entry.path}\0{entry.size}\0{entry.modified_at.isoformat()}"
    folder, _, name = local.rpartition("/")
    short = hashlib.sha256(version.encode()).hexdigest()[:12]
    hidden = f".{name[:200]}.{short}.part"
    return f"{folder}/{hidden}" if folder else hidden


def _local(entry: FileEntry, root: str, target: Path) -> str:
    """Where a file belongs here; the server is trusted with nothing outside of `target`."""
    below = entry.path[len(root) :].lstrip("/")
    if not entry.path.startswith(root):
        raise InvalidError(f"the server names {entry.path!r}, which is not below {root!r}")
    if not below:
        return str(target)
    return f"{target}/{os.fsdecode(paths.raw_of(paths.check_relative(below)))}"


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Say what this machine's disk refuses in our words."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        todo = "make room, then type the same again" if full else "name a place that you can write to"
        said = (error.strerror or str(error)).lower()
        raise PaddleCloudError(f"cannot write to {str(target)!r}: {said}; {todo}") from None
