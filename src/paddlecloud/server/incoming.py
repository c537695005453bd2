"""Files that come in pieces: begun, filled at offsets, gone on with after a break, and seen by nobody until whole."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from paddlecloud.files.base import Store, StoredFile
from paddlecloud.files.drafts import Draft, Drafts, Scratch
from paddlecloud.model.errors import ConflictError, InvalidError
from paddlecloud.model.pfs import Access, Area, Place, Who
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import CHUNK_BYTES, Kind, is_digest
from paddlecloud.model.units import format_size
from paddlecloud.server.matching import entry_at
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.pfs_words import in_its_words

LARGEST_BYTES = 2**40
_CHECKED_BYTES = 1024 * 1024
_PLACES = 64


class Incoming:
    def __init__(self, pfs: Pfs, drafts: Drafts) -> None:
        self._pfs = pfs
        self._drafts = drafts
        self._lock = threading.Lock()
        self._growing: set[str] = set()
        self._places = [threading.Lock() for _ in range(_PLACES)]

    def begin(self, who: Who, path: str, size: int) -> None:
        """A file of this size is about to be filled. One that was begun with this size is gone on with; a file of
        this size is what it begins as. An empty one is there at once."""
        place = self._to_begin(who, path, size)
        with in_its_words(place):
            store, inside = self._pfs.at(place)
            based = self._is_file(store, inside, place, size)
            if size:
                self._drafts.begin(_name(who, place), size, owner=who.user, based=based)
            elif not based:
                self._pfs.write(who, path, (), size=0)

    @contextmanager
    def whole(self, who: Who, path: str) -> Iterator[Arriving]:
        """A file that comes from its beginning to its end, however long that is."""
        place = self._pfs.locate(who, path, Access.WRITE)
        with self._drafts.scratch(who.user) as scratch:
            yield Arriving(self._pfs, who, place, scratch, self._check, self._settling(place))

    @contextmanager
    def longer(self, who: Who, path: str) -> Iterator[Arriving]:
        """A file that is there, and what is to come behind its end; nobody sees any of that until all has come."""
        place = self._pfs.locate(who, path, Access.WRITE)
        with self._alone(place.path), self._drafts.scratch(who.user) as scratch:
            with in_its_words(place):
                store, inside = self._pfs.at(place)
                with closing(store.open(inside)) as current:
                    settling = self._settling(place)
                    arriving = Arriving(self._pfs, who, place, scratch, self._check, settling, behind=current.etag)
                    for piece in current.pieces():
                        arriving.take(piece)
            yield arriving

    def _settling(self, place: Place) -> threading.Lock:
        """What lets one at a time look what is at a place and put a file there; some places share one."""
        return self._places[hash(place.path) % _PLACES]

    @contextmanager
    def _alone(self, path: str) -> Iterator[None]:
        """Of two that make one file longer, what the first has sent would be lost."""
        with self._lock:
            if path in self._growing:
                raise ConflictError(f"{path} is being made longer by another request: try again when that is over")
            self._growing.add(path)
        try:
            yield
        finally:
            with self._lock:
                self._growing.discard(path)

    def plan(self, who: Who, path: str, size: int, digests: Sequence[str]) -> Sequence[int]:
        """The numbers of the pieces (CHUNK_BYTES each, known by their SHA-256) that are still to be sent of a file.

        What an unfinished upload brought, and what the file that is there has at the same place, need not come again;
        with nothing missing the file is there.
        """
        count = -(-size // CHUNK_BYTES)
        if len(digests) != count or not all(map(is_digest, digests)):
            raise InvalidError(
                f"chunks must be {count} SHA-256 digests, one for each {format_size(CHUNK_BYTES)} of {size} bytes",
                field="chunks",
            )
        place = self._to_begin(who, path, size)
        with in_its_words(place):
            store, inside = self._pfs.at(place)
            if not self._is_file(store, inside, place, size):
                return self._missing(who, place, size, digests, None)
            with closing(store.open(inside)) as current:
                if all(_fits(current.read(*_range(number, size)), digests[number]) for number in range(count)):
                    return ()
                return self._missing(who, place, size, digests, current)

    def chunk(self, who: Who, path: str, start: int, end: int) -> bytes | None:
        """The bytes of a range as whoever fills the file needs to know them; None: they are still to be sent."""
        place = self._pfs.locate(who, path, Access.READ)
        draft = self._drafts.find(_name(who, place))
        with in_its_words(place):
            if draft is not None and not draft.based:
                return draft.read(start, end, None)
            store, inside = self._pfs.at(place)
            with closing(store.open(inside)) as current:
                if draft is not None:
                    return draft.read(start, end, current)
                return current.read(start, min(end, current.entry.size))

    def size(self, who: Who, path: str) -> int:
        """How long the file is that is being filled, or else is there."""
        draft = self._drafts.find(_name(who, self._pfs.locate(who, path, Access.READ)))
        return draft.size if draft is not None else self._pfs.stat(who, path).size

    def fill(self, who: Who, path: str, start: int, content: bytes) -> bool:
        """Write at an offset of a file that was begun, or is there; True: nothing of it is left to be sent."""
        place = self._pfs.locate(who, path, Access.WRITE)
        with in_its_words(place):
            store, inside = self._pfs.at(place)
            draft = self._drafts.find(_name(who, place))
            if draft is None:
                draft = self._drafts.begin(_name(who, place), store.stat(inside).size, owner=who.user, based=True)
            if start < 0 or start + len(content) > draft.size:
                raise InvalidError(
                    f"{place.path}: {len(content)} bytes at {start} are not within its {draft.size}", field="offset"
                )
            if not draft.based:
                whole = draft.write(start, content, None)
            else:
                with closing(store.open(inside)) as current:
                    whole = draft.write(start, content, current)
            if whole:
                self._finish(who, place, draft)
        return whole

    def _to_begin(self, who: Who, path: str, size: int) -> Place:
        if not 0 <= size <= LARGEST_BYTES:
            raise InvalidError(f"bad file size:{size}", field="size")
        place = self._pfs.locate(who, path, Access.WRITE)
        self._check(who, place, size)
        return place

    def _check(self, who: Who, place: Place, size: int) -> None:
        """Raise QuotaError if a file of this size, with what else its user has begun, is more than they may keep."""
        self._pfs.check_room(place, size, held=self._drafts.held(who.user, but=_name(who, place)))

    def _is_file(self, store: Store, inside: str, place: Place, size: int) -> bool:
        """Whether a file of this size is there."""
        there = entry_at(store, inside)
        if there is not None and there.kind is Kind.FOLDER:
            raise ConflictError(f"{place.path} is a folder; name a file in it")
        return there is not None and there.kind is Kind.FILE and there.size == size

    def _missing(
        self, who: Who, place: Place, size: int, digests: Sequence[str], current: StoredFile | None
    ) -> Sequence[int]:
        # Another plan for the same path takes its place: pieces of two files must not become one.
        draft = self._drafts.begin(_name(who, place), size, owner=who.user, digests=digests)
        missing = []
        for number, digest in enumerate(digests):
            start, end = _range(number, size)
            if draft.read(start, end, None) is not None:
                continue
            same = current.read(start, end) if current is not None else None
            if same is not None and _fits(same, digest):
                draft.write(start, same, None)
            else:
                missing.append(number)
        if not missing:
            self._finish(who, place, draft)
        return missing

    def _finish(self, who: Who, place: Place, draft: Draft) -> None:
        if not draft.changed():
            self._drafts.drop(_name(who, place))
            return
        store, inside = self._pfs.at(place)
        with self._pfs.taking([(place, draft.size)], written=0), draft.taken() as whole:
            store.adopt(inside, whole)


class Arriving:
    """One such file; `check` is asked again and again as it grows.

    `behind` is the etag of the file that it begins with, and takes the place of.
    """

    def __init__(
        self,
        pfs: Pfs,
        who: Who,
        place: Place,
        scratch: Scratch,
        check: Callable[[Who, Place, int], None],
        settling: threading.Lock,
        *,
        behind: str | None = None,
    ) -> None:
        self._pfs = pfs
        self._who = who
        self._place = place
        self._scratch = scratch
        self._check = check
        self._settling = settling
        self._behind = behind
        self._checked = 0
        check(who, place, 0)

    def take(self, piece: bytes) -> None:
        """The next piece; QuotaError when it becomes more than the user may keep."""
        self._scratch.write(piece)
        if self._scratch.size - self._checked >= _CHECKED_BYTES:
            self._check(self._who, self._place, 0)
            self._checked = self._scratch.size

    def finish(self, allow: Callable[[], None] = lambda: None) -> FileEntry:
        """Put it in its place, if `allow` does not raise; of two at once, the second sees what the first put there."""
        with self._settling:
            allow()
            if self._behind is not None:
                with closing(self._pfs.open(self._who, self._place.path)) as current:
                    if current.etag != self._behind:
                        raise ConflictError(f"{self._place.path} was changed while more of it came: send that again")
            return self._pfs.adopt(self._who, self._place.path, self._scratch.whole())


def _name(who: Who, place: Place) -> str:
    """What a draft is known by. In a shared folder each has their own: what one began is theirs until it is whole."""
    return f"{place.path}\0{who.user}" if place.area is Area.SHARED else place.path


def _range(number: int, size: int) -> tuple[int, int]:
    return number * CHUNK_BYTES, min(size, (number + 1) * CHUNK_BYTES)


def _fits(content: bytes | None, digest: str) -> bool:
    return content is not None and hashlib.sha256(content).hexdigest() == digest
