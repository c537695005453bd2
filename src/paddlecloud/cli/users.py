"""Verbs about users and what they may have: user, for admins, and quota."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from paddlecloud.cli import shell, show
from paddlecloud.cli.ask import new_password
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.units import format_duration, parse_duration
from paddlecloud.model.user import Quota, Role, User

if TYPE_CHECKING:
    from paddlecloud.model.views import QuotaUse


def quota(parser: Parser) -> None:
    parser.add_argument("--user", help="of this user (for admins)")
    add_output(parser)
    parser.set_defaults(run=_quota)


def user(parser: Parser) -> None:
    parser.branch(
        {
            "add": ("add a user", _user_add_setup),
            "list": ("list users", _user_list_setup),
            "disable": ("refuse everything this user asks", _user_disable_setup),
            "enable": ("let a disabled user in again", _user_enable_setup),
            "passwd": ("set a password", _user_passwd_setup),
            "quota": ("set what a user may have", _user_quota_setup),
        }
    )


VERBS: Mapping[str, Setup] = {"quota": quota, "user": user}


def _quota(args: Namespace) -> None:
    with connect() as client:
        use = client.quota(args.user)
    show.one(use, args.output, use.user, _quota_text)


def _quota_text(use: QuotaUse) -> str:
    limits = use.quota
    running = f"{use.running_jobs} of {_limit(limits.running_jobs)}"
    return show.fields(
        [
            ("user", use.user),
            ("running jobs", running),
            ("instances of a job", _limit(limits.instances)),
            ("wall time of a job", _time_limit(limits)),
        ]
    )


def _user_add_setup(parser: Parser) -> None:
    parser.add_argument("name", help="letters, digits and . _ @ + -")
    parser.add_argument("--role", choices=tuple(Role), default=Role.USER, help="user or admin (user)")
    parser.add_argument("--password", action="store_true", help="ask for a password, or read it from stdin")
    add_output(parser)
    parser.set_defaults(run=_user_add)


def _user_add(args: Namespace) -> None:
    password = new_password(args.name) if args.password else None
    with connect() as client:
        made = client.accounts.add_user(args.name, Role(args.role), password)
        server = client.profile.server
    show.one(made, args.output, made.name, lambda one: one.name)
    if password is None:
        name = made.name
        shell.talk(f"to let them in: paddlecloud user passwd {name}, or paddlecloud key create --user {name}")
    else:
        shell.talk(f"they log in by: paddlecloud login --server {server} --user {made.name}")


def _user_list_setup(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_user_list)


def _user_list(args: Namespace) -> None:
    with connect() as client:
        found = client.accounts.users()
    columns: list[Column[User]] = [
        Column("NAME", lambda one: one.name),
        Column("ROLE", lambda one: one.role.value),
        Column("DISABLED", lambda one: "yes" if one.disabled else "", drop=1),
        Column("RUNNING JOBS", lambda one: _limit(one.quota.running_jobs), drop=3),
        Column("INSTANCES", lambda one: _limit(one.quota.instances), drop=4),
        Column("WALL TIME", lambda one: _time_limit(one.quota), drop=4),
        Column("SINCE", lambda one: show.local_time(one.created_at), drop=2),
    ]
    show.many(found, columns, args.output, lambda one: one.name)


def _user_disable_setup(parser: Parser) -> None:
    parser.add_argument("name")
    parser.set_defaults(run=_user_set_disabled, disabled=True)


def _user_enable_setup(parser: Parser) -> None:
    parser.add_argument("name")
    parser.set_defaults(run=_user_set_disabled, disabled=False)


def _user_set_disabled(args: Namespace) -> None:
    with connect() as client:
        changed = client.accounts.change_user(args.name, disabled=args.disabled)
    shell.talk(f"{changed.name} is {'disabled' if changed.disabled else 'enabled'}")


def _user_passwd_setup(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", help="whose; yours if left out")
    parser.set_defaults(run=_user_passwd)


def _user_passwd(args: Namespace) -> None:
    with connect() as client:
        name = args.name or client.accounts.me().name
        client.accounts.change_user(name, password=new_password(name))
    shell.talk(f"the password of {name} is set; tokens from before are void, so log in again: paddlecloud login")


def _user_quota_setup(parser: Parser) -> None:
    parser.add_argument("name")
    parser.add_argument("--running-jobs", metavar="N", help="jobs that may run at once; none: no limit")
    parser.add_argument("--instances", metavar="N", help="instances of one job; none: no limit")
    parser.add_argument("--wall-time", metavar="TIME", help="longest run of one job; none: no limit")
    add_output(parser)
    parser.set_defaults(run=_user_quota)


def _user_quota(args: Namespace) -> None:
    with connect() as client:
        now = client.accounts.user(args.name).quota
        wanted = Quota(
            running_jobs=_changed(args.running_jobs, now.running_jobs, "running-jobs"),
            instances=_changed(args.instances, now.instances, "instances"),
            wall_time_seconds=_changed(args.wall_time, now.wall_time_seconds, "wall-time"),
        )
        if wanted != now:
            client.accounts.change_user(args.name, quota=wanted)
        use = client.quota(args.name)
    show.one(use, args.output, use.user, _quota_text)


def _changed(text: str | None, now: int | None, name: str) -> int | None:
    if text is None:
        return now
    if text == "none":
        return None
    if name == "wall-time":
        return parse_duration(text, name)
    if not (text.isascii() and text.isdigit()):
        raise InvalidError(f"--{name} {text!r} is neither a number nor none", field=name)
    return int(text)


def _limit(number: int | None) -> str:
    return "no limit" if number is None else str(number)


def _time_limit(limits: Quota) -> str:
    return "no limit" if limits.wall_time_seconds is None else format_duration(limits.wall_time_seconds)
