"""Verbs about who one is to a server: login, config, and the tokens and access keys to be known by."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from paddlecloud.cli import ask, shell, show
from paddlecloud.cli.connect import connect, named_server
from paddlecloud.cli.parser import Parser, Setup, add_output, path
from paddlecloud.cli.show import Column
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.user import AccessKey, Scope, Token
from paddlecloud.sdk import kept_tokens, ownconfig
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.profile import SECRETS, Profile
from paddlecloud.sdk.spec import duration


def login(parser: Parser) -> None:
    parser.add_argument("--server", metavar="URL", help="the server's address, such as http://host:8642")
    parser.add_argument("--user", help="your name there; the password is asked for, or read from stdin")
    parser.add_argument("--token", metavar="TOKEN", help="a token instead of a password; - asks for it, or reads stdin")
    parser.add_argument("--ak", help="an access key instead of a password")
    parser.add_argument("--sk", help="its secret; left out, it is asked for, or read from stdin")
    parser.add_argument(
        "--ca", type=path, metavar="FILE", help="the certificate of its CA, where the system does not know it"
    )
    parser.set_defaults(run=_login)


def logout(parser: Parser) -> None:
    parser.set_defaults(run=_logout)


def config(parser: Parser) -> None:
    parser.add_argument("--server", action="store_true", help="the settings of the server on this machine instead")
    parser.add_argument(
        "--config", type=path, metavar="FILE", help="with --server: the file that `serve --config` is given"
    )
    add_output(parser)
    parser.set_defaults(run=_config)


def token(parser: Parser) -> None:
    parser.branch(
        {
            "create": ("make a bearer token; it is shown once", _token_create_setup),
            "list": ("list your tokens", _token_list_setup),
            "revoke": ("make a token worthless", _token_revoke_setup),
        }
    )


def key(parser: Parser) -> None:
    parser.branch(
        {
            "create": ("make an access key; its sk is shown once", _key_create_setup),
            "list": ("list your access keys", _key_list_setup),
            "revoke": ("make an access key worthless", _key_revoke_setup),
        }
    )


VERBS: Mapping[str, Setup] = {
    "login": login,
    "logout": logout,
    "config": config,
    "token": token,
    "key": key,
}


def _login(args: Namespace) -> None:
    around = profiles.surroundings()
    known = profiles.load(around)
    there = named_server(around, args.server, known, args.ca)
    from paddlecloud.sdk.client import Client

    lasts = ""
    profile = _credentials(args, there)
    with Client(profile) as client:
        if profile.password:
            made = client.accounts.login(profile.user, profile.password)
            profile = replace(there, user=profile.user, token=made.secret)
            lasts = f" until {show.local_time(made.token.expires_at)}" if made.token.expires_at else ""
    with Client(profile) as client:
        me = client.accounts.me()
    kept = {"server": there.server, "ca": there.ca, "user": me.name}
    kept |= {"ak": profile.ak, "sk": profile.sk, "token": profile.token}
    profiles.save(around, kept)
    shell.talk(f"logged in to {there.server} as {me.name} ({me.role}){lasts}; kept in {around.config_file}")


def _credentials(args: Namespace, profile: Profile) -> Profile:
    if args.token:
        return replace(profile, token=ask.password("token: ") if args.token == "-" else args.token)
    if args.sk and not args.ak:
        raise InvalidError("--sk goes with --ak: give both", field="ak")
    if args.ak:
        return replace(profile, ak=args.ak, sk=args.sk or ask.password(f"sk of {args.ak}: "))
    name = args.user or ask.name("user: ")
    return replace(profile, user=name, password=ask.password(f"password of {name}: "))


def _logout(_: Namespace) -> None:
    around = profiles.surroundings()
    kept = ownconfig.read(around.config_file).values
    had_tokens = kept_tokens.forget_all(around.tokens_file)
    if had_tokens:
        shell.talk(f"forgot the tokens that were kept in {around.tokens_file}")
    if not kept and not had_tokens:
        shell.talk(f"nothing to forget: {around.config_file} names no server")
    elif kept:
        profiles.save(around, {})
        shell.talk(f"forgot {kept.get('server') or 'the login'} and who you are there")
    profile = profiles.load(around)
    if not profile.embedded:
        shell.talk(f"commands still go to {profile.server} ({profile.sources['server']})")


def _config(args: Namespace) -> None:
    from paddlecloud.cli import local, serve

    if args.server:
        shell.say(*serve.settings_text(Path(args.config) if args.config else None).splitlines())
        return
    if args.config:
        raise InvalidError("--config goes with --server: the settings of a server on this machine", field="config")
    around = profiles.surroundings()
    profile = profiles.load(around)
    rows = [
        {"name": name, "value": _masked(name, _text(profile, name)), "source": profile.sources.get(name, "")}
        for name in profiles.KEYS
        if getattr(profile, name)
    ]
    columns: list[Column[dict[str, str]]] = [
        Column("NAME", lambda row: row["name"]),
        Column("VALUE", lambda row: row["value"]),
        Column("FROM", lambda row: row["source"]),
    ]
    nothing = "nothing is configured: the embedded server is started by the first command that needs one"
    if not local.can_serve():
        nothing = f"nothing is configured: paddlecloud login names a server; to run one here: {local.INSTALL}"
    show.many(rows, columns, args.output, lambda row: row["name"], nothing)


def _text(profile: Profile, name: str) -> str:
    value: str | tuple[str, ...] = getattr(profile, name)
    return value if isinstance(value, str) else ", ".join(value)


def _masked(name: str, value: str) -> str:
    if name == "password":
        return "…"  # a person's own words: some of them would tell the rest
    return value[:4] + "…" if name in SECRETS else value


def _token_create_setup(parser: Parser) -> None:
    parser.add_argument("name", help="what it is for")
    parser.add_argument("--scope", choices=tuple(Scope), default=Scope.WRITE, help="read, write or admin (write)")
    parser.add_argument("--expires", metavar="TIME", help="valid for so long: 12h, 30d; left out: until revoked")
    add_output(parser)
    parser.set_defaults(run=_token_create)


def _token_create(args: Namespace) -> None:
    seconds = None if args.expires is None else duration(args.expires, "--expires")
    with connect() as client:
        try:
            made = client.accounts.create_token(args.name, Scope(args.scope), seconds)
        except InvalidError as error:
            if error.field != "expires_in_seconds":
                raise
            raise InvalidError(
                f"--expires {args.expires} is too short or too long: write a second at least and ten years at most, "
                "such as 12h or 30d, or leave it out for a token that is valid until it is revoked",
                field="expires",
            ) from None
    show.one(made, args.output, made.token.id, lambda one: one.secret)
    shell.talk(f"token {made.token.id}: keep it, it is not shown again; use it as PADDLECLOUD_TOKEN")


def _token_list_setup(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_token_list)


def _token_list(args: Namespace) -> None:
    with connect() as client:
        found = client.accounts.tokens()
    columns: list[Column[Token]] = [
        Column("ID", lambda one: one.id),
        Column("NAME", lambda one: one.name),
        Column("SCOPE", lambda one: one.scope.value),
        Column("CREATED", lambda one: show.local_time(one.created_at), drop=1),
        Column("EXPIRES", lambda one: show.local_time(one.expires_at) or "never"),
    ]
    show.many(found, columns, args.output, lambda one: one.id, "no tokens; make one: paddlecloud token create NAME")


def _token_revoke_setup(parser: Parser) -> None:
    parser.add_argument("id", nargs="?", help="as `paddlecloud token list` shows it")
    parser.add_argument(
        "--old-clients",
        nargs="?",
        const="",
        metavar="USER",
        help="instead, what all PaddlePaddle Cloud clients of a user keep, yours if left out (others for admins): "
        "each has to log in again, as after a change of password",
    )
    parser.set_defaults(run=_token_revoke)


def _token_revoke(args: Namespace) -> None:
    if (args.id is None) == (args.old_clients is None):
        raise InvalidError("name one token by its id, or say --old-clients, one of the two", field="id")
    with connect() as client:
        if args.id is not None:
            client.accounts.revoke_token(args.id)
            shell.talk(f"token {args.id} is revoked")
            return
        user = args.old_clients or client.accounts.me().name
        client.accounts.revoke_old_clients(user)
    shell.talk(f"the tokens of all old clients of {user} are void: each has to log in again")


def _key_create_setup(parser: Parser) -> None:
    parser.add_argument("--user", help="for this user (for admins)")
    add_output(parser)
    parser.set_defaults(run=_key_create)


def _key_create(args: Namespace) -> None:
    with connect() as client:
        made = client.accounts.create_key(args.user)
    show.one(made, args.output, made.key.ak, lambda one: f"ak: {one.key.ak}\nsk: {one.sk}")
    shell.talk(
        f"an access key of {made.key.user}: keep it, the sk is not shown again; it goes into [main] of client.conf, "
        "with this server's host and port in [openapi]"
    )


def _key_list_setup(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_key_list)


def _key_list(args: Namespace) -> None:
    with connect() as client:
        found = client.accounts.keys()
    columns: list[Column[AccessKey]] = [
        Column("AK", lambda one: one.ak),
        Column("USER", lambda one: one.user),
        Column("CREATED", lambda one: show.local_time(one.created_at)),
    ]
    show.many(found, columns, args.output, lambda one: one.ak, "no access keys; make one: paddlecloud key create")


def _key_revoke_setup(parser: Parser) -> None:
    parser.add_argument("ak")
    parser.set_defaults(run=_key_revoke)


def _key_revoke(args: Namespace) -> None:
    with connect() as client:
        client.accounts.revoke_key(args.ak)
    shell.talk(f"access key {args.ak} is revoked")
