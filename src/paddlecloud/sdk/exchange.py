"""What moving bytes is made of: the calls it needs of a connection, a progress to tell, and a few threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, CancelledError, ThreadPoolExecutor, wait
from threading import Lock
from typing import Protocol, TypeVar

T = TypeVar("T")

_THREADS = 4
_PACK_BYTES = 4 * 1024 * 1024
_PACK_PIECES = 1024


class Progress(Protocol):
    """Is told how many bytes are to be moved, in one or more parts, and how many have been; one call at a time."""

    def total(self, size: int) -> None: ...

    def advance(self, size: int) -> None: ...


class Answer(Protocol):
    """A server's answer below 400; the names of its headers are in lower case. To be closed, or read to its end."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def data(self) -> bytes: ...

    def stream(self, size: int = ...) -> Iterator[bytes]: ...

    def close(self) -> None: ...


class Http(Protocol):
    """Makes a call and raises the error that the server raised. `path` is plain text, encoded by whoever sends it."""

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | bool | None] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
        stream: bool = False,
    ) -> Answer: ...


class Shown:
    """A progress, or none, that several threads may tell; once stopped, whoever tells it more is ended."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._lock = Lock()
        self._stopped = False

    def total(self, size: int) -> None:
        with self._lock:
            if self._progress is not None:
                self._progress.total(size)

    def advance(self, size: int) -> None:
        with self._lock:
            if self._stopped:
                raise CancelledError
            if self._progress is not None:
                self._progress.advance(size)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True


def in_packs(pieces: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Small pieces as they travel together: as many as are worth a request of their own."""
    pack: list[T] = []
    total = 0
    for piece in pieces:
        if pack and (total + size(piece) > _PACK_BYTES or len(pack) == _PACK_PIECES):
            yield pack
            pack, total = [], 0
        pack.append(piece)
        total += size(piece)
    if pack:
        yield pack


def in_parallel(calls: Iterable[Callable[[], None]], shown: Shown) -> None:
    """Make the calls by a few threads; the first error, or an interrupt, ends them all and is raised."""
    with ThreadPoolExecutor(_THREADS, "transfer") as threads:
        futures = [threads.submit(call) for call in calls]
        try:
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
        except BaseException:
            shown.stop()
            threads.shutdown(wait=False, cancel_futures=True)
            raise
