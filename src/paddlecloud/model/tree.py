"""A folder as a value: the manifest that a client sends ahead of its bytes, and the rules it must keep.

A file is known by `content`: the SHA-256 of its bytes, or, above one chunk, the SHA-256 of its chunks' digests,
so that a file is checked chunk by chunk as it arrives and never has to be read again.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError, TooLargeError
from paddlecloud.model.units import format_size

CHUNK_BYTES = 8 * 1024 * 1024
PACK_BYTES = 16 * 1024 * 1024
PACK_CHUNKS = 4096
PACKED_BYTES = 1024 * 1024  # what is larger than this travels alone
RANGE_BYTES = 16 * 1024 * 1024  # of a large file, with a digest of its own
LEFT_OUT = "0" * 64  # in a pack: the digest of what was asked for and is not in it
_LINKS_FOLLOWED = 40
_LARGEST_NAMED = 10
_DIGEST = re.compile("[0-9a-f]{64}")
_DIGEST_BYTES = 32
_FRAME_HEAD = _DIGEST_BYTES + 4


class Kind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


class Entry(Struct, frozen=True, kw_only=True):
    """One path of a tree. `chunks` are hex SHA-256 digests of the file's consecutive CHUNK_BYTES pieces."""

    path: str
    kind: Kind
    size: int = 0
    executable: bool = False
    chunks: tuple[str, ...] = ()
    target: str = ""

    @property
    def content(self) -> str:
        """What names the file's bytes wherever they are stored."""
        if len(self.chunks) == 1:
            return self.chunks[0]
        return hashlib.sha256(b"".join(bytes.fromhex(chunk) for chunk in self.chunks)).hexdigest()

    def chunk_size(self, number: int) -> int:
        """The length that chunk `number` of this file must have."""
        return min(CHUNK_BYTES, self.size - number * CHUNK_BYTES)


class Manifest(Struct, frozen=True, kw_only=True):
    entries: tuple[Entry, ...]

    @property
    def id(self) -> str:
        """The tree's id: the same folder has the same id, whoever lists it and in whatever order."""
        digest = hashlib.sha256()
        for entry in sorted(self.entries, key=lambda entry: entry.path):
            fields = (entry.path, entry.kind, str(entry.size), str(entry.executable), entry.content, entry.target)
            digest.update("\0".join(fields).encode() + b"\0\0")
        return digest.hexdigest()

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)


class Outline(NamedTuple):
    """How many files and folders there are, also folders that only a path inside them names, and how long the paths of
    the folders are together."""

    paths: int
    folder_characters: int


def check_manifest(manifest: Manifest) -> None:
    """Refuse a manifest that could not be a folder of its own: every path, size, digest and link is hostile."""
    kinds: dict[str, Kind] = {}
    for entry in manifest.entries:
        paths.check_relative(entry.path)
        if entry.path in kinds:
            raise InvalidError(f"path {entry.path!r} is listed twice", field="path")
        kinds[entry.path] = entry.kind
        _check_entry(entry)
    _check_parents(kinds)
    targets = {entry.path: entry.target for entry in manifest.entries if entry.kind is Kind.LINK}
    links = _Links(targets)
    for link in targets:
        links.follow(link)


def outline(manifest: Manifest) -> Outline:
    """What a manifest would make, in little memory: short paths of many levels make far more folders than entries."""
    count = characters = 0
    before: list[str] = []
    for path in _in_order(entry.path for entry in manifest.entries):
        if len(path) >= paths.PATH_BYTES:
            paths.check_relative(path)
        parts = path.split("/")
        shared = _shared(parts, before)
        count += len(parts) - shared
        length = sum(len(part) + 1 for part in parts[:shared])
        for part in parts[shared:-1]:
            length += len(part) + 1
            characters += length
        before = parts
    return Outline(paths=count, folder_characters=characters)


def check_link(link: str, links: Mapping[str, str]) -> None:
    """Refuse a link that leads out of its tree, also by way of other links; `links` has every link's target."""
    _Links(links).follow(link)


def check_total(sizes: Iterable[tuple[str, int]], limit: int) -> None:
    """Refuse files, as (path, size), that are too much together, naming the ten largest."""
    sizes = list(sizes)
    total = sum(size for _, size in sizes)
    if total <= limit:
        return
    largest = heapq.nlargest(_LARGEST_NAMED, sizes, key=lambda named: named[1])
    named = "".join(f"\n  {format_size(size):>10}  {path}" for path, size in largest)
    raise TooLargeError(
        f"the folder holds {format_size(total)}, the limit is {format_size(limit)}; "
        f"leave out what is not needed with a .paddleignore file. The largest files are:{named}"
    )


