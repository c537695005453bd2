"""How much users keep in the PFS, and how much they may.

What comes through the server counts at once and is recorded a little later, since a record takes longer than a small
file. What jobs write into their homes is seen when homes are counted, now and then: nothing that a task does waits for
that, and what a crash kept from being recorded is seen then too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from paddlecloud.files.base import Store
from paddlecloud.model import pfs
from paddlecloud.model.errors import FullError, NotFoundError, PaddleCloudError, QuotaError
from paddlecloud.model.units import format_size
from paddlecloud.store.pfs_use import PfsUse
from paddlecloud.store.users import Users

log = logging.getLogger(__name__)

_SHARED = pfs.keeper_of("")


@dataclass(slots=True)
class _Change:
    size_bytes: int = 0
    files: int = 0


class Room:
    def __init__(
        self,
        *,
        users: Users,
        use: PfsUse,
        stores: Mapping[str, Store],
        limit_bytes: int | None,
        clock: Callable[[], datetime],
        shared: Callable[[], Iterable[tuple[str, str]]] = tuple,
        of_groups: Callable[[str], int | None] = lambda _: None,
    ) -> None:
        """`shared` are the shared folders, by datacenter and name; `of_groups` is what a user may keep by a group."""
        self._of_groups = of_groups
        self._shared = shared
        self._users = users
        self._use = use
        self._stores = stores
        self._limit_bytes = limit_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._taking = threading.Lock()
        self._unrecorded: dict[tuple[str, str], _Change] = {}

    def limit(self, user: str) -> int | None:
        """The most that a user may keep; None: no limit."""
        if user.startswith(_SHARED):
            return None
        own = self._users.account(user).quota.space_bytes
        given = self._of_groups(user) if own is None else own
        return self._limit_bytes if given is None else given

    def used(self, user: str) -> int:
        recorded = sum(one.size_bytes for one in self._use.of(user))
        with self._lock:
            since = sum(change.size_bytes for (whose, _), change in self._unrecorded.items() if whose == user)
        return max(0, recorded + since)

    def check(self, user: str | None, datacenter: str, *, written: int, kept: int) -> None:
        """Raise FullError if the disk has no room for what is written now, QuotaError if `kept` is more than the user
        may keep beside what they have; None: it is nobody's own."""
        free = self._stores[datacenter].free_bytes()
        if free is not None and written > free:
            raise FullError(
                f"this takes {format_size(written)} and the server has room for {format_size(free)}; "
                "ask its operator for more, or send less"
            )
        limit = None if user is None else self.limit(user)
        if user is None or limit is None:
            return
        used = self.used(user)
        if used + kept > limit:
            raise QuotaError(
                f"quota: {user} keeps {format_size(used)} of {format_size(limit)} in the PFS, and this takes "
                f"{format_size(kept)} more; remove something (paddlecloud rm), or ask an operator for more"
            )

    def take(self, user: str | None, datacenter: str, *, written: int, kept: int, files: int) -> None:
        """Check, and count it at once: what comes at the same moment is refused if both are too much."""
        with self._taking:
            self.check(user, datacenter, written=written, kept=kept)
            if user is not None:
                self.note(user, datacenter, kept, files)

    def note(self, user: str, datacenter: str, more_bytes: int, more_files: int) -> None:
        with self._lock:
            change = self._unrecorded.setdefault((user, datacenter), _Change())
            change.size_bytes += more_bytes
            change.files += more_files

    def record(self) -> None:
        """Record what came and went since the last time."""
        with self._lock:
            changes, self._unrecorded = self._unrecorded, {}
        for (user, datacenter), change in changes.items():
            self._use.add(user, datacenter, size_bytes=change.size_bytes, files=change.files, at=self._clock())

    def count(self) -> None:
        """Look what all homes and shared folders really hold."""
        for name in self._stores:
            for user in self._users.list():
                self._count(user.name, name, f"{pfs.HOME}/{user.name}")
        for name, folder in self._shared():
            if name in self._stores:
                self._count(pfs.keeper_of(folder), name, pfs.keeper_of(folder))

    def _count(self, keeper: str, datacenter: str, root: str) -> None:
        try:
            found = self._stores[datacenter].usage(root)
        except NotFoundError:
            return
        except PaddleCloudError as error:
            log.warning("%s in %s was not counted: %s", root, datacenter, error.message)
            return
        with self._lock:
            self._unrecorded.pop((keeper, datacenter), None)
        self._use.put(keeper, datacenter, size_bytes=found.size_bytes, files=found.files, at=self._clock())

    def forget(self, keeper: str, datacenter: str) -> None:
        """What was kept there is gone."""
        with self._lock:
            self._unrecorded.pop((keeper, datacenter), None)
        self._use.put(keeper, datacenter, size_bytes=0, files=0, at=self._clock())

    def used_in(self, keeper: str, datacenter: str) -> tuple[int, int]:
        """Bytes and files that are kept in one datacenter."""
        known = self._use.get(keeper, datacenter)
        with self._lock:
            since = self._unrecorded.get((keeper, datacenter), _Change())
            size, files = since.size_bytes, since.files
        return max(0, size + (known.size_bytes if known else 0)), max(0, files + (known.files if known else 0))
