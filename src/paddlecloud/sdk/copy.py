"""Files that the server copies within the PFS: many in one call, told line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from paddlecloud.model import wire
from paddlecloud.model.errors import BY_CODE, InvalidError, PaddleCloudError, UnreachableError
from paddlecloud.model.transfers import CopiedFile, CopyReport, CopyRequest, FileEntry, FolderRequest
from paddlecloud.model.tree import Kind
from paddlecloud.sdk.connections import BrokenError
from paddlecloud.sdk.exchange import Http, Progress, Shown, in_parallel
from paddlecloud.sdk.tally import Tally

_IN_A_CALL = 1000


@dataclass(frozen=True, slots=True)
class Copied:
    files: int
    size: int
    skipped: tuple[str, ...] = ()  # links, which are not copied


def copy(http: Http, entries: Sequence[FileEntry], root: str, target: str, progress: Progress | None) -> Copied:
    """Copy what was listed at and below the path `root` to the path `target`."""
    shown = Shown(progress)
    files = [entry for entry in entries if entry.kind is Kind.FILE]
    size = sum(entry.size for entry in files)
    shown.total(size)
    pairs = [CopiedFile(source=entry.path, target=copied_to(entry, root, target)) for entry in files]
    tally = Tally(len(pairs))
    with tally.telling():
        for folder in _empty_folders(entries, root, target):
            http.request("POST", "/v1/folders", body=wire.encode(FolderRequest(path=folder)), repeatable=True)
        calls = [pairs[start : start + _IN_A_CALL] for start in range(0, len(pairs), _IN_A_CALL)]
        in_parallel([partial(_copy, http, some, shown, tally) for some in calls], shown)
    return Copied(len(files), size, tuple(entry.path for entry in entries if entry.kind is Kind.LINK))


def copied_to(entry: FileEntry, root: str, target: str) -> str:
    return target + entry.path[len(root) :]


def _empty_folders(entries: Sequence[FileEntry], root: str, target: str) -> Iterator[str]:
    """Those that no file makes; the folder itself, if nothing is in it."""
    above = {entry.path.rpartition("/")[0] for entry in entries}
    for entry in entries:
        if entry.kind is Kind.FOLDER and entry.path not in above:
            yield copied_to(entry, root, target)
    if not entries:
        yield target


def _copy(http: Http, files: Sequence[CopiedFile], shown: Shown, tally: Tally) -> None:
    body = wire.encode(CopyRequest(files=tuple(files)))
    before = CopyReport(files=0, size=0)
    try:
        with closing(http.request("POST", "/v1/copies", body=body, repeatable=True, stream=True)) as answer:
            for report in map(_report, _lines(answer.stream())):
                tally.add(report.files - before.files)
                shown.advance(report.size - before.size)
                before = report
    except BrokenError as error:
        raise UnreachableError(f"the connection broke while the server copied ({error})") from None
    if before.code:
        raise BY_CODE.get(before.code, PaddleCloudError)(before.message)
    if not before.last:
        raise UnreachableError("the server ended while it copied")


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    held = b""
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        yield from whole


def _report(line: bytes) -> CopyReport:
    try:
        return wire.decode_answer(CopyReport, line)
    except InvalidError as error:
        raise PaddleCloudError(f"the server tells of its copies in a way that is not known: {error.message}") from None
