"""The files that a job was submitted with, on their way back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from paddlecloud.model import paths
from paddlecloud.model.transfers import FileEntry, FilePage
from paddlecloud.model.tree import Kind
from paddlecloud.sdk.exchange import Http, Progress, Shown, in_parallel
from paddlecloud.sdk.fetching import Fetching

_PAGE = 5000


def sent_files(http: Http, job: str) -> Iterator[FileEntry]:
    """What the job's folder held, by its paths there; NotFoundError: the server does not keep it any more."""
    from paddlecloud.model import wire

    cursor: str | None = None
    while True:
        answer = http.request("GET", f"/v1/jobs/{job}/sent", query={"cursor": cursor, "limit": _PAGE})
        page = wire.decode_answer(FilePage, answer.data)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def bring(http: Http, job: str, folder: Path, progress: Progress | None = None) -> int:
    """Bring the files, and no links, into a folder in which nothing of these names is; how many."""
    files = [entry for entry in sent_files(http, job) if entry.kind is Kind.FILE]
    shown = Shown(progress)
    shown.total(sum(entry.size for entry in files))
    in_parallel([partial(_bring_one, http, job, entry, folder, shown) for entry in files], shown)
    return len(files)


def _bring_one(http: Http, job: str, entry: FileEntry, folder: Path, shown: Shown) -> None:
    below = paths.check_relative(entry.path)  # the server is trusted with nothing outside of the folder
    local = folder / os.fsdecode(paths.raw_of(below))
    local.parent.mkdir(parents=True, exist_ok=True)
    part = local.with_name(f".{local.name[:200]}.part")
    Fetching(http, f"/v1/jobs/{job}/sent/{below}", entry, part, shown).run()
    os.replace(part, local)
