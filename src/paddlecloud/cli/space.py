"""The verb df: what uses the server's space, for how long it is kept, and what a collection takes away."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import ForbiddenError
from paddlecloud.model.units import describe_duration, format_size

if TYPE_CHECKING:
    from paddlecloud.model.space import Collected, Share, Space, UserShare
    from paddlecloud.sdk.client import Client

_OLD_SECONDS = 5
_PFS = "pfs"
_KEPT_OTHERWISE = {
    _PFS: "until their users remove them",
    "shared": "until their groups remove them",
    "tasks": "until the job has ended",
    "backups": "until you remove them",
    "other": "",
    "unknown": "until you remove them: no record knows these jobs",
}


def df(parser: Parser) -> None:
    parser.add_argument("--users", action="store_true", help="by user, the largest first (only for admins)")
    parser.add_argument("--now", action="store_true", help="count now; else the figures of the last count are shown")
    parser.add_argument("--collect", action="store_true", help="take away what was kept long enough, now (for admins)")
    parser.add_argument("--dry-run", action="store_true", help="only say what --collect would take away")
    add_output(parser)
    parser.set_defaults(run=_df)


VERBS: Mapping[str, Setup] = {"df": df}


def _df(args: Namespace) -> None:
    with connect() as client:
        try:
            if args.collect or args.dry_run:
                _collect(client, args.dry_run, args.output)
                return
            space = client.space(users=args.users, now=args.now)
        except ForbiddenError:
            raise ForbiddenError(
                "what everybody keeps only admins see, and only they collect; `paddlecloud df` shows what is yours"
            ) from None
        if space.user is not None:
            space = _with_limit(space, client.quota().space_limit_bytes)
    _tell(space, args)


def _with_limit(space: Space, most: int | None) -> Space:
    """A user's own figures, with what they may keep in the PFS."""
    shares = (replace(share, limit_bytes=most) if share.kind == _PFS else share for share in space.shares)
    return replace(space, shares=tuple(shares))


def _tell(space: Space, args: Namespace) -> None:
    now = shell.now()
    if args.output in ("json", "yaml"):
        show.one(space, args.output, "", lambda _: "")
        return
    if args.users:
        show.many(space.users, user_columns(), args.output, lambda share: share.user, "nobody uses any space")
    else:
        columns = share_columns(now, own=space.user is not None)
        show.many(space.shares, columns, args.output, lambda share: share.kind)
    if args.output == "name":
        return
    for disk in space.disks:
        shell.talk(f"{format_size(disk.free_bytes)} of {format_size(disk.size_bytes)} free on the disk of {disk.path}")
    if space.user is not None:
        shell.talk(f"this is {space.user}'s alone; what others keep, and how full the disks are, only admins see")
    age = (now - space.counted_at).total_seconds()
    if age > _OLD_SECONDS:
        shell.talk(f"counted {describe_duration(age)} ago; paddlecloud df --now counts again")
    else:
        shell.talk("counted just now")


def share_columns(now: datetime, *, own: bool = False) -> list[Column[Share]]:
    return [
        Column("KIND", lambda share: share.kind),
        Column("USED", _used),
        Column("FILES", lambda share: str(share.used.files), drop=2),
        Column("OLDEST", lambda share: _age(share.oldest_at, now), drop=1),
        Column("BYTES", lambda share: str(share.used.size_bytes), wide=True),
        Column("SINCE", lambda share: show.local_time(share.oldest_at), wide=True),
        Column("KEPT FOR", lambda share: "until you remove them" if own and share.kind == _PFS else _kept_for(share)),
    ]


def user_columns() -> list[Column[UserShare]]:
    return [
        Column("USER", lambda share: share.user),
        Column("USED", lambda share: format_size(share.size_bytes)),
        Column("UPLOADS", lambda share: format_size(share.uploads.size_bytes), drop=1),
        Column("RESULTS", lambda share: format_size(share.results.size_bytes), drop=1),
        Column("LOGS", lambda share: format_size(share.logs.size_bytes), drop=2),
        Column("ENVIRONMENTS", lambda share: format_size(share.environments.size_bytes), drop=2),
        Column("PFS", lambda share: format_size(share.pfs.size_bytes), drop=1),
        Column("FILES", lambda share: str(share.total.files), wide=True),
    ]


def _used(share: Share) -> str:
    used = format_size(share.used.size_bytes)
    limited = share.kind == _PFS and share.limit_bytes is not None
    return f"{used} of {format_size(share.limit_bytes or 0)}" if limited else used


def _age(at: datetime | None, now: datetime) -> str:
    return "" if at is None else show.short_time((now - at).total_seconds())


def _kept_for(share: Share) -> str:
    if share.kind in _KEPT_OTHERWISE:
        return _KEPT_OTHERWISE[share.kind]
    age = "for ever" if share.keep_seconds is None else describe_duration(share.keep_seconds)
    return age if share.limit_bytes is None else f"{age}, {format_size(share.limit_bytes)} at most"


def _collect(client: Client, dry_run: bool, output: str) -> None:
    parts: list[Collected] = []
    for part in client.collect(dry_run=dry_run):
        parts += part.collected
        if part.more:
            shell.talk(
                "there is more to be collected; going on" if not dry_run else "there is more than can be told now"
            )
    columns: list[Column[Collected]] = [
        Column("KIND", lambda one: one.kind.value),
        Column("COUNT", lambda one: str(one.count)),
        Column("FREED", lambda one: format_size(one.used.size_bytes)),
        Column("BY", lambda one: one.by),
    ]
    none = "nothing has been kept long enough to go; `paddlecloud df` shows for how long that is"
    show.many(parts, columns, output, lambda one: one.kind.value, none)
