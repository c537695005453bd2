"""All that is SQLite's own: how a file is checked before it is used, durability, and what its errors mean.

A commit that returned survives kill -9 and a power cut: write-ahead log with synchronous=FULL. A file that is refused
is left as it was, so every check comes before the first setting that writes to it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import DBAPIError

from paddlecloud.model.errors import ConfigError, FullError, InternalError, PaddleCloudError, UnreachableError

PREFIX = "sqlite:///"
BUSY_SECONDS = 30
DriverError = sqlite3.Error  # what the driver raises while a connection is set up, before SQLAlchemy wraps it

_WRITES = "paddlecloud_writes"


def database_file(url: str) -> Path:
    """The file of a `sqlite:////path` URL; all after the third slash is the path, whatever characters it has."""
    path = url.removeprefix(PREFIX)
    if not path or path.startswith((":memory:", "file:")):
        raise ConfigError(f"database {url!r} names no file: write sqlite:////path/to/paddlecloud.db")
    return Path(path)


def engine(file: Path) -> Engine:
    made = create_engine(
        URL.create("sqlite", database=str(file)),
        poolclass=QueuePool,
        pool_size=64,
        max_overflow=-1,
        connect_args={"timeout": BUSY_SECONDS},
        hide_parameters=True,  # an error that is logged must not show what a record holds
    )
    event.listen(made, "connect", _set_up)
    event.listen(made, "begin", _begin)
    return made


def writing(made: Engine) -> Engine:
    """The same engine, whose transactions take the write lock when they begin, not half-way."""
    return made.execution_options(**{_WRITES: True})


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Lets one process at a time create or migrate the databases of a folder; the folder itself is the lock."""
    try:
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ConfigError(
            f"the folder of database {file} cannot be used: {error.strerror}; create it, or name another database"
        ) from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def refuse_unusable(file: Path) -> None:
    """Raise ConfigError unless the file is absent, empty, or a whole database of ours; nothing is written."""
    if file.is_dir():
        raise ConfigError(f"database {file} is a folder: name a file in it, such as {file / 'paddlecloud.db'}")
    if not file.exists():
        return
    if not os.access(file, os.R_OK | os.W_OK):
        raise ConfigError(f"database {file} cannot be used: let the user of this process read and write it")
    try:
        with closing(sqlite3.connect(file.absolute().as_uri() + "?mode=rw", uri=True, timeout=BUSY_SECONDS)) as opened:
            found = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
            names = {row[0] for row in opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as error:
        if "locked" in str(error):
            raise ConfigError(f"database {file} is locked by another program: end that, then start again") from None
        raise _corrupt(file, str(error)) from None
    if found != "ok":
        raise _corrupt(file, found)
    if names and "alembic_version" not in names:
        raise ConfigError(f"database {file} belongs to another program: name another file")


def create(file: Path) -> None:
    """Make the file if it is absent; its owner alone may read it, and SQLite gives its companions the same mode."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigError(f"database {file} cannot be created: {error.strerror}") from None


def meaning(error: Exception, file: Path) -> PaddleCloudError | None:
    """The error of ours that a driver's error stands for; None: it is a mistake in our own code."""
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    if "disk is full" in text:
        return FullError(f"no space left for the database {file}: nothing was changed; free some space and try again")
    if "database is locked" in text:
        return UnreachableError(f"the database {file} is locked by another program; try again when that has ended")
    if "malformed" in text or "disk I/O error" in text or "not a database" in text:
        return InternalError(f"the database {file} cannot be read or written ({text}): check the disk it is on")
    return None


def _corrupt(file: Path, found: str) -> ConfigError:
    return ConfigError(
        f"database {file} is corrupt ({found}): restore a backup of it, or move it away to begin with an empty one"
    )


def _set_up(connection: Any, _record: object) -> None:
    # The driver would begin transactions by itself, and without the write lock.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
