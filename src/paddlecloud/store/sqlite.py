"""SQLite databases: checks before use, durability, and error translation.

Invariant: a commit that returned survives kill -9 and a power cut (write-ahead log with synchronous=FULL). A rejected
file is left unchanged, so every check comes before the first setting that writes to it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from paddlecloud.model.errors import ConfigError, FullError, InternalError, PaddleCloudError, UnreachableError
from paddlecloud.store import migrations

PREFIX = "sqlite:///"
BUSY_SECONDS = 30

_PAGES_PER_STEP = 2048
_WRITES = "paddlecloud_writes"


class SQLite:
    """A database in one file."""

    name = "SQLite"

    def __init__(self, url: str) -> None:
        """Everything after the third slash of the URL is the path, whatever characters it contains."""
        path = url.removeprefix(PREFIX)
        if not path or path.startswith((":memory:", "file:")):
            raise ConfigError(f"database {url!r} names no file: write sqlite:////path/to/paddlecloud.db")
        self.file = Path(path)

    @property
    def label(self) -> str:
        return str(self.file)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one process at a time create or migrate the databases of a folder; the folder itself is the lock."""
        try:
            folder = os.open(self.file.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise ConfigError(
                f"the folder of database {self.file} cannot be used: {error.strerror}; "
                "create it, or choose another database"
            ) from None
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def check(self) -> None:
        refuse_unusable(self.file)

    def create(self) -> None:
        """Create the file if missing, readable only by its owner; SQLite gives its companion files the same mode."""
        try:
            os.close(os.open(self.file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return
        except OSError as error:
            raise ConfigError(f"database {self.file} cannot be created: {error.strerror}") from None

    def exists(self) -> bool:
        return self.file.exists()

    def readers(self) -> Engine:
        made = create_engine(
            URL.create("sqlite", database=str(self.file)),
            poolclass=QueuePool,
            pool_size=64,
            max_overflow=-1,
            connect_args={"timeout": BUSY_SECONDS},
            hide_parameters=True,  # logged errors must not reveal record contents
        )
        event.listen(made, "connect", _set_up)
        event.listen(made, "begin", _begin)
        return made

    def writer(self, readers: Engine) -> Engine:
        """The same engine, but transactions take the write lock when they begin."""
        return readers.execution_options(**{_WRITES: True})

    def confirm(self, writer: Engine) -> None:
        """Nothing to check: the data folder's lock keeps others out while this process lives."""

    def size_bytes(self, _connection: Connection) -> int:
        return sum(file.stat().st_size for file in files(self.file) if file.exists())

    def meaning(self, error: Exception) -> PaddleCloudError | None:
        """Translate a driver's error; None if it is a bug in our own code."""
        if not isinstance(error, sqlite3.Error | DBAPIError):
            return None
        text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        if "disk is full" in text:
            return FullError(
                f"no space left for the database {self.file}: nothing was changed; free some space and try again"
            )
        if "database is locked" in text:
            return UnreachableError(
                f"the database {self.file} is locked by another program: try again when that program has ended"
            )
        if "malformed" in text or "disk I/O error" in text or "not a database" in text:
            return InternalError(
                f"the database {self.file} cannot be read or written ({text}): check the disk it is on"
            )
        return None


def refuse_unusable(file: Path) -> None:
    """Raise ConfigError unless the file is missing, empty, or an intact database of ours; writes nothing."""
    if file.is_dir():
        raise ConfigError(f"database {file} is a folder: name a file in it, such as {file / 'paddlecloud.db'}")
    if not file.exists():
        return
    if not os.access(file, os.R_OK | os.W_OK):
        raise ConfigError(f"database {file} cannot be used: give this process's user read and write permission")
    try:
        with closing(sqlite3.connect(file.absolute().as_uri() + "?mode=rw", uri=True, timeout=BUSY_SECONDS)) as opened:
            found = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
            names = {row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise ConfigError(
                f"database {file} is locked by another program: stop that program, then start again"
            ) from None
        raise _corrupt(file, str(error)) from None
    if found != "ok":
        raise _corrupt(file, found)
    if not migrations.are_ours(names - {"sqlite_sequence"}):
        raise ConfigError(f"database {file} belongs to another program: name another file")


def copy_pages(source: Connection, target: Path, progress: Callable[[int, int], None]) -> None:
    """Copy the database, as the source's transaction sees it, page by page into an empty file; writers do not wait."""
    pages = source.connection.driver_connection
    assert isinstance(pages, sqlite3.Connection)
    with closing(sqlite3.connect(target)) as copy:
        pages.backup(copy, pages=_PAGES_PER_STEP, progress=lambda _, left, total: progress(total - left, total))


def files(database: Path) -> list[Path]:
    """The database file and the files that SQLite keeps beside it during use and after a crash."""
    return [database.with_name(database.name + ending) for ending in ("", "-wal", "-shm")]


def _corrupt(file: Path, found: str) -> ConfigError:
    return ConfigError(
        f"database {file} is corrupt ({found}): restore a backup with paddlecloud db restore --force FILE, "
        "or move it away to start with an empty one"
    )


def _set_up(connection: Any, _record: object) -> None:
    # By default the driver begins transactions itself, without the write lock.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
