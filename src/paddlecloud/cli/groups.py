"""The verb group: groups of users, which queues their members may use, and what each of them may have."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.cli.users import add_limits, limits_text, wanted_quota
from paddlecloud.model.group import Group
from paddlecloud.model.user import NO_LIMITS, Quota

_NAMES = "a,b,…"


def group(parser: Parser) -> None:
    parser.branch(
        {
            "add": ("make a group", _add_setup),
            "list": ("list groups; those that you are in if you are no admin", _list_setup),
            "show": ("all about one group", _show_setup),
            "set": ("change its description, its queues, or what each member may have", _set_setup),
            "join": ("have users be members", _join_setup),
            "leave": ("have users be members no more", _leave_setup),
            "remove": ("take a group away, with all that it gave its members", _remove_setup),
        }
    )


VERBS: Mapping[str, Setup] = {"group": group}


def _add_setup(parser: Parser) -> None:
    parser.add_argument("name", help="letters, digits and _")
    parser.add_argument("--description", metavar="TEXT", default="", help="what it is for")
    parser.add_argument("--members", metavar=_NAMES, default="", help="users who are in it from the start")
    parser.add_argument("--queues", metavar=_NAMES, default="", help="queues that its members may use")
    add_output(parser)
    parser.set_defaults(run=_add)


def _add(args: Namespace) -> None:
    with connect() as client:
        made = client.accounts.groups.add(
            args.name, description=args.description, members=listed(args.members), queues=listed(args.queues)
        )
    show.one(made, args.output, made.name, lambda one: one.name)


def _list_setup(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_list)


def _list(args: Namespace) -> None:
    with connect() as client:
        found = client.accounts.groups.list()
    columns: list[Column[Group]] = [
        Column("NAME", lambda one: one.name),
        Column("MEMBERS", lambda one: str(len(one.members))),
        Column("QUEUES", lambda one: ", ".join(one.queues), drop=2),
        Column("LIMITS", _limits, drop=3),
        Column("DESCRIPTION", lambda one: one.description, drop=1),
        Column("SINCE", lambda one: show.local_time(one.created_at), drop=4),
    ]
    show.many(found, columns, args.output, lambda one: one.name)


def _show_setup(parser: Parser) -> None:
    parser.add_argument("group")
    add_output(parser)
    parser.set_defaults(run=_show)


def _show(args: Namespace) -> None:
    with connect() as client:
        found = client.accounts.groups.get(args.group)
    show.one(found, args.output, found.name, _text)


def _set_setup(parser: Parser) -> None:
    parser.add_argument("group")
    parser.add_argument("--description", metavar="TEXT", help="what it is for")
    parser.add_argument(
        "--queues", metavar=_NAMES, help="queues that its members may use; none: no more than everybody"
    )
    add_limits(parser)
    add_output(parser)
    parser.set_defaults(run=_set)


def _set(args: Namespace) -> None:
    with connect() as client:
        groups = client.accounts.groups
        now = groups.get(args.group)
        cluster = args.cluster
        wanted = wanted_quota(args, now.quota if cluster is None else now.quotas.get(cluster, NO_LIMITS))
        quotas: dict[str, Quota | None] = {}
        if cluster is not None and wanted is not None:
            quotas[cluster] = None if args.reset else wanted
        changed = groups.change(
            args.group,
            description=args.description,
            queues=None if args.queues is None else listed(args.queues),
            quota=wanted if cluster is None else None,
            quotas=quotas or None,
        )
    show.one(changed, args.output, changed.name, _text)


def _join_setup(parser: Parser) -> None:
    parser.add_argument("group")
    parser.add_argument("user", nargs="+")
    parser.set_defaults(run=_join)


def _join(args: Namespace) -> None:
    with connect() as client:
        for user in args.user:
            client.accounts.groups.join(args.group, user)
            shell.talk(f"{user} is in {args.group}")


def _leave_setup(parser: Parser) -> None:
    parser.add_argument("group")
    parser.add_argument("user", nargs="+")
    parser.set_defaults(run=_leave)


def _leave(args: Namespace) -> None:
    with connect() as client:
        for user in args.user:
            client.accounts.groups.leave(args.group, user)
            shell.talk(f"{user} is in {args.group} no more")


def _remove_setup(parser: Parser) -> None:
    parser.add_argument("group")
    parser.set_defaults(run=_remove)


def _remove(args: Namespace) -> None:
    with connect() as client:
        client.accounts.groups.remove(args.group)
    shell.talk(f"group {args.group} is gone, and what it gave its members")


def _text(one: Group) -> str:
    return show.fields(
        [
            ("name", one.name),
            ("description", one.description),
            ("since", show.local_time(one.created_at)),
            ("members", ", ".join(one.members) or "none"),
            ("queues", ", ".join(one.queues)),
            ("limits", limits_text(one.quota)),
            *[(f"limits on {cluster}", limits_text(quota) or "none") for cluster, quota in one.quotas.items()],
        ]
    )


def _limits(one: Group) -> str:
    own = [limits_text(one.quota), *(f"own on {cluster}" for cluster in one.quotas)]
    return "; ".join(text for text in own if text)


def listed(text: str) -> Sequence[str]:
    """Names with commas between them; "none" and nothing are none."""
    return () if text == "none" else [name for name in text.split(",") if name]
