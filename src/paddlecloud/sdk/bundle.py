"""A folder on this machine made ready to send: which of its files go, and the manifest of their hashes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import structs

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.tree import CHUNK_BYTES, Entry, Kind, Manifest, check_manifest, check_total
from paddlecloud.sdk.exchange import Progress, Shown
from paddlecloud.sdk.ignore import Rules, deciding, read_rules
from paddlecloud.sdk.positioned import read_at

_IGNORE_FILES = (".paddleignore", ".gitignore")  # what the first says is not asked of the second
_SKIPPED_NAMES = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        ".tox",
        ".nox",
        ".DS_Store",
        ".ipynb_checkpoints",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
        "node_modules",
    }
)
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
_THREADS = min(8, os.cpu_count() or 1)
_BATCH_PIECES = 128
_WORTH_TELLING = 256 * 1024 * 1024
_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_SPECIAL = {stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was when the folder was listed; any later change is noticed."""

    path: str
    file: str
    size: int
    modified_ns: int
    executable: bool

    def read(self, number: int) -> bytes:
        """Chunk `number` of the file; InvalidError if it is not the file that was listed."""
        try:
            descriptor = os.open(self.file, _OPEN)
        except OSError as error:
            raise InvalidError(f"cannot read {self.path!r}: {error.strerror}", field="files") from None
        try:
            status = os.fstat(descriptor)
            content = _read(descriptor, number * CHUNK_BYTES, min(CHUNK_BYTES, self.size - number * CHUNK_BYTES))
        finally:
            os.close(descriptor)
        if not stat.S_ISREG(status.st_mode) or (status.st_size, status.st_mtime_ns) != (self.size, self.modified_ns):
            raise self.changed()
        return content

    def changed(self) -> InvalidError:
        return InvalidError(
            f"{self.path!r} changed while it was being sent; submit again when nothing writes to it, "
            "or leave it out with a .paddleignore file",
            field="files",
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """A folder's name and manifest, the files behind it by their paths, and the paths that were left out."""

    manifest: Manifest
    sources: Mapping[str, Source]
    skipped: tuple[str, ...] = ()
    name: str = ""


def scan(
    folder: str | Path,
    *,
    ignore_defaults: bool = True,
    limit_bytes: int | None = None,
    progress: Progress | None = None,
) -> Bundle:
    """List and hash a folder. `ignore_defaults` leaves out version control, virtual environments and caches.

    Ignore files count from the folder downwards; what lies above it says nothing. `progress` is told of a folder
    that takes its time.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file: give the folder that it is in" if folder.exists() else "is not there"
        raise InvalidError(f"files {str(folder)!r} {what}", field="files")
    listing = _Listing(ignore_defaults)
    listing.walk(str(folder), "", dict.fromkeys(_IGNORE_FILES, ()))
    # Paths were checked as they were found; where links lead can be told only now, and before all is hashed.
    _check_links(folder, listing.links)
    if limit_bytes is not None:
        check_total(((source.path, source.size) for source in listing.sources.values()), limit_bytes)
    chunks = _hash(list(listing.sources.values()), progress)
    files = (
        Entry(path=path, kind=Kind.FILE, size=source.size, executable=source.executable, chunks=chunks[path])
        for path, source in listing.sources.items()
    )
    entries = sorted((*files, *listing.links, *listing.folders), key=lambda entry: entry.path)
    manifest = Manifest(entries=tuple(entries))
    return Bundle(manifest, listing.sources, tuple(listing.skipped), name_of(folder))


def joined(first: Bundle, other: Bundle, below: str) -> Bundle:
    """Both as one, the other in this folder; where they have the same path, the first has its way."""
    sources = {f"{below}/{path}": replace(source, path=f"{below}/{path}") for path, source in other.sources.items()}
    entries = {f"{below}/{entry.path}": entry for entry in other.manifest.entries}
    moved = {path: structs.replace(entry, path=path) for path, entry in entries.items()}
    whole = {**moved, **{entry.path: entry for entry in first.manifest.entries}}
    manifest = Manifest(entries=tuple(sorted(whole.values(), key=lambda entry: entry.path)))
    skipped = (*first.skipped, *(f"{below}/{path}" for path in other.skipped))
    return Bundle(manifest, {**sources, **first.sources}, skipped, first.name)


def name_of(folder: Path) -> str:
    return paths.text_of(os.fsencode(folder.resolve().name))


def _check_links(folder: Path, links: Sequence[Entry]) -> None:
    leave_out = "or leave the link out by a line in .paddleignore or .gitignore"
    for link in links:
        if Path(link.target).is_relative_to(folder.absolute()):
            raise InvalidError(f"link {link.path!r} points to {link.target!r}: make it relative", field="files")
        if link.target.startswith("/"):
            raise InvalidError(
                f"link {link.path!r} leads out of the folder, to {link.target!r}, and nothing else is sent: "
                f"copy the file into the folder, {leave_out}",
                field="files",
            )
    try:
        check_manifest(Manifest(entries=tuple(links)))
    except InvalidError as error:
        if error.field != "target":
            raise
        raise InvalidError(f"{error.message}: copy the file into its place, {leave_out}", field="files") from None


@dataclass(slots=True)
class _Listing:
    ignore_defaults: bool
    sources: dict[str, Source] = field(default_factory=dict)
    links: list[Entry] = field(default_factory=list)
    folders: list[Entry] = field(default_factory=list)  # those with nothing in them
    skipped: list[str] = field(default_factory=list)

    def walk(self, folder: str, prefix: str, chains: Mapping[str, tuple[Rules, ...]]) -> None:
        """Take in a folder, sorted by name; `chains` are the ignore files met on the way to it."""
        children = _children(folder, prefix)
        names = {child.name for child in children}
        chains = {
            name: (*chain, _read_rules(f"{folder}/{name}", prefix)) if name in names else chain
            for name, chain in chains.items()
        }
        for child in children:
            path = prefix + child.name
            is_folder = child.is_dir(follow_symlinks=False)
            if self._ignored(child, path, is_folder, chains):
                self.skipped.append(path + "/" if is_folder else path)
                continue
            paths.check_relative(path)
            if is_folder:
                self._descend(child, path, chains)
            else:
                self._take(child, path)

    def _descend(self, child: os.DirEntry[str], path: str, chains: Mapping[str, tuple[Rules, ...]]) -> None:
        before = len(self.sources), len(self.links), len(self.folders)
        self.walk(child.path, path + "/", chains)
        if before != (len(self.sources), len(self.links), len(self.folders)):
            return
        if f"{path}/.gitignore" in self.skipped:  # of results that were brought here: nothing of it is meant to be sent
            self.skipped.append(f"{path}/")
        else:
            self.folders.append(Entry(path=path, kind=Kind.FOLDER))

    def _ignored(
        self, child: os.DirEntry[str], path: str, is_folder: bool, chains: Mapping[str, tuple[Rules, ...]]
    ) -> bool:
        if not any(chains.values()):
            return self.ignore_defaults and _is_skipped(child, is_folder)
        asked, *others = (deciding(chain, path, is_folder) for chain in chains.values())
        if self.ignore_defaults and _is_skipped(child, is_folder):
            # Only by its name: the `!*/` of many ignore files asks for folders, not for .git.
            return asked is None or asked.ignores or not asked.literal
        rule = next((rule for rule in (asked, *others) if rule is not None), None)
        return rule is not None and rule.ignores

    def _take(self, child: os.DirEntry[str], path: str) -> None:
        status = child.stat(follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            self.links.append(Entry(path=path, kind=Kind.LINK, target=os.readlink(child.path)))
        elif stat.S_ISREG(status.st_mode):
            executable = bool(status.st_mode & stat.S_IXUSR)
            self.sources[path] = Source(path, child.path, status.st_size, status.st_mtime_ns, executable)
        else:
            kind = _SPECIAL.get(stat.S_IFMT(status.st_mode), "no file")
            raise InvalidError(f"{path!r} is {kind}: leave it out with a .paddleignore file", field="files")


def _is_skipped(child: os.DirEntry[str], is_folder: bool) -> bool:
    return child.name in _SKIPPED_NAMES or (is_folder and os.path.exists(f"{child.path}/{_VIRTUAL_ENVIRONMENT}"))


def _children(folder: str, prefix: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as children:
            return sorted(children, key=lambda child: child.name)
    except OSError as error:
        raise InvalidError(f"cannot list {prefix or folder!r}: {error.strerror}", field="files") from None


def _read_rules(file: str, prefix: str) -> Rules:
    if not stat.S_ISREG(os.lstat(file).st_mode):
        return read_rules("", prefix)
    try:
        return read_rules(Path(file).read_text("utf-8", "surrogateescape"), prefix)
    except OSError as error:
        raise InvalidError(f"cannot read {file!r}: {error.strerror}", field="files") from None


def _hash(sources: Sequence[Source], progress: Progress | None) -> dict[str, tuple[str, ...]]:
    """The digests of each file's chunks. hashlib lets go of the interpreter, so threads hash side by side."""

    def digests(batch: Sequence[tuple[Source, int]]) -> list[str]:
        return [hashlib.sha256(source.read(number)).hexdigest() for source, number in batch]

    found: dict[str, list[str]] = {source.path: [] for source in sources}
    size = sum(source.size for source in sources)
    shown = Shown(progress if size >= _WORTH_TELLING else None)
    shown.total(size)
    with ThreadPoolExecutor(_THREADS, "hash") as threads:
        batches = list(_batches(sources))
        try:
            for batch, hashed in zip(batches, threads.map(digests, batches), strict=True):
                for (source, number), digest in zip(batch, hashed, strict=True):
                    found[source.path].append(digest)
                    shown.advance(min(CHUNK_BYTES, source.size - number * CHUNK_BYTES))
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise
    return {path: tuple(chunks) for path, chunks in found.items()}


def _batches(sources: Sequence[Source]) -> Iterator[list[tuple[Source, int]]]:
    """Chunks in order, as many at a time as make a good piece of work for one thread."""
    batch: list[tuple[Source, int]] = []
    size = 0
    for source in sources:
        for number in range(-(-source.size // CHUNK_BYTES)):
            batch.append((source, number))
            size += min(CHUNK_BYTES, source.size)
            if size >= CHUNK_BYTES or len(batch) == _BATCH_PIECES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _read(descriptor: int, offset: int, count: int) -> bytes:
    pieces = []
    while count > 0 and (piece := read_at(descriptor, count, offset)):
        pieces.append(piece)
        offset, count = offset + len(piece), count - len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
