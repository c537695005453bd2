"""What clients of HDFS said about files: shown of the very files that it was said of, and gone or moved with them.

Which face moves or removes a file does not matter: `Pfs`, the door of all of them, tells here of both. A file that was
made anew is another version (model/attributes.py), of which nothing was said.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import Protocol

from msgspec.structs import replace

from paddlecloud.model.attributes import NOTHING_SAID, Attributes, version_of
from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.pfs import Place
from paddlecloud.model.transfers import FileEntry
from paddlecloud.store.attributes import FileAttributes, Said

log = logging.getLogger(__name__)

Look = Callable[[str], FileEntry | None]  # what is at a path of the PFS now


class Noted(Protocol):
    """What goes with files that are moved or removed."""

    def moving(self, here: Place, there: Place, look: Look, /) -> AbstractContextManager[None]: ...

    def removed(self, place: Place, /) -> None: ...


class NothingNoted:
    """Where nothing is known of files beside their bytes."""

    def moving(self, _here: Place, _there: Place, _look: Look, /) -> AbstractContextManager[None]:
        return nullcontext()

    def removed(self, _place: Place, /) -> None:
        pass


class AttributeService:
    def __init__(self, records: FileAttributes, clock: Callable[[], datetime]) -> None:
        self._records = records
        self._clock = clock

    def of(self, entry: FileEntry) -> Attributes:
        return _good(self._records.get(entry.path), entry)

    def of_all(self, folder: str, entries: Sequence[FileEntry]) -> Mapping[str, Attributes]:
        """By path, of those in a folder of which something was said."""
        said = self._records.in_folder(folder)
        return {entry.path: _good(said[entry.path], entry) for entry in entries if entry.path in said}

    def say(self, place: Place, entry: FileEntry, attributes: Attributes) -> None:
        """From now on this is known of what is at a place."""
        said = Said(path=place.path, area=place.top, version=version_of(entry), attributes=attributes)
        self._records.put(said, self._clock())

    @contextmanager
    def moving(self, here: Place, there: Place, look: Look, /) -> Iterator[None]:
        """What is moved within takes along what is known of it."""
        taken = [said for said in self._records.below(here.path, here.top) if _is_good(said, look(said.path))]
        known = bool(taken) or bool(self._records.below(there.path, there.top))
        yield
        if known or self._records.below(here.path, here.top):
            arrived = [self._arrived(said, here, there, look) for said in taken]
            gone = [(here.path, here.top), (there.path, there.top)]
            self._note(gone, [said for said in arrived if said is not None])

    def removed(self, place: Place, /) -> None:
        if self._records.below(place.path, place.top):
            self._note([(place.path, place.top)], [])

    def _arrived(self, said: Said, here: Place, there: Place, look: Look) -> Said | None:
        path = there.path + said.path[len(here.path) :]
        found = look(path)
        if found is None:
            return None
        return replace(said, path=path, area=there.top, version=version_of(found))

    def _note(self, gone: Sequence[tuple[str, str]], said: Sequence[Said]) -> None:
        try:
            self._records.replace(gone, said, self._clock())
        except PaddleCloudError as error:
            # The files are where they should be by now, whatever is known of them.
            log.warning("what is known of files at %s is not on record: %s", gone[-1][0], error.message)


def _good(said: Said | None, entry: FileEntry) -> Attributes:
    return said.attributes if said is not None and _is_good(said, entry) else NOTHING_SAID


def _is_good(said: Said, entry: FileEntry | None) -> bool:
    return entry is not None and said.version == version_of(entry)
