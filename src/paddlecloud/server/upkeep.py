"""What an operator does to the records as a whole: back them up, restore them, migrate them, look at them.

A backup is made before anything that replaces or changes all records, and only a server that is stopped can lose any.
"""

from __future__ import annotations

import logging
import shutil
import signal
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paddlecloud.model.audit import Action
from paddlecloud.model.errors import ConfigError, ConflictError, InvalidError
from paddlecloud.server.audit import HERE, AuditService
from paddlecloud.server.datadir import DataFolder, check_owner, hold
from paddlecloud.server.kinds import without_password
from paddlecloud.server.settings import Settings
from paddlecloud.store import backups, copying, migrations, sqlite
from paddlecloud.store.audit import Audit
from paddlecloud.store.copying import Progress
from paddlecloud.store.db import POSTGRES_PREFIXES, Database, kind_of, reading
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.secrets import replace_key

log = logging.getLogger(__name__)

SQLITE = "sqlite"  # how the database in the data folder is named where a URL is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    kind: str
    database: str
    revision: str
    newest: str
    size_bytes: int
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A backup."""

    file: str
    size_bytes: int
    revision: str
    has_key: bool
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    file: str
    made_at: datetime
    database: str
    rows: Mapping[str, int]
    saved: str | None  # the backup of what was there before
    unknown: tuple[str, ...]  # attempts that may be running, of which the restored records do not know


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    database: str
    before: str
    after: str
    saved: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    source: str
    target: str
    rows: Mapping[str, int]
    saved: str | None  # the backup of what the target had before
    setting: str  # what server.database has to be from now on


def open_records(settings: Settings, clock: Callable[[], datetime]) -> Database:
    """The database of a server that starts; if it has to be migrated, there is a backup of it first."""
    database, _ = _opened(_url(settings), DataFolder(settings.server.data), clock)
    log.info("records are in %s", database.label)
    return database


def refuse_emptied(settings: Settings, database: Database) -> None:
    """Raise ConfigError where results and a key are left of records that are gone: a server that started without them
    would run as a new one, and give the results to nobody."""
    folder = DataFolder(settings.server.data)
    left = next(folder.results.glob("*/job-*"), None)
    if left is None or not folder.key.exists():
        return
    backup = max(folder.backups.glob(f"*{backups.ENDING}"), default=None, key=lambda file: file.stat().st_mtime)
    raise ConfigError(
        f"{database.label} has no records, but {folder.key} and results such as {left} are there: put the records back "
        f"(paddlecloud db restore {backup or 'FILE'}), or begin anew without them by --new: the files stay where they "
        "are, and nobody sees them"
    )


def look(settings: Settings) -> Look:
    with reading(_readable_url(settings)) as (connection, kind):
        return Look(
            kind=kind.name,
            database=kind.label,
            revision=migrations.revision(connection) or "",
            newest=migrations.HEAD,
            size_bytes=kind.size_bytes(connection),
            rows=copying.rows(connection),
        )


def backup(settings: Settings, target: Path | None, *, now: datetime, progress: Progress) -> Made:
    """A backup, made while the server runs; it has records and the key file, but neither uploads nor results."""
    folder = DataFolder(settings.server.data)
    url = _readable_url(settings)
    if target is None or target.is_dir():
        revision = look(settings).revision
        target = _new_name(target or _backups(folder), revision, now)
    made = backups.make(url, target, key_file=folder.key, now=now, progress=progress)
    return Made(
        file=str(target),
        size_bytes=target.stat().st_size,
        revision=made.revision,
        has_key=made.key is not None,
        rows=made.rows,
    )


def restore(settings: Settings, file: Path, *, force: bool, now: datetime, progress: Progress) -> Restored:
    """Put the records and the key of a backup in the place of what there is, which is backed up first."""
    facts = backups.read(file)
    with hold(settings.server.data) as folder:
        aside = None
        try:
            database = open_records(settings, lambda: now)
        except ConfigError:
            if not force or settings.server.database or not folder.database.is_file():
                raise
            aside = _set_aside(folder, now)
            database = open_records(settings, lambda: now)
        with closing(database):
            saved = aside or _make_room(database, _url(settings), folder, now, force=force)
            audit = AuditService(Audit(database), lambda: now)
            with backups.unpacked(file, folder.root) as unpacked:
                with audit.beside(Action.DB_RESTORE, HERE, target=str(file), detail=f"of {facts.made_at:%F %T} UTC"):
                    rows = _copy(unpacked, database, progress)
            if facts.key is not None:
                replace_key(folder.key, facts.key)
            unknown = _unknown_attempts(folder, database)
    return Restored(
        file=str(file), made_at=facts.made_at, database=database.label, rows=rows, saved=saved, unknown=unknown
    )


def migrate(settings: Settings, *, now: datetime) -> Migrated:
    """Bring the records up to date, as the next start of the server would."""
    with hold(settings.server.data) as folder:
        before = look(settings).revision
        database, saved = _opened(_url(settings), folder, lambda: now)
        database.close()
    return Migrated(database=database.label, before=before, after=migrations.HEAD, saved=saved)


def copy_to(settings: Settings, to: str, *, force: bool, now: datetime, progress: Progress) -> Copied:
    """Copy all records to a database of the other kind, to be used from now on; those here stay as they are."""
    with hold(settings.server.data) as folder:
        target_url = _target_url(to, folder)
        if kind_of(target_url).label == look(settings).database:
            raise ConflictError(f"the records are in {kind_of(target_url).label} already: name another database")
        with closing(open_records(settings, lambda: now)) as source:
            target, _ = _opened(target_url, folder, lambda: now)
            with closing(target):
                saved = _make_room(target, target_url, folder, now, force=force)
                rows = _copy(_url(settings), target, progress)
    setting = "" if to == SQLITE else to
    return Copied(source=source.label, target=target.label, rows=rows, saved=saved, setting=setting)


def _opened(url: str, folder: DataFolder, clock: Callable[[], datetime]) -> tuple[Database, str | None]:
    """The database, and the backup that was made of it before it was migrated."""
    saved: list[str | None] = []

    def save(revision: str) -> None:
        saved.append(_save(url, folder, clock()))
        log.info("records are migrated from revision %s to %s; backup: %s", revision, migrations.HEAD, saved[-1])

    return Database.open(url, before_migration=save, on_lost=_end), saved[-1] if saved else None


def _end(why: str) -> None:
    """Another server acts on these records now: this one must not."""
    log.critical("%s", why)
    signal.raise_signal(signal.SIGTERM)


def _url(settings: Settings) -> str:
    return settings.server.database or f"{sqlite.PREFIX}{DataFolder(settings.server.data).database}"


def _readable_url(settings: Settings) -> str:
    """The URL of records that this account may look at without leaving files that are closed to the server's."""
    if settings.server.data.exists():
        check_owner(settings.server.data)
    return _url(settings)


