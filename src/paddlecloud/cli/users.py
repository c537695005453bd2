"""Verbs about users and what they may have: user, for admins, and quota."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from paddlecloud.cli import shell, show
from paddlecloud.cli.ask import new_password
from paddlecloud.cli.connect import connect
from paddlecloud.cli.parser import Parser, Setup, add_output
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.units import format_duration, format_size, parse_size
from paddlecloud.model.user import NO_LIMITS, Account, Quota, Role
from paddlecloud.sdk.spec import duration

if TYPE_CHECKING:
    from paddlecloud.model.accounts import QuotaUse, Use

_ALL = "all clusters"


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
    rows = [*use.clusters.items(), (_ALL, use.overall)]
    return show.table(rows, quota_columns(use), width=shell.width(sys.stdout))


def quota_columns(whole: QuotaUse) -> list[Column[tuple[str, Use]]]:
    resets = f"(resets at {show.local_time(whole.resets_at)})"

    def minutes(use: Use) -> str:
        used, most = int(use.minutes_today), use.quota.minutes_a_day
        return str(used) if most is None else f"{used} of {most} {resets}"

    def space(cluster: str) -> str:
        most = whole.space_limit_bytes
        used = format_size(whole.space_bytes) + ("" if most is None else f" of {format_size(most)}")
        used += f" ({whole.space_source})" if whole.space_source.startswith("group") else ""
        return used if cluster == _ALL else ""

    return [
        Column("CLUSTER", lambda row: row[0]),
        Column("RUNNING", lambda row: _of(row[1].running_jobs, row[1].quota.running_jobs)),
        Column("WAITING", lambda row: _of(row[1].waiting_jobs, row[1].quota.waiting_jobs), drop=1),
        Column("MINUTES TODAY", lambda row: minutes(row[1])),
        Column("WALL TIME", lambda row: _time_limit(row[1].quota), drop=2),
        Column("INSTANCES", lambda row: _limit(row[1].quota.instances), drop=3),
        Column("SPACE", lambda row: space(row[0]), drop=4),
        Column("LIMITS OF", lambda row: row[1].source, drop=5),
    ]


def _user_add_setup(parser: Parser) -> None:
    parser.add_argument("name", help="letters, digits and . _ @ + -")
    parser.add_argument("--role", choices=tuple(Role), default=Role.USER, help="user or admin (user)")
    parser.add_argument("--password", action="store_true", help="ask for a password, or read it from stdin")
    add_output(parser)
    parser.set_defaults(run=_user_add)


def _user_add(args: Namespace) -> None:
    password = new_password(args.name) if args.password else None
    with connect() as client:
        was_there = any(one.name == args.name for one in client.accounts.users())
        made = client.accounts.add_user(args.name, Role(args.role), password)
        server = client.profile.server
    show.one(made, args.output, made.name, lambda one: one.name)
    if was_there:
        shell.talk(f"{made.name} was disabled: their jobs and files are theirs again, all older credentials have ended")
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
    columns: list[Column[Account]] = [
        Column("NAME", lambda one: one.name),
        Column("ROLE", lambda one: one.role.value),
        Column("DISABLED", lambda one: "yes" if one.disabled else "", drop=1),
        Column("RUNNING JOBS", lambda one: _limit(one.quota.running_jobs), drop=3),
        Column("MINUTES A DAY", lambda one: _limit(one.quota.minutes_a_day), drop=4),
        Column("INSTANCES", lambda one: _limit(one.quota.instances), drop=5),
        Column("WALL TIME", lambda one: _time_limit(one.quota), drop=5),
        Column("SPACE", lambda one: _size_limit(one.quota), drop=5),
        Column("OWN LIMITS ON", lambda one: ", ".join(one.quotas), drop=6),
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
    add_limits(parser)
    add_output(parser)
    parser.set_defaults(run=_user_quota)


def add_limits(parser: Parser) -> None:
    """The flags by which limits are set, of a user or of the members of a group."""
    parser.add_argument("--cluster", metavar="NAME", help="on this cluster alone; left out: on all together")
    parser.add_argument("--running-jobs", metavar="N", help="jobs that may run at once; none: no limit")
    parser.add_argument("--waiting-jobs", metavar="N", help="jobs that may wait; none: no limit")
    parser.add_argument("--minutes-a-day", metavar="N", help="minutes that jobs may run in a day; none: no limit")
    parser.add_argument("--instances", metavar="N", help="instances of one job; none: no limit")
    parser.add_argument("--wall-time", metavar="TIME", help="longest run of one job; none: no limit")
    parser.add_argument("--space", metavar="SIZE", help="most to keep in the PFS, such as 10Gi; none: as everybody")
    parser.add_argument("--reset", action="store_true", help="no limits of their own any more: as everybody")


def _user_quota(args: Namespace) -> None:
    with connect() as client:
        use = client.quota(args.name)
        if (wanted := wanted_quota(args, _place(args.cluster, use))) is not None:
            if args.cluster is None:
                client.accounts.change_user(args.name, quota=wanted)
            else:
                client.accounts.change_user(args.name, quotas={args.cluster: None if args.reset else wanted})
            use = client.quota(args.name)
    show.one(use, args.output, use.user, _quota_text)


def _place(cluster: str | None, use: QuotaUse) -> Quota:
    """What counts there now. A cluster that the server has no more may still have a quota to take away."""
    if cluster is None:
        return use.overall.quota
    return use.clusters[cluster].quota if cluster in use.clusters else NO_LIMITS


def wanted_quota(args: Namespace, now: Quota) -> Quota | None:
    """What was typed, on top of what counts now; None: nothing was."""
    typed = (args.running_jobs, args.waiting_jobs, args.minutes_a_day, args.instances, args.wall_time, args.space)
    if args.reset:
        if any(text is not None for text in typed):
            raise InvalidError("--reset takes the limits away: set some or reset all, not both", field="reset")
        return NO_LIMITS
    wanted = Quota(
        running_jobs=_changed(args.running_jobs, now.running_jobs, "running-jobs"),
        waiting_jobs=_changed(args.waiting_jobs, now.waiting_jobs, "waiting-jobs"),
        minutes_a_day=_changed(args.minutes_a_day, now.minutes_a_day, "minutes-a-day"),
        instances=_changed(args.instances, now.instances, "instances"),
        wall_time_seconds=_changed(args.wall_time, now.wall_time_seconds, "wall-time"),
        space_bytes=_changed(args.space, now.space_bytes, "space"),
    )
    return None if wanted == now else wanted


def _changed(text: str | None, now: int | None, name: str) -> int | None:
    if text is None:
        return now
    if text == "none":
        return None
    if name == "wall-time":
        return duration(text, f"--{name}")
    if name == "space":
        return parse_size(text, f"--{name}")
    if not (text.isascii() and text.isdigit()):
        raise InvalidError(f"--{name} {text!r} is not a limit: write a whole number, 0 or more, or none", field=name)
    return int(text)


def limits_text(limits: Quota) -> str:
    """What is limited, in one line; "" for nothing."""
    told = {
        "running jobs": limits.running_jobs,
        "waiting jobs": limits.waiting_jobs,
        "minutes a day": limits.minutes_a_day,
        "instances": limits.instances,
        "wall time": None if limits.wall_time_seconds is None else _time_limit(limits),
        "space": None if limits.space_bytes is None else _size_limit(limits),
    }
    return ", ".join(f"{name} {limit}" for name, limit in told.items() if limit is not None)


def _of(number: int, most: int | None) -> str:
    return str(number) if most is None else f"{number} of {most}"


def _limit(number: int | None) -> str:
    return "no limit" if number is None else str(number)


def _size_limit(limits: Quota) -> str:
    return "no limit" if limits.space_bytes is None else format_size(limits.space_bytes)


def _time_limit(limits: Quota) -> str:
    return "no limit" if limits.wall_time_seconds is None else format_duration(limits.wall_time_seconds)
