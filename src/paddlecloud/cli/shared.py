"""The verb share: folders of the PFS that are shared with groups, for admins; a user lists those that they may see."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from paddlecloud.cli import shell, show
from paddlecloud.cli.connect import connect
from paddlecloud.cli.groups import listed
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.model.shared import SharedFolder
from paddlecloud.model.units import format_size
from paddlecloud.sdk.client import Client

_GROUPS = "a,b,…"


def share(parser: Parser) -> None:
    parser.branch(
        {
            "add": ("make a folder that is shared with groups", _add_setup),
            "list": ("list shared folders; those that you may see if you are no admin", _list_setup),
            "grant": ("let a group read it, or write too", _grant_setup),
            "revoke": ("have a group see it no more", _revoke_setup),
            "remove": ("take a shared folder away", _remove_setup),
        }
    )


VERBS: Mapping[str, Setup] = {"share": share}


def _add_setup(parser: Parser) -> None:
    parser.add_argument("name", help="letters, digits and _ . -")
    parser.add_argument("--read", metavar=_GROUPS, default="", help="groups that may read it; default is everybody")
    parser.add_argument("--write", metavar=_GROUPS, default="", help="groups that may write too")
    _add_datacenter(parser)
    add_output(parser)
    parser.set_defaults(run=_add)


def _add(args: Namespace) -> None:
    with connect() as client:
        made = client.pfs.shared.add(
            args.name, datacenter=args.datacenter, readers=listed(args.read), writers=listed(args.write)
        )
    show.one(made, args.output, made.path, lambda one: one.path)


def _list_setup(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_list)


def _list(args: Namespace) -> None:
    with connect() as client:
        found = client.pfs.shared.list()
    columns: list[Column[SharedFolder]] = [
        Column("PATH", lambda one: one.path),
        Column("USED", lambda one: format_size(one.size_bytes)),
        Column("FILES", lambda one: str(one.files), drop=2),
        Column("READ BY", lambda one: ", ".join(one.readers)),
        Column("WRITTEN BY", lambda one: ", ".join(one.writers)),
        Column("SINCE", lambda one: show.local_time(one.created_at), drop=1),
    ]
    show.many(found, columns, args.output, lambda one: one.path, "no folder is shared with you")


def _grant_setup(parser: Parser) -> None:
    parser.add_argument("name")
    parser.add_argument("group")
    parser.add_argument("--write", action="store_true", help="to write too; else to read")
    _add_datacenter(parser)
    parser.set_defaults(run=_grant)


def _grant(args: Namespace) -> None:
    with connect() as client:
        client.pfs.shared.grant(_datacenter(client, args), args.name, args.group, write=args.write)
    shell.talk(f"{args.group} may {'write' if args.write else 'read'} in {args.name}")


def _revoke_setup(parser: Parser) -> None:
    parser.add_argument("name")
    parser.add_argument("group")
    _add_datacenter(parser)
    parser.set_defaults(run=_revoke)


def _revoke(args: Namespace) -> None:
    with connect() as client:
        client.pfs.shared.revoke(_datacenter(client, args), args.name, args.group)
    shell.talk(f"{args.group} sees {args.name} no more; tasks that run keep it until they end")


def _remove_setup(parser: Parser) -> None:
    parser.add_argument("name")
    parser.add_argument("-r", dest="recursive", action="store_true", help="with all that is in it")
    _add_datacenter(parser)
    parser.set_defaults(run=_remove)


def _remove(args: Namespace) -> None:
    with connect() as client:
        client.pfs.shared.remove(_datacenter(client, args), args.name, recursive=args.recursive)
    shell.talk(f"shared folder {args.name} is gone")


def _add_datacenter(parser: Parser) -> None:
    parser.add_argument("--datacenter", metavar="NAME", default="", help="where it is; left out: in the first")


def _datacenter(client: Client, args: Namespace) -> str:
    return args.datacenter or client.pfs.datacenters()[0].name
