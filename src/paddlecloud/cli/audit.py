"""The audit record, for admins: who did what, when, from where."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output, count
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import InvalidError

if TYPE_CHECKING:
    from paddlecloud.model.audit import AuditEntry

_LIMIT = 100


def audit(parser: Parser) -> None:
    parser.add_argument("--user", help="what this user did")
    parser.add_argument("--action", help="of this kind: login, key.revoke, key (all of key.…)")
    parser.add_argument("--since", metavar="TIME", help="of the last 10m, 2h, 7d, or since 2026-11-16T08:00:00Z")
    parser.add_argument(
        "-n", "--limit", type=count, default=_LIMIT, metavar="N", help=f"the newest so many; 0: all ({_LIMIT})"
    )
    add_output(parser)
    parser.set_defaults(run=_audit)


VERBS: Mapping[str, Setup] = {"audit": audit}


def _audit(args: Namespace) -> None:
    found = _asked(args)
    columns: list[Column[AuditEntry]] = [
        Column("WHEN", lambda one: show.local_time(one.at)),
        Column("USER", lambda one: one.user or "-"),
        Column("FROM", lambda one: one.address or "-", drop=2),
        Column("ACTION", lambda one: one.action.value),
        Column("REQUEST", lambda one: one.request_id or "-", wide=True),
        Column("TARGET", lambda one: one.target or "-"),
        Column("DETAIL", lambda one: one.detail, drop=3),
    ]
    show.many(found, columns, args.output, lambda one: str(one.seq), "nothing of that is on record")
    if len(found) == args.limit:
        shell.talk(f"the newest {args.limit}; -n 0 lists all")


def _asked(args: Namespace) -> list[AuditEntry]:
    with connect() as client:
        try:
            return client.accounts.audit(user=args.user, action=args.action, since=args.since, limit=args.limit or None)
        except InvalidError as error:
            if error.field != "since":
                raise
            raise InvalidError(
                f"--since {args.since[:80]!r} is not a time: write how long ago (10m, 2h, 7d), or when "
                "(2026-11-16, 2026-11-16T08:00:00Z)",
                field="since",
            ) from None
