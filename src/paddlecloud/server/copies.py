"""Copies within the PFS that the server makes itself: by the disk or the bucket where it can, else carried.

Each file is there whole or not at all, and is counted before it is written. Who asked may go away at any moment: what
was copied by then stays.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing

from paddlecloud.files.base import StoredFile
from paddlecloud.model.errors import ConflictError, InternalError, InvalidError, PaddleCloudError
from paddlecloud.model.pfs import Access, Area, Place, Who
from paddlecloud.model.transfers import CopiedFile, CopyReport
from paddlecloud.model.tree import PACKED_BYTES
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.pfs_words import in_its_words, naming

log = logging.getLogger(__name__)

MOST = 10_000  # in one call
_TOGETHER_BYTES = 4 * 1024 * 1024
_TOGETHER = 256


class Copies:
    def __init__(self, pfs: Pfs) -> None:
        self._pfs = pfs

    def begin(self, who: Who, files: Sequence[CopiedFile]) -> Copying:
        """Copies that are still to be made; raise what is wrong with any of them before the first is."""
        if len(files) > MOST:
            raise InvalidError(f"{len(files)} files are more than {MOST}, the most of one call", field="files")
        return Copying(self._pfs, who, [self._pair(who, one) for one in files])

    def _pair(self, who: Who, one: CopiedFile) -> tuple[Place, Place]:
        here, there = self._pfs.locate(who, one.source, Access.READ), self._pfs.locate(who, one.target, Access.WRITE)
        if here.area is Area.ABOVE:
            raise ConflictError(f"{here.path} is a folder; name a file in it")
        if here.path == there.path:
            raise ConflictError(f"{here.path} is to be copied onto itself: name another target")
        return here, there


class _StoppedError(Exception):
    pass


class Copying:
    """Some copies: made by one thread, told by another."""

    def __init__(self, pfs: Pfs, who: Who, pairs: Sequence[tuple[Place, Place]]) -> None:
        self._pfs = pfs
        self._who = who
        self._pairs = pairs
        self._files = 0
        self._size = 0
        self._stopped = False
        self._error: PaddleCloudError | None = None

    def run(self) -> None:
        """Make them; whatever ends this early is in the report."""
        try:
            for together in self._carried():
                self._pfs.write_all(self._who, together)
                self._files += len(together)
                self._told(sum(len(content) for _, content in together))
        except _StoppedError:
            return
        except PaddleCloudError as error:
            self._error = error
        except Exception:
            log.exception("a copy of %s failed", self._who.user)
            self._error = InternalError("the copy failed on the server; its log says why")

    def report(self, *, last: bool = False) -> CopyReport:
        error = self._error if last else None
        return CopyReport(
            files=self._files,
            size=self._size,
            last=last,
            code=error.code if error is not None else "",
            message=error.message if error is not None else "",
        )

    def stop(self) -> None:
        """Nobody waits for the rest."""
        self._stopped = True

    def _carried(self) -> Iterator[list[tuple[str, bytes]]]:
        """Small files, as many as are written to a disk together; all others are copied on the way."""
        held: list[tuple[str, bytes]] = []
        size = 0
        for here, there in self._pairs:
            self._told(0)
            with in_its_words(here), closing(self._pfs.open(self._who, here.path)) as opened:
                if not self._is_carried(opened, there):
                    self._copy(opened, there)
                    continue
                held.append((there.path, _content(opened, here)))
            size += len(held[-1][1])
            if size >= _TOGETHER_BYTES or len(held) >= _TOGETHER:
                yield held
                held, size = [], 0
        if held:
            yield held

    def _is_carried(self, opened: StoredFile, there: Place) -> bool:
        store, _ = self._pfs.at(there)
        return opened.entry.size <= PACKED_BYTES and store.folder is not None

    def _copy(self, opened: StoredFile, there: Place) -> None:
        store, inside = self._pfs.at(self._pfs.locate(self._who, there.path, Access.WRITE))
        with naming(there), self._pfs.taking([(there, opened.entry.size)]):
            store.copy(opened, inside, self._told)
        self._files += 1

    def _told(self, size: int) -> None:
        if self._stopped:
            raise _StoppedError
        self._size += size


def _content(opened: StoredFile, here: Place) -> bytes:
    content = opened.read(0, opened.entry.size)
    if len(content) != opened.entry.size:
        raise ConflictError(f"{here.path} was cut while it was read: copy it again")
    return content
