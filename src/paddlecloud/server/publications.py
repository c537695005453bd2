"""Files that users have published. Whether a file is the user's own is settled before it is published, and again
when it is read: what they may not read any more, nobody reads in their name."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from anyio import CapacityLimiter

from paddlecloud.model.errors import RateError
from paddlecloud.model.publication import Publication
from paddlecloud.server.rates import network
from paddlecloud.store.publications import Publications

READERS = 32
_AT_ONCE = 8
_RETRY_SECONDS = 10


class PublicationService:
    def __init__(self, publications: Publications, clock: Callable[[], datetime]) -> None:
        self._publications = publications
        self._clock = clock
        self._readers: dict[str, int] = {}
        # Anybody may read, and a store may be slow: the threads of all others are not theirs.
        self.threads = CapacityLimiter(_AT_ONCE)

    def publish(self, user: str, path: str) -> Publication:
        return self._publications.publish(user, path, self._clock())

    def unpublish(self, user: str, path: str) -> None:
        self._publications.unpublish(user, path)

    def find(self, uuid: str) -> Publication:
        return self._publications.find(uuid)

    def list(self, user: str) -> builtins.list[Publication]:
        return self._publications.list(user)

    @contextmanager
    def reader(self, address: str) -> Iterator[None]:
        """One more who reads from this address, as long as they do. Belongs to the event loop: there is no lock."""
        near = network(address)
        count = self._readers.get(near, 0)
        if count >= READERS:
            raise RateError(
                f"too many at once: {count} published files are being read from {near}; try again when one has come",
                retry_after_seconds=_RETRY_SECONDS,
            )
        self._readers[near] = count + 1
        try:
            yield
        finally:
            self._readers[near] -= 1
            if not self._readers[near]:
                del self._readers[near]