def pack(chunks: Iterable[tuple[str, bytes]]) -> bytes:
    """Small chunks in one body: of each its 32 bytes of digest, its length in 4 bytes (big-endian) and itself."""
    return b"".join(
        part for digest, chunk in chunks for part in (bytes.fromhex(digest), len(chunk).to_bytes(4, "big"), chunk)
    )


def unpack(body: bytes) -> list[tuple[str, bytes]]:
    """The chunks of a pack, as (digest, bytes), unchecked but for the frames."""
    chunks: list[tuple[str, bytes]] = []
    at = 0
    while at < len(body):
        head = body[at : at + _FRAME_HEAD]
        start = at + _FRAME_HEAD
        at = start + int.from_bytes(head[_DIGEST_BYTES:], "big")
        if len(head) < _FRAME_HEAD or at > len(body):
            raise InvalidError("the pack of chunks is cut off in the middle; send it again", field="body")
        if len(chunks) == PACK_CHUNKS:
            raise InvalidError(f"the pack has more than {PACK_CHUNKS} chunks; send several", field="body")
        chunks.append((head[:_DIGEST_BYTES].hex(), body[start:at]))
    return chunks


class _Links:
    """Follows the links of one tree, each once, so that checking a manifest costs no more than its length."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets
        self._ends: dict[str, tuple[list[str], int]] = {}

    def follow(self, link: str, depth: int = 0) -> tuple[list[str], int]:
        """The parts of the path that a link leads to, and how many links that takes."""
        if link in self._ends:
            return self._ends[link]
        if self._targets[link].startswith("/"):
            raise self._refusal(link, "outside the folder; make it relative")
        if depth > _LINKS_FOLLOWED:
            raise self._refusal(link, "which goes round in a circle")
        hops = 1
        where = link.split("/")[:-1]
        for part in self._targets[link].split("/"):
            where, more = self._step(link, where, part, depth)
            hops += more
            if hops > _LINKS_FOLLOWED:
                raise self._refusal(link, f"by way of more than {_LINKS_FOLLOWED} links")
        self._ends[link] = where, hops
        return where, hops

    def _step(self, link: str, where: list[str], part: str, depth: int) -> tuple[list[str], int]:
        if part in ("", "."):
            return where, 0
        if part == "..":
            if not where:
                raise self._refusal(link, "outside the folder")
            return where[:-1], 0
        if len(where) == paths.LEVELS:
            raise self._refusal(link, f"deeper than {paths.LEVELS} levels")
        where = [*where, part]
        path = "/".join(where)
        return self.follow(path, depth + 1) if path in self._targets else (where, 0)

    def _refusal(self, link: str, why: str) -> InvalidError:
        return InvalidError(f"link {link!r} points to {self._targets[link]!r}, {why}", field="target")


def _check_entry(entry: Entry) -> None:
    def refuse(why: str) -> InvalidError:
        return InvalidError(f"{entry.kind} {entry.path!r} {why}", field="entries")

    if entry.kind is not Kind.FILE:
        if entry.size or entry.chunks or entry.executable:
            raise refuse("cannot have a size, chunks or an executable bit")
    if (entry.kind is Kind.LINK) != bool(entry.target):
        raise refuse("must have a target exactly if it is a link")
    if "\0" in entry.target or not _fits_a_path(entry.target):
        raise refuse("has a target that is no path")
    if entry.size < 0 or len(entry.chunks) != -(-entry.size // CHUNK_BYTES):
        raise refuse(f"has {len(entry.chunks)} chunks, which does not agree with its size {entry.size}")
    for chunk in entry.chunks:
        if not is_digest(chunk):
            raise refuse(f"has a chunk {chunk!r} that is no SHA-256 digest")


def _fits_a_path(target: str) -> bool:
    try:
        return len(target.encode()) < paths.PATH_BYTES
    except UnicodeEncodeError:
        return False


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def _check_parents(kinds: Mapping[str, Kind]) -> None:
    """Refuse a path below something that is no folder: in this order the first such path comes right behind it."""
    for above, path in itertools.pairwise(_in_order(kinds)):
        if kinds[above] is not Kind.FOLDER and path.startswith(f"{above}/"):
            raise InvalidError(f"path {path!r} lies below {above!r}, which is not a folder", field="path")


def _in_order(named: Iterable[str]) -> list[str]:
    """Paths sorted part by part: what is in a folder comes right behind it, whatever characters other names have."""
    return sorted(named, key=lambda path: path.replace("/", "\0"))


def _shared(parts: Sequence[str], others: Sequence[str]) -> int:
    """How many parts two paths have in common, from the top."""
    count = 0
    for one, other in zip(parts, others, strict=False):
        if one != other:
            break
        count += 1
    return count
