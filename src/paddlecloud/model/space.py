"""What uses the space of a server, as it crosses the wire, and what a collection took away."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from paddlecloud.model.kept import Kept


class Used(Struct, frozen=True, kw_only=True):
    """Bytes as the disk gives them out, hard links once, and how many files they are in."""

    size_bytes: int = 0
    files: int = 0

    def __add__(self, other: Used) -> Used:
        return Used(size_bytes=self.size_bytes + other.size_bytes, files=self.files + other.files)


class Share(Struct, frozen=True, kw_only=True):
    """One kind of what is stored. `keep_seconds` and `limit_bytes` are its settings, None: for ever, no limit."""

    kind: str
    used: Used
    oldest_at: datetime | None = None
    keep_seconds: int | None = None
    limit_bytes: int | None = None


class UserShare(Struct, frozen=True, kw_only=True):
    """What is stored of one user."""

    user: str
    uploads: Used = Used()
    results: Used = Used()
    logs: Used = Used()
    environments: Used = Used()
    pfs: Used = Used()

    @property
    def total(self) -> Used:
        return self.uploads + self.results + self.logs + self.environments + self.pfs

    @property
    def size_bytes(self) -> int:
        return self.total.size_bytes


class Disk(Struct, frozen=True, kw_only=True):
    """A disk that the server's data is on, named by a folder that is on it."""

    path: str
    size_bytes: int
    free_bytes: int


class Space(Struct, frozen=True, kw_only=True):
    """What used the space when it was last counted: all of it, for an admin, or what is the `user`'s own."""

    counted_at: datetime
    shares: tuple[Share, ...]
    user: str | None = None
    disks: tuple[Disk, ...] = ()
    users: tuple[UserShare, ...] = ()


class CollectionRequest(Struct, frozen=True, kw_only=True):
    """`dry_run`: take nothing away, only say what would go."""

    dry_run: bool = False


class Collected(Struct, frozen=True, kw_only=True):
    """What of one kind went, or would go, and the setting that lets it."""

    kind: Kept
    by: str
    count: int
    used: Used = Used()


class Collection(Struct, frozen=True, kw_only=True):
    """What one look at what may go came to; `more`: time was up before the end, so ask again."""

    collected: tuple[Collected, ...] = ()
    dry_run: bool = False
    more: bool = False
