"""`gen_token`, as the manual has it: an access key is mailed, pasted here, tried, and kept in client.conf."""

from __future__ import annotations

import getpass
import shlex
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from paddlecloud.cli import shell
from paddlecloud.cli.connect import named_server
from paddlecloud.cli.exits import OTHER
from paddlecloud.cli.parser import Parser, Setup, path
from paddlecloud.model.errors import InvalidError, RateError, UnauthenticatedError

if TYPE_CHECKING:
    from paddlecloud.sdk.profile import Profile, Surroundings

_TRIES = 3


def gen_token(parser: Parser) -> None:
    parser.add_argument("--email", required=True, metavar="EMAIL", help="yours, which is your name here")
    parser.add_argument("--server", metavar="URL", help="of this server, such as http://host:8642, not the usual one")
    parser.add_argument(
        "--ca", type=path, metavar="FILE", help="the certificate of its CA, where the system does not know it"
    )
    parser.set_defaults(run=_gen_token)


VERBS: Mapping[str, Setup] = {"gen_token": gen_token}


def _gen_token(args: Namespace) -> int | None:
    from paddlecloud.sdk import profile as profiles
    from paddlecloud.sdk.client import Client

    _check_email(args.email)
    around = profiles.surroundings()
    known = profiles.load(around)
    if known.embedded and not args.server:
        return _nothing_needed(around)
    there = named_server(around, args.server, known, args.ca)
    shell.say("create_token...", flush=True)
    with Client(there) as client:
        try:
            asked = client.accounts.register(args.email)
        except RateError as error:
            raise RateError(
                f"{error.message}. If you have the mail already, type: {_login(there)}",
                retry_after_seconds=error.retry_after_seconds,
            ) from None
    if asked.mailed:
        shell.talk(f"a mail with an ak and an sk is on its way to {args.email}")
    else:
        shell.talk("this server sends no mail: its operator finds the ak and the sk in its outbox; ask them")
    profile = _paste(there)
    _keep(around, profile)
    shell.say("create_token done")
    return None


def _check_email(email: str) -> None:
    local, _, domain = email.strip().rpartition("@")
    if not local or not domain or not email.isprintable() or " " in email.strip():
        raise InvalidError(f"--email {email!r} is not an address of mail: write zhangsan@example.com", field="email")


def _nothing_needed(around: Surroundings) -> int:
    from paddlecloud.cli import local

    key = around.data_folder / "embedded.json"
    if not local.can_serve():
        here = f"no server is configured, and none can run on this machine: that takes {local.INSTALL}."
    else:
        here = "no server is configured, and the embedded one of this machine needs no access key by mail: just submit "
        here += f"a job. Its key is in {key}." if key.exists() else "a job."
    shell.talk(
        f"{here} For a key of a shared server name it: paddlecloud gen_token --email=… --server http://host:8642"
    )
    return OTHER


def _paste(there: Profile) -> Profile:
    """The profile of a key that the server knows, asked for up to three times."""
    for tries_left in reversed(range(_TRIES)):
        ak, sk = _ask("ak", there), _ask("sk", there)
        try:
            return _tried(replace(there, ak=ak, sk=sk))
        except (InvalidError, UnauthenticatedError) as error:
            if not tries_left:
                raise UnauthenticatedError(f"{error.message}; nothing was written") from None
            shell.talk(f"{error.message}; paste them again")
    raise AssertionError("the last try returns or raises")


def _tried(profile: Profile) -> Profile:
    from paddlecloud.sdk.client import Client

    if not all(word.isascii() and word.isalnum() for word in (profile.ak, profile.sk)):
        raise InvalidError("an ak and an sk are letters and digits alone")
    with Client(profile) as client:
        return replace(profile, user=client.accounts.me().name)


def _ask(word: str, there: Profile) -> str:
    prompt = f"Paste your {word} here:"
    try:
        if not shell.is_terminal(sys.stdin):
            shell.say(prompt, flush=True)
            found = sys.stdin.readline()
        else:
            found = getpass.getpass(prompt, stream=sys.stdout) if word == "sk" else input(prompt)
    except EOFError:
        found = ""
    if not found.strip():
        raise InvalidError(
            f"no {word} was pasted, so nothing was written; when you have both, type: {_login(there)}", field=word
        )
    return found.strip()


def _login(there: Profile) -> str:
    """What is typed by who has the mail."""
    ca = ["--ca", there.ca] if there.sources.get("ca") == "--ca" else []
    return shlex.join(["paddlecloud", "login", "--server", there.server, *ca, "--ak", "AK"])


def _keep(around: Surroundings, profile: Profile) -> None:
    from paddlecloud.sdk import profile as profiles

    profiles.save_client_conf(around, profile)
    shell.talk(f"the key of {profile.user} at {profile.server} is in {around.client_conf}")
    _make_way(around, profile)
    used = profiles.load(around)
    if (used.server, used.ak) != (profile.server, profile.ak):
        which = "server" if used.server != profile.server else "token" if used.token else "ak"
        shell.talk(
            f"commands go to {used.server} by another {which} still, which {used.sources.get(which, '')} names: that "
            f"goes before client.conf. Take it away to use the new key"
        )


def _make_way(around: Surroundings, profile: Profile) -> None:
    """Forget a login, which would go before client.conf; another account's access key is not ours to forget."""
    from paddlecloud.sdk import ownconfig
    from paddlecloud.sdk import profile as profiles

    login = ownconfig.read(around.config_file).values
    same_account = (login.get("server"), login.get("user")) == (profile.server, profile.user)
    if login and (same_account or not login.get("sk")):
        profiles.save(around, {})
        shell.talk(
            f"forgot the login of {login.get('user', '')} at {login.get('server', '')} that {around.config_file} had"
        )
