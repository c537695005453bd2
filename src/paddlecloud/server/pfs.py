"""The one file tree behind every face of the server: each call says who asks, by which path, and is checked here.

The path is brought into its normal form, compared with who asks (model/pfs.py), and only then does a store hear of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from paddlecloud.files.base import Store, StoredFile, Usage
from paddlecloud.model import pfs
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, PaddleCloudError
from paddlecloud.model.pfs import Access, Area, Place, Who
from paddlecloud.model.transfers import Datacenter, FileEntry, FilePage
from paddlecloud.model.tree import PACKED_BYTES, Kind
from paddlecloud.server.attributes import Noted, NothingNoted
from paddlecloud.server.homes import make_output
from paddlecloud.server.matching import entry_at, matches
from paddlecloud.server.pages import below_behind, check_limit, folder, named, page
from paddlecloud.server.pfs_words import in_its_words, naming
from paddlecloud.server.transfers import packed

_MATCHES = 100_000


class Room(Protocol):
    """What users may keep."""

    def check(self, user: str | None, datacenter: str, *, written: int, kept: int) -> None:
        """Raise if the disk has no room for what is written now, or `kept` is more than the user may keep beside what
        they have; None: it is nobody's own."""
        ...

    def take(self, user: str | None, datacenter: str, *, written: int, kept: int, files: int) -> None:
        """Check, and count it at once."""
        ...

    def note(self, user: str, datacenter: str, more_bytes: int, more_files: int) -> None: ...


