"""Backups: one file, closed to others, with all records and the key file they need, that any database can be made from.

It is an SQLite database of the records, whichever kind they came from, with one more table that says what it is. It
appears under its name when it is whole, checked and on the disk, and never takes the place of another file.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec
from sqlalchemy import Connection

from paddlecloud import __version__
from paddlecloud.model.errors import ConfigError, ConflictError, FullError, InvalidError
from paddlecloud.store import copying, migrations, sqlite
from paddlecloud.store.copying import Progress
from paddlecloud.store.db import Database, reading, refuse_newer
from paddlecloud.store.secrets import is_key, read_key

ENDING = ".backup"
_FACTS = "paddlecloud_backup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a backup says of itself."""

    version: str  # of the program that made it
    revision: str
    kind: str  # of the database that it was made from
    made_at: datetime
    rows: Mapping[str, int]
    key: str | None = field(repr=False)  # what the key file held; None: nothing was encrypted yet


def make(url: str, target: Path, *, key_file: Path, now: datetime, progress: Progress) -> Facts:
    """Back up the records of this moment into a new file; whoever uses the database goes on using it."""
    with _draft(target) as draft:
        with reading(url) as (source, kind), _telling_of(target):
            revision = migrations.revision(source)
            assert revision is not None
            rows = copying.rows(source)
            if source.dialect.name == "sqlite":
                sqlite.copy_pages(source, draft, progress)
            else:
                _copy_rows(source, draft, revision, progress)
            # Read last: a key that is made after these records cannot be the one that they need.
            key = read_key(key_file) if rows.get("access_keys") or key_file.exists() else None
            facts = Facts(version=__version__, revision=revision, kind=kind.name, made_at=now, rows=rows, key=key)
        with _telling_of(target):
            _seal(draft, facts)
    return facts


def read(file: Path) -> Facts:
    """What a backup says of itself, once it is known to be whole and from a program that is not newer than this."""
    if not file.is_file():
        raise InvalidError(f"there is no backup {file}: name a file that paddlecloud db backup made", field="file")
    try:
        with closing(_opened(file)) as opened:
            found = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
            (said,) = opened.execute(f"SELECT facts FROM {_FACTS}").fetchone()
        if found != "ok":
            raise ConfigError(f"backup {file} is damaged ({found}): take another one")
        facts = msgspec.json.decode(said, type=Facts)
    except (sqlite3.Error, msgspec.DecodeError, TypeError) as error:
        raise ConfigError(
            f"{file} is no backup, or a damaged one ({error}): name a file that paddlecloud db backup made"
        ) from None
    refuse_newer(facts.revision, f"backup {file}")
    if facts.key is not None and not is_key(facts.key):
        raise ConfigError(f"backup {file} is damaged (the key in it is none): take another one")
    return facts


@contextmanager
def unpacked(file: Path, folder: Path) -> Iterator[str]:
    """The URL of a copy of the backup's records, brought up to date; it is in `folder` for as long as it is needed."""
    copy = folder / f".{file.name}.{secrets.token_hex(8)}"
    url = f"{sqlite.PREFIX}{copy}"
    try:
        with _telling_of(copy):
            _create(copy)
            with closing(_opened(file)) as source, closing(sqlite3.connect(copy)) as target:
                source.backup(target)
                target.execute(f"DROP TABLE {_FACTS}")
                target.commit()
            Database.open(url).close()
        yield url
    finally:
        _remove(copy)


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """A file to write, which becomes `target` if all goes well and is gone otherwise."""
    if os.path.lexists(target):
        raise ConflictError(f"{target} exists already, and a backup takes the place of no file: name another")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with _telling_of(target):
            _create(draft)
        yield draft
        with _telling_of(target):
            _publish(draft, target)
    finally:
        _remove(draft)


def _copy_rows(source: Connection, draft: Path, revision: str, progress: Progress) -> None:
    """The records of another kind of database, in an SQLite file of the same revision."""
    copy = Database(sqlite.SQLite(f"{sqlite.PREFIX}{draft}"))
    try:
        with copy.write() as connection:
            migrations.upgrade(connection, to=revision)
            copying.replace(source, connection, progress)
    finally:
        copy.close()


def _seal(draft: Path, facts: Facts) -> None:
    with closing(sqlite3.connect(draft)) as opened:
        opened.execute("PRAGMA journal_mode = DELETE")  # one file, with no companions beside it
        opened.execute(f"CREATE TABLE {_FACTS} (facts TEXT NOT NULL)")
        opened.execute(f"INSERT INTO {_FACTS} VALUES (?)", [msgspec.json.encode(facts).decode()])
        opened.commit()
    read(draft)


def _publish(draft: Path, target: Path) -> None:
    _sync(draft, os.O_RDONLY)
    try:
        os.link(draft, target)  # unlike a rename it never takes the place of a file
    except FileExistsError:
        raise
    except OSError:  # a disk that has no links, such as one that is carried away
        draft.rename(target)
    _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _create(file: Path) -> None:
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def _remove(file: Path) -> None:
    for one in sqlite.files(file):
        one.unlink(missing_ok=True)


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)


@contextmanager
def _telling_of(file: Path) -> Iterator[None]:
    """Has an error say which file could not be written, rather than which draft of it, or which source."""
    try:
        yield
    except (OSError, sqlite3.OperationalError, FullError) as error:
        text = str(error)
        if isinstance(error, FullError) or "disk is full" in text or "No space left" in text:
            raise FullError(f"no space left for {file}: nothing was changed; free some space and try again") from None
        why = error.strerror if isinstance(error, OSError) else text
        raise ConfigError(f"{file} cannot be written ({why}): name another place") from None
