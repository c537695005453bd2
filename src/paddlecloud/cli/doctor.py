"""`paddlecloud doctor`: looks at a set-up from here to the server, and says of each part whether it is well or what to
do. It must work best where nothing else does, so whatever goes wrong in it becomes a finding."""

from __future__ import annotations

import platform
import shutil
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import paddlecloud
from paddlecloud import __version__
from paddlecloud.cli import install, local, paddle, serve, shell, show
from paddlecloud.cli.exits import OTHER
from paddlecloud.cli.parser import Parser, Setup, add_output, path
from paddlecloud.cli.printable import printable
from paddlecloud.cli.submit import other_user
from paddlecloud.model import wire
from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.finding import Finding, Verdict, failed, ok, warning
from paddlecloud.model.service import Health
from paddlecloud.model.units import describe_duration, format_size
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.profile import Profile, Surroundings

if TYPE_CHECKING:
    from paddlecloud.sdk.client import Client

_WINDOW_SECONDS = 300  # in which a signed request must arrive
_LITTLE_BYTES = 1024**3
_SOON_DAYS = 14
_NAMED = 3
_COLOURS = {Verdict.OK: "32", Verdict.WARNING: "33", Verdict.FAILED: "31"}


def doctor(parser: Parser) -> None:
    parser.add_argument(
        "--config", type=path, metavar="FILE", help="look at the server that `serve --config FILE` is or would be"
    )
    add_output(parser)
    parser.set_defaults(run=_doctor)


VERBS: Mapping[str, Setup] = {"doctor": doctor}


def _doctor(args: Namespace) -> int:
    around = profiles.surroundings()
    findings = [*_here(around), *_there(around, Path(args.config) if args.config else None)]
    if args.output in ("json", "yaml", "name"):
        show.many(findings, [], args.output, lambda found: found.subject)
    else:
        for found in findings:
            shell.say(_line(found))
    counts = [sum(found.verdict is verdict for found in findings) for verdict in (Verdict.WARNING, Verdict.FAILED)]
    shell.talk(f"{show.counted(len(findings), 'check')}: {show.counted(counts[0], 'warning')}, {counts[1]} failed")
    return OTHER if counts[1] else 0


def _line(found: Finding) -> str:
    verdict = f"{found.verdict:<8}"
    if shell.has_colour(sys.stdout):
        verdict = show.paint(verdict, _COLOURS[found.verdict])
    return f"{verdict} " + printable(f"{found.subject}: {found.text}" + (f"; {found.remedy}" if found.remedy else ""))


def _here(around: Surroundings) -> Iterator[Finding]:
    """This machine, as a client."""
    where = Path(paddlecloud.__file__).parent
    yield ok(
        "program",
        f"paddlecloud {__version__} on {platform.python_implementation()} {platform.python_version()}, from {where}",
    )
    yield from _guarded("command", _command)
    yield from _guarded("cluster_train", _paddle)
    yield from _guarded("config", lambda: _secret_files(around))
    yield from _guarded("room here", _room)


def _room() -> Iterator[Finding]:
    subject, here = "room here", Path.cwd()
    free = shutil.disk_usage(here).free
    if free < _LITTLE_BYTES:
        yield warning(subject, f"only {format_size(free)} free in {here}", "results may not fit")
    else:
        yield ok(subject, f"{format_size(free)} free in {here}")


def _command() -> Iterator[Finding]:
    """Whether the word `paddlecloud` in a shell means this program."""
    subject = "command"
    found = shutil.which("paddlecloud", path=shell.variables().get("PATH", ""))
    folder = Path(sys.executable).parent
    if found is None:
        yield warning(subject, "`paddlecloud` is not on PATH", f"add {folder} to PATH, or type {folder}/paddlecloud")
    elif Path(found).parent.resolve() == folder.resolve() or Path(found).read_bytes() == install.script().encode():
        yield ok(subject, found)
    elif b"paddlecloud.cli.main" in Path(found).read_bytes()[:4096]:
        yield warning(subject, f"`paddlecloud` is {found}, another installation", f"put {folder} first in PATH")
    else:
        yield warning(
            subject, f"`paddlecloud` is {found}, another program that took the name", f"put {folder} first in PATH"
        )


def _paddle() -> Iterator[Finding]:
    return paddle.checkup(Path(sys.executable).parent, shell.variables(), paddle.installed())


def _secret_files(around: Surroundings) -> Iterator[Finding]:
    files = [around.config_file, around.tokens_file, around.client_conf, around.home / ".paddle" / "config"]
    for file in filter(Path.is_file, files):
        mode = file.stat().st_mode & 0o777
        if mode & 0o077:
            yield warning(
                "config", f"{file} holds secrets and is open to others (mode {mode:04o})", f"chmod 600 {file}"
            )
        else:
            yield ok("config", f"{file}, for its owner alone")