class Pfs:
    """`stores` are by datacenter, the first being the one with the results of jobs, which `outputs` holds by user.
    `discard` lets all results of one job go, by user and job."""

    def __init__(
        self,
        *,
        stores: Mapping[str, Store],
        outputs: Store,
        room: Room,
        discard: Callable[[str, str], None],
        shared: Callable[[str], Mapping[tuple[str, str], bool]] = lambda _: {},
        noted: Noted | None = None,
    ) -> None:
        """`shared` are the folders that are shared with a user, as they are at the moment (`Who.shared`)."""
        self._shared = shared
        self._stores = stores
        self._outputs = outputs
        self._room = room
        self._discard = discard
        self._noted = noted or NothingNoted()
        self._made: set[tuple[str, str]] = set()

    @property
    def datacenters(self) -> Sequence[str]:
        return tuple(self._stores)

    def describe(self, user: str) -> Sequence[Datacenter]:
        return [
            Datacenter(name=name, home=pfs.home(name, user), public=pfs.public(name), store=store.kind)
            for name, store in self._stores.items()
        ]

    def locate(self, who: Who, path: str, access: Access) -> Place:
        """What a path means, if the caller may do this there."""
        place = pfs.locate(path, self.datacenters)
        if place.area is Area.SHARED:
            # Asked for each time: who left a group a moment ago has nothing of it any more.
            who = replace(who, shared=self._shared(who.user))
        pfs.check(place, who, access)
        return place

    def to_publish(self, who: Who, path: str) -> FileEntry:
        """What is at a path, if the caller may let everybody read it."""
        place = self.locate(who, path, Access.READ)
        if place.area is Area.SHARED:
            raise ForbiddenError(f"{place.path} is shared with a group, not with everybody: publish a copy of your own")
        return self._stat(place)

    def stat(self, who: Who, path: str) -> FileEntry:
        return self._stat(self.locate(who, path, Access.READ))

    def list(self, who: Who, path: str, *, cursor: str | None = None, limit: int = 1000) -> FilePage:
        """What is in a folder, or the file itself; `cursor` is that of the page before."""
        place = self.locate(who, path, Access.READ)
        check_limit(limit)
        if place.area is Area.ABOVE:
            return FilePage(items=tuple(self._above(place, who)))
        found = self._stat(place)
        if found.kind is not Kind.FOLDER:
            return FilePage(items=(found,))
        store, root = self.at(place)
        behind = "" if cursor is None else below_behind(place, cursor)
        with in_its_words(place):
            entries = store.list(root, after=behind, limit=limit + 1)
        return page([named(entry, place, root) for entry in entries], limit)

    def walk(self, who: Who, path: str, *, cursor: str | None = None, limit: int = 1000) -> FilePage:
        """All below a folder, or the file itself, each folder before what is in it."""
        place = self.locate(who, path, Access.READ)
        check_limit(limit)
        if place.area is Area.ABOVE:
            raise InvalidError(f"{place.path} has too much below it: name a folder in it", field="path")
        found = self._stat(place)
        if found.kind is not Kind.FOLDER:
            return FilePage(items=(found,))
        store, root = self.at(place)
        behind = "" if cursor is None else below_behind(place, cursor)
        if place.area is Area.HOME and not place.below and place.datacenter == self.datacenters[0]:
            entries = self._walk_home(place, store, behind)
        else:
            after = f"{root}/{behind}" if behind else ""
            entries = (named(entry, place, root) for entry in store.walk(root, after=after))
        with in_its_words(place):
            return page(list(islice(entries, limit + 1)), limit)

    def _walk_home(self, place: Place, store: Store, behind: str) -> Iterator[FileEntry]:
        """All of a home, with what jobs left where it is shown."""
        shown = pfs.locate(f"{place.path}/{pfs.OUTPUT}", self.datacenters)
        inner = f"{pfs.OUTPUT}/"
        if behind == pfs.OUTPUT or behind.startswith(inner):
            yield from self._walk_outputs(shown, behind[len(inner) :])
        for entry in store.walk(place.root, after=f"{place.root}/{behind}" if behind else ""):
            found = named(entry, place, place.root)
            if found.path.startswith(f"{shown.path}/"):
                continue
            yield found
            if found.path == shown.path:
                yield from self._walk_outputs(shown, "")

    def _walk_outputs(self, shown: Place, behind: str) -> Iterator[FileEntry]:
        store, root = self.at(shown)
        for entry in store.walk(root, after=f"{root}/{behind}" if behind else ""):
            yield named(entry, shown, root)

    def glob(self, who: Who, pattern: str, access: Access = Access.READ) -> Sequence[FileEntry]:
        """What a pattern means, `*` and `?` and `[…]` being within one part of the path; a plain path means itself.

        Only below what is the caller's own to read may a part be a pattern.
        """
        place = self.locate(who, pattern, access)
        if not pfs.is_pattern(place.below):
            return [self._stat(place)]
        store, root = self.at(replace(place, below=""))
        top = replace(place, below="", parts=tuple(place.top.split("/")[1:]))
        with in_its_words(top):
            found = islice(matches(store, root, place.below.split("/")), _MATCHES + 1)
            entries = [named(entry, top, root) for entry in found]
        if len(entries) > _MATCHES:
            raise InvalidError(f"{pattern!r} means more than {_MATCHES} files: name fewer", field="path")
        return entries

    def open(self, who: Who, path: str) -> StoredFile:
        """A file, to be closed by the caller."""
        place = self.locate(who, path, Access.READ)
        if place.area is Area.ABOVE:
            raise ConflictError(f"{place.path} is a folder; name a file in it")
        with in_its_words(place):
            store, inside = self.at(place)
            return store.open(inside)

    def pack(self, who: Who, named: Sequence[str]) -> Iterator[bytes]:
        """Small files as one pack (see `tree.pack`), in the order of their paths, in pieces.

        A path that is of no file of the caller's, or of one that is too much for this pack, stands there as LEFT_OUT.
        """
        return packed(map(partial(self._small, who), named), len(named))

    def write(self, who: Who, path: str, pieces: Iterable[bytes], *, size: int) -> FileEntry:
        """Make or replace a file of at most this size; readers see the old one or the whole new one."""
        place = self.locate(who, path, Access.WRITE)
        with in_its_words(place):
            store, inside = self.at(place)
            with self.taking([(place, size)]):
                written = store.write(inside, pieces)
        return named(written, place, inside)

    def adopt(self, who: Who, path: str, whole: Path) -> FileEntry:
        """Make or replace a file by one on this server's disk."""
        place = self.locate(who, path, Access.WRITE)
        with in_its_words(place):
            store, inside = self.at(place)
            with self.taking([(place, whole.stat().st_size)]):
                written = store.adopt(inside, whole)
        return named(written, place, inside)

    def write_all(self, who: Who, contents: Sequence[tuple[str, bytes]]) -> None:
        """Make or replace many small files."""
        wanted = [(self.locate(who, path, Access.WRITE), content) for path, content in contents]
        by_root: dict[tuple[str, str], list[tuple[Place, bytes]]] = {}
        for place, content in wanted:
            by_root.setdefault((place.datacenter, place.root), []).append((place, content))
        for together in by_root.values():
            first = together[0][0]
            store, _ = self.at(first)
            with in_its_words(first), self.taking([(place, len(content)) for place, content in together]):
                store.write_all([(place.stored, content) for place, content in together])

    def make_folder(self, who: Who, path: str) -> FileEntry:
        place = self._to_make(who, path)
        with in_its_words(place):
            store, inside = self.at(place)
            store.make_folder(inside)
            return named(store.stat(inside), place, inside)

    def remove(self, who: Who, path: str, *, recursive: bool = False) -> None:
        place = self.locate(who, path, Access.REMOVE)
        if place.area is Area.OUTPUT:
            self._remove_results(place, recursive=recursive)
            self._noted.removed(place)
            return
        with in_its_words(place):
            store, inside = self.at(place)
            store.stat(inside)
            gone = store.usage(inside)
            store.remove(inside, recursive=recursive)
        self._noted.removed(place)
        self._give_back(place, gone)

    def move(self, who: Who, source: str, target: str) -> FileEntry:
        """Rename a file or a folder within a datacenter."""
        here, there = self.locate(who, source, Access.WRITE), self.locate(who, target, Access.WRITE)
        if here.datacenter != there.datacenter:
            raise InvalidError(
                f"{here.path} and {there.path} are in different datacenters: copy it, then remove it", field="target"
            )
        with in_its_words(here), naming(there):
            store, inside = self.at(here)
            with self._noted.moving(here, there, self._look):
                if here.keeper == there.keeper:
                    store.move(inside, self.at(there)[1])
                else:
                    self._hand_over(store, here, there)
        return self._stat(there)

    def _hand_over(self, store: Store, here: Place, there: Place) -> None:
        """Move what then takes the space of another: there must be room for it before."""
        store.stat(here.stored)
        moved = store.usage(here.stored)
        self._room.take(there.keeper, there.datacenter, written=0, kept=moved.size_bytes, files=moved.files)
        try:
            store.move(here.stored, self.at(there)[1])
        except BaseException:
            self._give_back(there, moved)
            raise
        self._give_back(here, moved)

    def _give_back(self, place: Place, gone: Usage) -> None:
        if place.keeper is not None:
            self._room.note(place.keeper, place.datacenter, -gone.size_bytes, -gone.files)

    def _remove_results(self, place: Place, *, recursive: bool) -> None:
        """What a job left, as a whole; the records of the job say that it went, and by whom."""
        if not recursive:
            raise ConflictError(f"{place.path} is a folder: remove it with all that is in it (-r)")
        self._discard(place.owner, place.below)

    def _small(self, who: Who, path: str) -> bytes | None:
        try:
            with closing(self.open(who, path)) as opened:
                size = opened.entry.size
                return opened.read(0, size) if size <= PACKED_BYTES else None
        except PaddleCloudError:
            return None  # the answer has begun: who asks for it alone is told why

    def _to_make(self, who: Who, path: str) -> Place:
        """As `mkdir -p`: what is there already may be named too, by who may read it."""
        place = self.locate(who, path, Access.READ)
        if place.area in (Area.HOME, Area.SHARED) and not place.below:
            return place
        return self.locate(who, path, Access.WRITE)

    def check_space(self, who: Who, path: str, size: int) -> None:
        """Raise, before anything of it comes, if so many bytes more cannot be kept at a path."""
        place = self.locate(who, path, Access.READ)
        if size < 0:
            raise InvalidError(f"size {size} is below 0", field="size")
        if place.area in (Area.HOME, Area.PUBLIC, Area.SHARED):
            self._room.check(place.keeper, place.datacenter, written=size, kept=size)

    def check_room(self, place: Place, size: int, *, held: int = 0, written: int | None = None) -> None:
        """Raise unless a file of this size may take the place of what is there, beside what else is `held`.

        `written` is what of it is still to be written to the disk; all, if it is not said.
        """
        there = entry_at(*self.at(place))
        kept = size + held - (there.size if there is not None and there.kind is Kind.FILE else 0)
        self._room.check(
            place.keeper, place.datacenter, written=size if written is None else written, kept=max(0, kept)
        )

    @contextmanager
    def taking(self, wanted: Sequence[tuple[Place, int]], *, written: int | None = None) -> Iterator[None]:
        """Files of these sizes, all of one home or none, are written within: counted before, given back if it fails.

        `written` is what is still to be written to the disk; all, if it is not said.
        """
        first = wanted[0][0]
        keeper = first.keeper
        before = [entry_at(*self.at(place)) for place, _ in wanted]
        size = sum(size for _, size in wanted)
        kept = size - sum(entry.size for entry in before if entry is not None and entry.kind is Kind.FILE)
        files = sum(entry is None for entry in before)
        self._room.take(keeper, first.datacenter, written=size if written is None else written, kept=kept, files=files)
        try:
            yield
        except BaseException:
            if keeper is not None:
                self._room.note(keeper, first.datacenter, -kept, -files)
            raise

    def _look(self, path: str) -> FileEntry | None:
        """What is at a path, whoever asks."""
        place = pfs.locate(path, self.datacenters)
        store, inside = self.at(place)
        found = entry_at(store, inside)
        return None if found is None else named(found, place, inside)

    def _stat(self, place: Place) -> FileEntry:
        if place.area is Area.ABOVE:
            return folder(place.path)
        with in_its_words(place):
            store, inside = self.at(place)
            return named(store.stat(inside), place, inside)

    def _above(self, place: Place, who: Who) -> Iterator[FileEntry]:
        if not place.datacenter:
            names: Iterable[str] = sorted(self._stores)
        else:
            mine = sorted(name for datacenter, name in self._shared(who.user) if datacenter == place.datacenter)
            all_have = (pfs.HOME, pfs.PUBLIC, *([pfs.SHARED] if mine else []))
            names = all_have if len(place.parts) == 2 else mine if place.parts[2] == pfs.SHARED else (who.user,)
        for name in names:
            yield folder(f"{place.path}/{name}")

    def make_shared(self, datacenter: str, name: str) -> None:
        self.at(pfs.locate(pfs.shared(datacenter, name), self.datacenters))

    def remove_shared(self, datacenter: str, name: str, *, recursive: bool) -> None:
        """Take a shared folder away, with what is in it if that is asked for."""
        place = pfs.locate(pfs.shared(datacenter, name), self.datacenters)
        with in_its_words(place), suppress(NotFoundError):
            store = self._stores[datacenter]
            if not recursive and store.list(place.root, limit=1):
                raise ConflictError(f"{place.path} is not empty: remove it with all that is in it (-r)")
            store.remove(place.root, recursive=True)
        self._made.discard((datacenter, place.root))
        self._noted.removed(place)

    def at(self, place: Place) -> tuple[Store, str]:
        """The store of a place, and its path there. The folders that everybody has are made when they are named."""
        of_jobs = place.area is Area.OUTPUT
        store = self._outputs if of_jobs else self._stores[place.datacenter]
        key = ("" if of_jobs else place.datacenter, place.root)
        if key not in self._made:
            store.make_folder(place.root)
            if place.area is Area.HOME and place.datacenter == self.datacenters[0]:
                make_output(store, place.root)
            self._made.add(key)
        return store, place.stored
