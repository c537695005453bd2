"""Brings a job's results into a folder here, and trusts the server with nothing outside of it.

The folder stands for `output`: `output/<job>/log/…` becomes `<job>/log/…`. Small files come many at a time, large ones
in ranges side by side; each is compared with its digest before it gets its name. What is here already stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import count
from pathlib import Path

from paddlecloud.model import paths, wire
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.transfers import FileEntry, FilePage
from paddlecloud.model.tree import PACKED_BYTES, RANGE_BYTES, Kind
from paddlecloud.sdk.exchange import Http, Progress, Shown, in_packs, in_parallel
from paddlecloud.sdk.fetching import Fetching, fetch_pack
from paddlecloud.sdk.ranges import Ranges
from paddlecloud.sdk.target import Target

_PAGE = 5000
_LARGE_BYTES = 2 * RANGE_BYTES


@dataclass(frozen=True, slots=True)
class Downloaded:
    """What there is now, and how many `fetched` files of it came; `skipped` are links that lead out of the results."""

    files: int
    size: int
    skipped: tuple[str, ...] = ()
    fetched: int = 0


def download(
    http: Http,
    job: str,
    prefix: str,
    folder: Path,
    progress: Progress | None = None,
    *,
    resume: bool = False,
    update: bool = False,
    settled: bool = False,
    ignored: bool = False,
    starts: str = "",
) -> Downloaded:
    """Bring what is at and below `prefix` ("" is all) into `folder`, which must be new, or unfinished to `resume`.

    With `update` it may also be there from an earlier download: what is new or has changed since then is fetched, and
    nothing is removed. A file is the same if its size and time are. `settled`: the job has ended. `ignored`: what is
    brought is left out of uploads of a folder that it lies in. `starts` is what the paths wanted begin with, in whole.
    """
    if not paths.is_job_id(job):  # it names a folder here, and may be a server's word
        raise InvalidError(f"{job[:80]!r} is not a job's id", field="job")
    target = Target(folder, job)
    _check_folder(target, resume or update, update)
    shown = Shown(progress)
    listed = _List(http, job, prefix)
    entries = {paths.below_output(job, entry.path): entry for entry in listed if entry.path.startswith(starts)}
    target.listed_at, target.settled = listed.began_at, settled
    files = {below: entry for below, entry in entries.items() if entry.kind is Kind.FILE}
    shown.total(sum(entry.size for entry in files.values()))
    with target.writing():
        target.begin(ignored=ignored)
        for below, entry in entries.items():
            if entry.kind is Kind.FOLDER:
                target.make_folder(below)
    wanted = {below: entry for below, entry in files.items() if not target.has(entry, below)}
    shown.advance(sum(entry.size for below, entry in files.items() if below not in wanted))
    _fetch(http, target, wanted, shown)
    with target.writing():
        links = {below: entry.target for below, entry in entries.items() if entry.kind is Kind.LINK}
        skipped = target.make_links(links)
        target.end()
    return Downloaded(len(files), sum(entry.size for entry in files.values()), tuple(skipped), len(wanted))


def unused(folder: Path) -> Path:
    """A name that nothing has: `output-2` beside `output`; in a folder that has no name of its own, `output`."""
    if folder.name in ("", ".."):  # such as ".", "/" and "../.."
        inner = folder / "output"
        return unused(inner) if os.path.lexists(inner) else inner
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(path for path in numbered if not os.path.lexists(path))


def _check_folder(target: Target, resume: bool, update: bool) -> None:
    if not os.path.lexists(target.folder):
        return
    whose = target.whose()
    if (resume and whose == target.job) or (update and not whose):
        return
    what = "exists, with an unfinished download in it" if whose else "exists"
    name = f"name a new folder, such as {unused(target.folder)}"
    raise InvalidError(f"{str(target.folder)!r} {what}: {name}", field="download_dir")


class _List:
    """A job's results, page by page. `began_at` is the server's time of the first page, if it tells it."""

    def __init__(self, http: Http, job: str, prefix: str) -> None:
        self._http = http
        self._path = f"/v1/jobs/{job}/files"
        self._prefix = prefix
        self.began_at: datetime | None = None

    def __iter__(self) -> Iterator[FileEntry]:
        cursor: str | None = None
        while True:
            query = {"prefix": self._prefix or None, "cursor": cursor, "limit": _PAGE}
            answer = self._http.request("GET", self._path, query=query)
            if self.began_at is None:
                self.began_at = _date(answer.headers.get("date", ""))
            page = wire.decode_answer(FilePage, answer.data)
            yield from page.items
            if page.next_cursor is None:
                return
            cursor = page.next_cursor


def _date(text: str) -> datetime | None:
    try:
        return parsedate_to_datetime(text)
    except ValueError:
        return None


def _fetch(http: Http, target: Target, wanted: dict[str, FileEntry], shown: Shown) -> None:
    for below, entry in wanted.items():
        if entry.size >= _LARGE_BYTES:
            with target.writing():
                _fetch_large(http, target, below, entry, shown)
    small = [(below, entry) for below, entry in wanted.items() if entry.size <= PACKED_BYTES]
    packs = in_packs(small, lambda named: named[1].size)
    others = [(below, entry) for below, entry in wanted.items() if PACKED_BYTES < entry.size < _LARGE_BYTES]
    calls = [
        *(partial(_fetch_small, http, target, pack, shown) for pack in packs),
        *(partial(_fetch_whole, http, target, below, entry, shown) for below, entry in others),
    ]
    in_parallel(calls, shown)


def _fetch_large(http: Http, target: Target, below: str, entry: FileEntry, shown: Shown) -> None:
    part = target.part(entry)
    ranges = Ranges(http, _path(target, below), entry, part, shown)
    if target.has_rested(entry) and ranges.run():
        target.finish(part, entry, below)
    else:
        _fetch_whole(http, target, below, entry, shown, ranges.told)


def _fetch_small(http: Http, target: Target, pack: Sequence[tuple[str, FileEntry]], shown: Shown) -> None:
    with target.writing():
        contents = fetch_pack(http, f"/v1/jobs/{target.job}/pack", [entry for _, entry in pack])
        came = 0
        for (below, entry), content in zip(pack, contents, strict=True):
            if content is None:
                _fetch_whole(http, target, below, entry, shown)
            else:
                target.write(content, entry, below)
                came += entry.size
        shown.advance(came)


def _fetch_whole(http: Http, target: Target, below: str, entry: FileEntry, shown: Shown, told: int = 0) -> None:
    with target.writing():
        part = target.part(entry)
        Fetching(http, _path(target, below), entry, Path(part), shown, told).run()
        target.finish(part, entry, below)


def _path(target: Target, below: str) -> str:
    return f"/v1/jobs/{target.job}/files/{below}"
