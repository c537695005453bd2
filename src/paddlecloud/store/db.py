"""Opens and migrates the database, and provides its two entry points, `read` and `write`.

One write happens at a time in this process, each in its own transaction; reads see the last commit and never wait.
Invariant: a database that this program cannot safely use is rejected before anything in it is changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from sqlalchemy import Connection, Engine

from paddlecloud.model.errors import ConfigError, PaddleCloudError
from paddlecloud.store import beside, migrations, sqlite

POSTGRES_PREFIXES = ("postgresql://", "postgres://")
_INSTALL_POSTGRES = "pip install 'paddlecloud[postgres]'"


class Kind(Protocol):
    """What SQLite and PostgreSQL do differently."""

    name: str

    @property
    def label(self) -> str:
        """The database's name in messages, never with its password."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Let one process at a time create or migrate it."""
        ...

    def check(self) -> None:
        """Raise ConfigError unless it is empty, or intact and ours; changes nothing."""
        ...

    def create(self) -> None:
        """Create it if it is missing and can be created."""
        ...

    def exists(self) -> bool:
        """Whether there is a database to read."""
        ...

    def readers(self) -> Engine:
        """An engine whose transactions each see the records at one moment."""
        ...

    def writer(self, readers: Engine, /) -> Engine:
        """An engine whose transactions are exclusive, and on disk when they end."""
        ...

    def confirm(self, writer: Engine, /) -> None:
        """Raise unless this process may still write."""
        ...

    def size_bytes(self, connection: Connection, /) -> int: ...

    def meaning(self, error: Exception) -> PaddleCloudError | None:
        """Translate a driver's error; None if it is a bug in our own code."""
        ...


class Database:
    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._readers = kind.readers()
        self._writer = kind.writer(self._readers)
        self._write_lock = threading.Lock()

    @classmethod
    def open(
        cls,
        url: str,
        *,
        before_migration: Callable[[str], None] = lambda _revision: None,
        on_lost: Callable[[str], None] = lambda _why: None,
    ) -> Database:
        """Open the database for this process to write; create or migrate it if necessary.

        `before_migration` receives the revision of records that are about to be migrated; `on_lost` receives the reason
        when this process may no longer write.
        """
        kind = kind_of(url, on_lost)
        with kind.alone():
            kind.check()
            kind.create()
            database = cls(kind)
            try:
                database.confirm()
                database._migrate(before_migration)
            except BaseException:
                database.close()
                raise
        return database

    def close(self) -> None:
        self._writer.dispose()
        self._readers.dispose()

    @property
    def label(self) -> str:
        return self._kind.label

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A view of the records as of the last commit."""
        with _translating(self._kind), self._readers.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: durable when this returns, rolled back if anything is raised."""
        with _translating(self._kind), self._write_lock, self._writer.begin() as connection:
            yield connection
            beside.execute(connection)
        beside.committed()

    def confirm(self) -> None:
        """Raise unless this process may still write; callers check this before acting on records.

        After an outage of PostgreSQL, another server may have taken our place.
        """
        with _translating(self._kind), self._write_lock:
            self._kind.confirm(self._writer)

    def _migrate(self, before_migration: Callable[[str], None]) -> None:
        with self.read() as connection:
            revision = migrations.revision(connection)
        if revision == migrations.HEAD:
            return
        if revision is not None:
            refuse_newer(revision, f"database {self._kind.label}")
            before_migration(revision)
        with self.write() as connection:
            migrations.upgrade(connection)


@contextmanager
def reading(url: str) -> Iterator[tuple[Connection, Kind]]:
    """Yield a read-only snapshot of a database that another process may be using."""
    kind = kind_of(url)
    with _translating(kind):
        if not kind.exists():
            raise ConfigError(f"there are no records in {kind.label} yet: start a server to create them")
        kind.check()
        readers = kind.readers()
        try:
            with readers.begin() as connection:
                revision = migrations.revision(connection)
                if revision is None:
                    raise ConfigError(f"there are no records in {kind.label} yet: start a server to create them")
                refuse_newer(revision, f"database {kind.label}")
                yield connection, kind
        finally:
            readers.dispose()


def kind_of(url: str, on_lost: Callable[[str], None] = lambda _why: None) -> Kind:
    if url.startswith(sqlite.PREFIX):
        return sqlite.SQLite(url)
    if not url.startswith(POSTGRES_PREFIXES):
        raise ConfigError(
            "unknown kind of database URL: write postgresql://user@host/name, or sqlite:////path/to/paddlecloud.db"
        )
    try:
        from paddlecloud.store import postgres
    except ImportError:
        raise ConfigError(f"PostgreSQL databases need a driver that is not installed: {_INSTALL_POSTGRES}") from None
    return postgres.PostgreSQL(url, on_lost)


def refuse_newer(revision: str, what: str) -> None:
    if revision not in migrations.known_revisions():
        raise ConfigError(
            f"{what} was written by a newer PaddleCloud (revision {revision}): "
            "upgrade this program, or restore a backup"
        )


@contextmanager
def _translating(kind: Kind) -> Iterator[None]:
    try:
        yield
    except PaddleCloudError:
        raise
    except Exception as error:
        known = kind.meaning(error)
        if known is None:
            raise
        raise known from error
