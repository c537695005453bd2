"""Creates and reads backups: one private file with all records and their key file.

A backup is an SQLite database of the records, whichever kind they came from, plus a table that describes it. Any kind
of database can be restored from it.
Invariant: a backup appears under its name only when it is complete, checked and on disk, and never overwrites a file.
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
    """A backup's description of itself."""

    version: str  # of the program that created it
    revision: str
    kind: str  # of the source database
    made_at: datetime
    rows: Mapping[str, int]
    key: str | None = field(repr=False)  # content of the key file; None if nothing was encrypted yet


def make(url: str, target: Path, *, key_file: Path, now: datetime, progress: Progress) -> Facts:
    """Back up the current records into a new file, while the database stays in use."""
    with _draft(target) as draft:
        with reading(url) as (source, kind), _errors_about(target):
            revision = migrations.revision(source)
            assert revision is not None
            rows = copying.rows(source)
            if source.dialect.name == "sqlite":
                sqlite.copy_pages(source, draft, progress)
            else:
                _copy_rows(source, draft, revision, progress)
            # Read the key last: a key file created after these records cannot be the one they need.
            key = read_key(key_file) if rows.get("access_keys") or key_file.exists() else None
            facts = Facts(version=__version__, revision=revision, kind=kind.name, made_at=now, rows=rows, key=key)
        with _errors_about(target):
            _seal(draft, facts)
    return facts


def read(file: Path) -> Facts:
    """Return a backup's description, after checking that it is complete and not from a newer version."""
    if not file.is_file():
        raise InvalidError(f"there is no backup {file}: name a file that paddlecloud db backup made", field="file")
    try:
        with closing(_opened(file)) as opened:
            found = opened.execute("PRAGMA quick_check(1)").fetchone()[0]
            (said,) = opened.execute(f"SELECT facts FROM {_FACTS}").fetchone()
        if found != "ok":
            raise ConfigError(f"backup {file} is damaged ({found}): use another one")
        facts = msgspec.json.decode(said, type=Facts)
    except (sqlite3.Error, msgspec.DecodeError, TypeError) as error:
        raise ConfigError(
            f"{file} is not a backup, or is damaged ({error}): name a file that paddlecloud db backup made"
        ) from None
    refuse_newer(facts.revision, f"backup {file}")
    if facts.key is not None and not is_key(facts.key):
        raise ConfigError(f"backup {file} is damaged (it contains an invalid key): use another one")
    return facts


@contextmanager
def unpacked(file: Path, folder: Path) -> Iterator[str]:
    """Yield the URL of a temporary, migrated copy of the backup's records in `folder`."""
    copy = folder / f".{file.name}.{secrets.token_hex(8)}"
    url = f"{sqlite.PREFIX}{copy}"
    try:
        with _errors_about(copy):
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
    """Yield a file to write; it becomes `target` on success and is deleted otherwise."""
    if os.path.lexists(target):
        raise ConflictError(f"{target} exists already, and a backup never overwrites a file: choose another name")
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with _errors_about(target):
            _create(draft)
        yield draft
        with _errors_about(target):
            _publish(draft, target)
    finally:
        _remove(draft)


def _copy_rows(source: Connection, draft: Path, revision: str, progress: Progress) -> None:
    """Copy the records of another kind of database into an SQLite file of the same revision."""
    copy = Database(sqlite.SQLite(f"{sqlite.PREFIX}{draft}"))
    try:
        with copy.write() as connection:
            migrations.upgrade(connection, to=revision)
            copying.replace(source, connection, progress)
    finally:
        copy.close()


def _seal(draft: Path, facts: Facts) -> None:
    with closing(sqlite3.connect(draft)) as opened:
        opened.execute("PRAGMA journal_mode = DELETE")  # keep everything in one file
        opened.execute(f"CREATE TABLE {_FACTS} (facts TEXT NOT NULL)")
        opened.execute(f"INSERT INTO {_FACTS} VALUES (?)", [msgspec.json.encode(facts).decode()])
        opened.commit()
    read(draft)


def _publish(draft: Path, target: Path) -> None:
    _sync(draft, os.O_RDONLY)
    try:
        os.link(draft, target)  # unlike a rename, it never overwrites a file
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, such as a USB stick's
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
def _errors_about(file: Path) -> Iterator[None]:
    """Make an error name this file, rather than its draft or the source."""
    try:
        yield
    except (OSError, sqlite3.OperationalError, FullError) as error:
        text = str(error)
        if isinstance(error, FullError) or "disk is full" in text or "No space left" in text:
            raise FullError(f"no space left for {file}: nothing was changed; free some space and try again") from None
        why = error.strerror if isinstance(error, OSError) else text
        raise ConfigError(f"{file} cannot be written ({why}): choose another place") from None