def _target_url(to: str, folder: DataFolder) -> str:
    if to == SQLITE:
        return f"{sqlite.PREFIX}{folder.database}"
    if not to.startswith(POSTGRES_PREFIXES):
        raise InvalidError(
            f"--to {without_password(to)!r} is no database: write postgresql://user@host:port/name, or {SQLITE} for "
            f"the one in the data folder, {folder.database}",
            field="to",
        )
    if without_password(to) != to:
        raise InvalidError(
            "everybody on this machine can read a password that is typed here: leave it out, and put it into "
            "~/.pgpass or the variable PGPASSWORD",
            field="to",
        )
    return to


def _set_aside(folder: DataFolder, now: datetime) -> str:
    """Move an SQLite file that cannot be used out of the way, with the key that it would need."""
    aside = _new_name(_backups(folder), "unusable", now).with_suffix(".db")
    if folder.key.exists():
        shutil.copy2(folder.key, aside.with_suffix(".key"))
    moves = zip(sqlite.files(folder.database), sqlite.files(aside), strict=True)
    for before, after in moves:
        if before.exists():
            before.rename(after)
    return str(aside)


def _make_room(database: Database, url: str, folder: DataFolder, now: datetime, *, force: bool) -> str | None:
    """Refuse to replace records that nobody said may go; else back them up."""
    with database.read() as connection:
        rows = copying.rows(connection)
    if not any(rows.values()):
        return None
    if not force:
        raise ConflictError(
            f"{database.label} has records already (jobs: {rows['jobs']}, users: {rows['users']}): "
            "--force puts others in their place, after a backup of them"
        )
    return _save(url, folder, now)


def _save(url: str, folder: DataFolder, now: datetime) -> str | None:
    """The file of a backup that nobody asked for by name; None: there was nothing in the records."""
    with reading(url) as (connection, _):
        if not any(copying.rows(connection).values()):
            return None
        revision = migrations.revision(connection) or ""
    target = _new_name(_backups(folder), revision, now)
    backups.make(url, target, key_file=folder.key, now=now, progress=lambda _done, _total: None)
    return str(target)


def _copy(source_url: str, target: Database, progress: Progress) -> dict[str, int]:
    with reading(source_url) as (source, _), target.write() as connection:
        return copying.replace(source, connection, progress)


def _unknown_attempts(folder: DataFolder, database: Database) -> tuple[str, ...]:
    """Attempts that left a folder on this machine, and that no round will ever look at again."""
    held = {found.handle for found in Jobs(database).held()}
    found = [path for path in folder.tasks.glob("*/job-*") if path.is_dir()]
    return tuple(sorted(str(path) for path in found if path.name not in held))


def _backups(folder: DataFolder) -> Path:
    folder.backups.mkdir(mode=0o700, exist_ok=True)
    return folder.backups


def _new_name(folder: Path, what: str, now: datetime) -> Path:
    stem = f"paddlecloud-{now:%Y%m%dT%H%M%SZ}-{what}"
    names = (f"{stem}{'' if number == 1 else f'-{number}'}{backups.ENDING}" for number in range(1, 10**6))
    return next(folder / name for name in names if not (folder / name).exists())