def _there(around: Surroundings, config: Path | None) -> Iterator[Finding]:
    """The server: over its port as a client, and what it says of itself to an admin, or its machine if that is here."""
    if config is not None:
        yield from _machine(config, embedded=False)
        return
    try:
        profile = profiles.load(around)
    except PaddleCloudError as error:
        yield failed("profile", error.message)
        return
    if profile.embedded and local.answering(around.data_folder) is None:
        yield from _machine(None, embedded=local.shared_command(around.data_folder) is None)
        return
    if not profile.server:
        yield failed(
            "profile",
            f"{profile.sources['ak']} has an access key and names no server",
            "add [openapi] with host and port to it",
        )
        return
    yield ok("profile", f"{profile.server}, named by {profile.sources.get('server')}; {_who(profile)}")
    shared = local.shared_command(around.data_folder) is not None
    yield from _guarded("connection", lambda: _asked(profile, shared=shared))


def _who(profile: Profile) -> str:
    for name, what in (("token", "a token"), ("ak", "an access key"), ("password", "a password")):
        if source := profile.sources.get(name):
            return f"identity: {what} of {source}"
    return "identity: none"


def _asked(profile: Profile, *, shared: bool) -> Iterator[Finding]:
    """`shared`: the server of this machine is one of several users."""
    from paddlecloud.sdk.client import Client

    with Client(profile) as client:
        try:
            yield from _reached(client)
        except (PaddleCloudError, OSError) as error:
            yield failed("connection", str(error))
            return
        try:
            me = client.accounts.me()
        except PaddleCloudError as error:
            yield failed("identity", error.message)
            return
        other = other_user(profile, me.name)
        yield warning("identity", other, "correct one of them") if other else ok("identity", f"{me.name} ({me.role})")
        if me.role == "admin":
            yield from _guarded("users", lambda: _users(client, shared=shared))
            yield from _guarded("doctor", client.doctor)
        else:
            yield ok("server", "how its machine is, only its admins are told, by their paddlecloud doctor")


def _users(client: Client, *, shared: bool) -> Iterator[Finding]:
    """An embedded server is made for one person; others may have been added."""
    if shared or not client.profile.embedded:
        return
    names = [one.name for one in client.accounts.users() if not one.disabled]
    if len(names) > 1:
        named = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        yield warning(
            "users",
            f"{len(names)} users ({named}) share this embedded server, made for one person: by itself it limits nobody",
            "set limits by paddlecloud user quota NAME, or run a shared server: paddlecloud serve --config FILE",
        )


def _reached(client: Client) -> Iterator[Finding]:
    began = time.monotonic()
    answer = client.http.request("GET", "/healthz")
    took = time.monotonic() - began
    version = wire.decode_answer(Health, answer.data).version
    profile = client.http.profile  # of several servers, the one that was taken
    yield ok("connection", f"{profile.server} answers within {1000 * took:.0f} ms, version {version}")
    if version != __version__:
        yield warning("versions", f"the server is {version}, this command {__version__}", "install the same on both")
    yield from clocks(answer.headers.get("date", ""), shell.now(), profile)
    yield from _certificate(profile)


def clocks(date: str, now: datetime, profile: Profile) -> Iterator[Finding]:
    """Whether the server's date is near enough to ours for signatures."""
    subject = "clocks"
    try:
        apart = abs((parsedate_to_datetime(date) - now).total_seconds())
    except ValueError:
        return
    said = f"this machine and the server are {describe_duration(apart)} apart"
    if apart < _WINDOW_SECONDS / 2:
        yield ok(subject, said)
    elif apart < _WINDOW_SECONDS or not profile.ak:
        yield warning(subject, said, "set both by NTP")
    else:
        yield failed(subject, f"{said}: requests signed by an access key are refused", "set both by NTP")


def _certificate(profile: Profile) -> Iterator[Finding]:
    from paddlecloud.sdk import trust

    if not profile.server.startswith("https:") or profile.fingerprint:
        return
    days = (trust.certificate_end(profile) - shell.now()).days
    if days < _SOON_DAYS:
        yield warning("certificate", f"the server's is valid for {days} more days", "tell its operator to renew it")
    else:
        yield ok("certificate", f"the server's is valid for {days} more days")


def _machine(config: Path | None, *, embedded: bool) -> Iterator[Finding]:
    """A server of this machine, by its settings and its folder."""
    if not local.can_serve():
        yield warning("server", "no server is configured, and none can run here", local.INSTALL)
        return
    yield from _guarded("settings", lambda: serve.checkup(config, embedded=embedded))


def _guarded(subject: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except (PaddleCloudError, OSError) as error:
        yield failed(subject, str(error))
