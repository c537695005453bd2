"""Verbs about the records of a server on this machine: they work on the database itself, as the account it runs as.

Beside serve.py this is the one module that imports the server side, since none of it can be asked of a server.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.cli import shell, show
from paddlecloud.cli.local import require_server_parts
from paddlecloud.cli.parser import Parser, Setup, add_output, path
from paddlecloud.model.units import format_size

if TYPE_CHECKING:
    from paddlecloud.server.settings import Settings
    from paddlecloud.server.upkeep import Copied, Look, Made, Migrated, Restored

_QUIET_SECONDS = 2.0


def db(parser: Parser) -> None:
    parser.branch(
        {
            "backup": ("back up the records, while the server runs", _backup_setup),
            "restore": ("put the records of a backup in the place of those here", _restore_setup),
            "migrate": ("bring the records up to date, or move them to another database", _migrate_setup),
            "status": ("where the records are, and how many", _status_setup),
        }
    )


VERBS: Mapping[str, Setup] = {"db": db}


def _backup_setup(parser: Parser) -> None:
    parser.add_argument(
        "file", nargs="?", type=path, help="the new file, or a folder for it (backups/ in the data folder)"
    )
    _add_common(parser)
    parser.set_defaults(run=_backup)


def _backup(args: Namespace) -> None:
    settings = _settings(args)
    from paddlecloud.server import upkeep

    target = Path(args.file).absolute() if args.file else None
    made = upkeep.backup(settings, target, now=shell.now(), progress=_Told("backed up"))
    show.one(made, args.output, made.file, _made_text)
    if made.has_key:
        shell.talk("it has the key that secret keys are encrypted with: keep it as safe as the data folder")
    data = settings.server.data
    shell.talk(f"uploads and results are not in it: they are in {data / 'files'} and {data / 'results'}")


def _made_text(made: Made) -> str:
    shell.talk(f"backed up {_contents(made.rows)} ({format_size(made.size_bytes)})")
    return made.file


def _restore_setup(parser: Parser) -> None:
    parser.add_argument("file", type=path, help="what paddlecloud db backup made")
    parser.add_argument("--force", action="store_true", help="replace records that are there, after a backup of them")
    _add_common(parser)
    parser.set_defaults(run=_restore)


def _restore(args: Namespace) -> None:
    settings = _settings(args)
    from paddlecloud.server import upkeep

    file = Path(args.file).absolute()
    done = upkeep.restore(settings, file, force=args.force, now=shell.now(), progress=_Told("restored"))
    show.one(done, args.output, done.database, _restored_text)
    _tell_saved(done.saved)
    if done.unknown:
        shell.talk(
            f"{show.counted(len(done.unknown), 'attempt')} of jobs that came after this backup may still run, unseen:"
        )
        for attempt in done.unknown:
            shell.talk(f"  {attempt}")


def _restored_text(done: Restored) -> str:
    return f"restored {_contents(done.rows)} of {show.local_time(done.made_at)} into {done.database}"


def _migrate_setup(parser: Parser) -> None:
    parser.add_argument(
        "--to", metavar="URL", help="copy all records there: postgresql://user@host:port/name, or sqlite"
    )
    parser.add_argument("--force", action="store_true", help="replace records that are there, after a backup of them")
    _add_common(parser)
    parser.set_defaults(run=_migrate)


def _migrate(args: Namespace) -> None:
    settings = _settings(args)
    from paddlecloud.server import upkeep

    if args.to is None:
        done = upkeep.migrate(settings, now=shell.now())
        show.one(done, args.output, done.database, _migrated_text)
        _tell_saved(done.saved)
        return
    copied = upkeep.copy_to(settings, args.to, force=args.force, now=shell.now(), progress=_Told("copied"))
    show.one(copied, args.output, copied.target, _copied_text)
    _tell_saved(copied.saved)
    where = args.config or settings.server.data / "server.toml"
    change = f'write database = "{copied.setting}" into' if copied.setting else "take the line database = … out of"
    shell.talk(f"to use them, {change} [server] in {where}, then start the server; {copied.source} stays as it is")


def _migrated_text(done: Migrated) -> str:
    if done.before == done.after:
        return f"{done.database} is up to date (revision {done.after})"
    return f"{done.database} is migrated from revision {done.before} to {done.after}"


def _copied_text(done: Copied) -> str:
    return f"copied {_contents(done.rows)} from {done.source} to {done.target}"


def _status_setup(parser: Parser) -> None:
    _add_common(parser)
    parser.set_defaults(run=_status)


def _status(args: Namespace) -> None:
    settings = _settings(args)
    from paddlecloud.server import upkeep

    found = upkeep.look(settings)
    show.one(found, args.output, found.database, _look_text)


def _look_text(found: Look) -> str:
    newer = "" if found.revision == found.newest else f", to be migrated to {found.newest}"
    pairs = [
        ("kind", found.kind),
        ("database", found.database),
        ("revision", found.revision + newer),
        ("size", format_size(found.size_bytes)),
        *((name, str(count)) for name, count in found.rows.items()),
    ]
    return show.fields(pairs)


def _add_common(parser: Parser) -> None:
    parser.add_argument(
        "--config", type=path, metavar="FILE", help="the server's settings (server.toml in its data folder)"
    )
    add_output(parser)


def _settings(args: Namespace) -> Settings:
    require_server_parts()
    from paddlecloud.server import config

    return config.load(Path(args.config) if args.config else None)


def _contents(rows: Mapping[str, int]) -> str:
    return f"{show.counted(rows['jobs'], 'job')}, {show.counted(rows['users'], 'user')}"


def _tell_saved(saved: str | None) -> None:
    if saved:
        shell.talk(f"what was there before is in {saved}")


class _Told:
    """Says now and then how much of long work is done."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._said > _QUIET_SECONDS:
            self._said = time.monotonic()
            shell.talk(f"{self._what} {100 * done // max(total, 1)} %")
