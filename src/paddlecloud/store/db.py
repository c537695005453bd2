"""The database: opened, migrated, and used through two doors, `read` and `write`.

One write happens at a time in this process, each a transaction of its own; reads see the last commit and wait for
nobody. A database that this program cannot keep whole is refused before anything in it is changed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from paddlecloud.model.errors import ConfigError
from paddlecloud.store import migrations, sqlite


class Database:
    def __init__(self, engine: Engine, file: Path) -> None:
        self._readers = engine
        self._writer = sqlite.writing(engine)
        self._file = file
        self._write_lock = threading.Lock()

    @classmethod
    def open(cls, url: str) -> Database:
        """The database of this URL, made or brought up to date if need be."""
        if not url.startswith(sqlite.PREFIX):
            raise ConfigError(f"database {url!r} is of no kind that is known: write sqlite:////path/to/paddlecloud.db")
        file = sqlite.database_file(url)
        with sqlite.alone(file):
            sqlite.refuse_unusable(file)
            sqlite.create(file)
            database = cls(sqlite.engine(file), file)
            try:
                database._migrate()
            except BaseException:
                database.close()
                raise
        return database

    def close(self) -> None:
        self._readers.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A view of the records as of the last commit."""
        with self._translating(), self._readers.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction: it is durable when this returns, and leaves no trace if anything is raised."""
        with self._translating(), self._write_lock, self._writer.begin() as connection:
            yield connection

    def _migrate(self) -> None:
        if self._revision() == migrations.HEAD:
            return
        with self.write() as connection:
            revision = _revision(connection)
            if revision is not None and revision not in migrations.known_revisions():
                raise ConfigError(
                    f"database {self._file} was written by a newer PaddleCloud (revision {revision}): "
                    "upgrade this program, or restore a backup"
                )
            migrations.upgrade(connection)

    def _revision(self) -> str | None:
        with self.read() as connection:
            return _revision(connection)

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, sqlite.DriverError) as error:
            known = sqlite.meaning(error, self._file)
            if known is None:
                raise
            raise known from error


def _revision(connection: Connection) -> str | None:
    """What the tables were last migrated to; None: there are none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
