"""Files of this machine on their way into the PFS: small ones many at a time, large ones in pieces side by side.

A large file that was broken off goes on where it stopped, and of one that is there already only what differs is sent:
the server compares its pieces by their SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from paddlecloud.model import paths, tree, wire
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.transfers import FilePlan, FileRequest, FolderRequest, Packed
from paddlecloud.sdk.bundle import Source
from paddlecloud.sdk.exchange import Http, Progress, Shown, in_packs, in_parallel
from paddlecloud.sdk.tally import Tally

_BYTES = {"Content-Type": "application/octet-stream"}


@dataclass(frozen=True, slots=True)
class Sent:
    """How many files and bytes are in the PFS now; `skipped` are links and odd things, which are not sent. `there` of
    the bytes were there already, by an upload that was broken off or a file that this one replaces."""

    files: int
    size: int
    skipped: tuple[str, ...] = ()
    there: int = 0


Check = Callable[[Mapping[str, int]], None]  # raises if files of these sizes, by path, are too much


def put(http: Http, local: Path, path: str, progress: Progress | None = None, *, check: Check) -> Sent:
    """Bring a file to this very path, or what is in a folder below it."""
    if not local.is_dir():
        return put_sources(http, [(source_of(local, local.name), path)], progress)
    skipped: list[str] = []
    found = [(source, f"{path}/{source.path}") for source in _below(str(local), "", skipped)]
    check({target: source.size for source, target in found})
    sent = put_sources(http, found, progress)
    for folder in _empty_folders(local):
        asked = FolderRequest(path=f"{path}/{folder}" if folder else path)
        http.request("POST", "/v1/folders", body=wire.encode(asked), repeatable=True)
    return Sent(sent.files, sent.size, tuple(skipped), sent.there)


def put_sources(http: Http, wanted: Sequence[tuple[Source, str]], progress: Progress | None = None) -> Sent:
    shown, tally = Shown(progress), Tally(len(wanted))
    size = sum(source.size for source, _ in wanted)
    shown.total(size)
    small = [one for one in wanted if one[0].size <= tree.PACKED_BYTES]
    middle = [one for one in wanted if tree.PACKED_BYTES < one[0].size <= tree.CHUNK_BYTES]
    packs = in_packs(small, lambda one: one[0].size)
    calls = [
        *(partial(_send_packed, http, pack, shown, tally) for pack in packs),
        *(partial(_send_whole, http, source, path, shown, tally) for source, path in middle),
    ]
    there = 0
    with tally.telling():
        in_parallel(calls, shown)
        for source, path in wanted:
            if source.size > tree.CHUNK_BYTES:
                there += _send_large(http, source, path, shown)
                tally.add()
    return Sent(len(wanted), size, there=there)


def _send_packed(http: Http, pack: Sequence[tuple[Source, str]], shown: Shown, tally: Tally) -> None:
    contents = [wire.encode(Packed(paths=tuple(path for _, path in pack)))]
    contents += [source.read(0) for source, _ in pack]
    frames = ((hashlib.sha256(content).hexdigest(), content) for content in contents)
    http.request("POST", "/v1/packs", body=tree.pack(frames), headers=_BYTES, repeatable=True)
    tally.add(len(pack))
    shown.advance(sum(source.size for source, _ in pack))


def _send_whole(http: Http, source: Source, path: str, shown: Shown, tally: Tally) -> None:
    http.request("PUT", f"/v1/files{path}", body=source.read(0), headers=_BYTES, repeatable=True)
    tally.add()
    shown.advance(source.size)


def _send_large(http: Http, source: Source, path: str, shown: Shown) -> int:
    """How many bytes need not be sent, since they are there already."""
    digests: dict[int, str] = {}
    numbers = range(-(-source.size // tree.CHUNK_BYTES))

    def read(number: int) -> None:
        digests[number] = hashlib.sha256(source.read(number)).hexdigest()

    in_parallel([partial(read, number) for number in numbers], shown)
    asked = FileRequest(path=path, size=source.size, chunks=tuple(digests[number] for number in numbers))
    answer = http.request("POST", "/v1/drafts", body=wire.encode(asked), repeatable=True)
    missing = wire.decode(FilePlan, answer.data).missing
    there = source.size - sum(_length(source, number) for number in missing)
    shown.advance(there)

    def send(number: int) -> None:
        content = source.read(number)
        if hashlib.sha256(content).hexdigest() != digests[number]:
            raise source.changed()
        where = {"offset": number * tree.CHUNK_BYTES}
        http.request("PUT", f"/v1/drafts{path}", query=where, body=content, headers=_BYTES, repeatable=True)
        shown.advance(len(content))

    in_parallel([partial(send, number) for number in missing], shown)
    return there


def _length(source: Source, number: int) -> int:
    return min(tree.CHUNK_BYTES, source.size - number * tree.CHUNK_BYTES)


def source_of(file: Path, path: str) -> Source:
    try:
        found = file.stat()
    except OSError as error:
        raise InvalidError(f"cannot read {str(file)!r}: {(error.strerror or '').lower()}", field="source") from None
    if not stat.S_ISREG(found.st_mode):
        raise InvalidError(f"{str(file)!r} is not a plain file", field="source")
    return Source(path, str(file.resolve()), found.st_size, found.st_mtime_ns, bool(found.st_mode & stat.S_IXUSR))


def _below(folder: str, prefix: str, skipped: list[str]) -> Iterator[Source]:
    for child in _children(folder):
        path = prefix + paths.text_of(os.fsencode(child.name))
        if child.is_dir(follow_symlinks=False):
            yield from _below(child.path, path + "/", skipped)
        elif child.is_file(follow_symlinks=False):
            found = child.stat(follow_symlinks=False)
            executable = bool(found.st_mode & stat.S_IXUSR)
            yield Source(path, child.path, found.st_size, found.st_mtime_ns, executable)
        else:
            skipped.append(path)


def _empty_folders(folder: Path) -> Iterator[str]:
    for above, folders, files in os.walk(folder):
        if not folders and not files:
            relative = os.path.relpath(above, folder)
            yield "" if relative == "." else paths.text_of(os.fsencode(relative))


def _children(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as children:
            return sorted(children, key=lambda child: child.name)
    except OSError as error:
        raise InvalidError(f"cannot list {folder!r}: {(error.strerror or '').lower()}", field="source") from None
