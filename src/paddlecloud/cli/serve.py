"""Verbs about a server on this machine."""

from __future__ import annotations

import os
import shlex
import signal
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from paddlecloud import __version__
from paddlecloud.cli import ask, local, shell, show
from paddlecloud.cli.exits import UNREACHABLE
from paddlecloud.cli.parser import Parser, Setup, add_output, path
from paddlecloud.model.errors import InvalidError, PaddleCloudError, UnreachableError
from paddlecloud.model.finding import Finding
from paddlecloud.model.state import HELD
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.profile import Surroundings

_STOP_SECONDS = 30.0
_POLICIES = ("open", "free")


def serve(parser: Parser) -> None:
    parser.add_argument(
        "--config", type=path, metavar="FILE", help="its settings (server.toml in its data folder, if there)"
    )
    parser.add_argument("--embedded", action="store_true", help="make this user its admin, with an access key")
    _add_new(parser)
    parser.add_argument(
        "--init", action="store_true", help="write a config file with every setting as a comment, and start nothing"
    )
    parser.add_argument("--policy", choices=_POLICIES, help="with --init: limits on users; left out, it is asked")
    parser.set_defaults(run=_serve)


def up(parser: Parser) -> None:
    _add_new(parser)
    parser.set_defaults(run=_up)


def _add_new(parser: Parser) -> None:
    parser.add_argument("--new", action="store_true", help="begin without the records of jobs whose results are there")


def down(parser: Parser) -> None:
    parser.set_defaults(run=_down)


def status(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_status)


def version(parser: Parser) -> None:
    parser.set_defaults(run=lambda _: shell.say(f"paddlecloud {__version__}"))


VERBS: Mapping[str, Setup] = {"serve": serve, "up": up, "down": down, "status": status, "version": version}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Of the server in `data`, and of the one that is configured, to which commands go instead (None: no other is)."""

    running: bool
    pid: int
    url: str
    uptime_seconds: int
    jobs: Mapping[str, int]
    data: str
    configured: Configured | None
    hung_pid: int = 0  # of a server that runs and does not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    url: str
    source: str
    answers: bool

    @property
    def text(self) -> str:
        return f"{self.url} ({self.source}), which {'answers' if self.answers else 'does not answer'}"


def settings_text(file: Path | None) -> str:
    """The effective settings of a server on this machine, as its config file would say them."""
    local.require_server_parts()
    from paddlecloud.server import config

    settings = config.load(file)
    running = local.answering(settings.server.data) if file is None else None
    if running is not None:
        shell.talk(
            f"the server that runs (pid {running.pid}) may have been started with another file, which is not known "
            "here: if so, name it by --config FILE"
        )
    return config.render(settings)


def checkup(file: Path | None, *, embedded: bool) -> list[Finding]:
    """What there is to say of a server on this machine, from its settings and its data folder alone."""
    local.require_server_parts()
    from paddlecloud.server import checkup, config

    settings = config.load(file, embedded=embedded)
    return checkup.examine(settings, shell.now(), healthy=local.answering(settings.server.data, ready=True) is not None)


def _serve(args: Namespace) -> None:
    local.require_server_parts()
    from paddlecloud.server import app, config

    file = Path(args.config).absolute() if args.config else None
    if args.init:
        _init(file or config.default_data_folder() / "server.toml", args.policy)
        return
    again = ["paddlecloud", "serve", *(["--config", str(file)] if file else [])]
    app.serve(config.load(file, embedded=args.embedded), command=shlex.join(again), new=args.new)


def _init(file: Path, policy: str | None) -> None:
    """Write a config file to begin with; one that is there is left alone."""
    from paddlecloud.server import config

    if file.exists():
        raise InvalidError(f"{file} exists: edit it, or name another by --config FILE", field="config")
    text = config.template(policy or _asked_policy())
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(file, "x", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        stream.write(text)
    shell.say(str(file))
    shell.talk(f"edit it, then start the server: paddlecloud serve --config {shlex.quote(str(file))}")


def _asked_policy() -> str:
    shell.talk(
        "which limits do users have?",
        "  open  none, but for what you set for a cluster or a user",
        "  free  the manual's: 2 running jobs, 100 minutes a day, 30 minutes and one instance for a job",
    )
    typed = ask.line("policy (open): ") or _POLICIES[0]
    if typed not in _POLICIES:
        raise InvalidError(f"policy {typed!r} is not known: write open or free", field="policy")
    return typed


def _up(args: Namespace) -> None:
    local.require_server_parts()
    around = profiles.surroundings()
    running = local.answering(around.data_folder)
    if running is not None:
        kind = "embedded" if local.shared_command(around.data_folder) is None else "shared"
        shell.talk(f"the {kind} server runs already at {running.url} (pid {running.pid})")
    running = local.ensure_server(around, new=args.new)
    shell.say(running.url)
    profile = profiles.load(around)
    if not profile.embedded:
        source = profile.sources["server"]
        shell.talk(f"commands go to {profile.server} ({source}), not to this one{_remedy(around, source)}")


def _remedy(around: Surroundings, source: str) -> str:
    """How to have no server configured, where one word does it."""
    if around.variables.get("PADDLECLOUD_SERVER"):
        return "; unset PADDLECLOUD_SERVER to change that"
    return "; paddlecloud logout changes that" if source == str(around.config_file) else ""


def _down(_: Namespace) -> None:
    around = profiles.surroundings()
    folder = around.data_folder
    if not folder.is_dir():
        shell.talk(f"no server runs in {folder}")
        return
    with local.start_lock(folder):
        pid = local.holder(folder)
        if pid is None:
            shell.talk(f"no server runs in {folder}")
            return
        held = _held_jobs(around)
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while local.holder(folder) is not None or local.alive(pid):
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"the server (pid {pid}) has not stopped within {_STOP_SECONDS:.0f} s; {folder}/server.log says why"
                )
            time.sleep(local.LOOK_SECONDS)
    shell.talk(f"the server (pid {pid}) is stopped{_left_running(held)}")


def _left_running(held: int | None) -> str:
    """What goes on without a server; None: it could not be asked."""
    if held == 0:
        return ""
    which = "jobs that run, if any," if held is None else show.counted(held, "running job")
    return f"; {which} {'runs' if held == 1 else 'run'} on, to be picked up at the next start"


def _held_jobs(around: Surroundings) -> int | None:
    from paddlecloud.sdk.client import Client

    if local.answering(around.data_folder) is None:
        return None
    try:
        with Client(profiles.load_embedded(around)) as client:
            return len(client.list(states=sorted(HELD), everyone=True))
    except PaddleCloudError:  # a server that is not this user's own embedded one
        return None


def _status(args: Namespace) -> int:
    around = profiles.surroundings()
    running = local.answering(around.data_folder)
    uptime = int((shell.now() - running.started_at).total_seconds()) if running else 0
    found = Status(
        running=running is not None,
        pid=running.pid if running else 0,
        url=running.url if running else "",
        uptime_seconds=uptime,
        jobs=_jobs_by_state(around) if running else {},
        data=str(around.data_folder),
        configured=_configured(around),
        hung_pid=0 if running else local.hung(around.data_folder) or 0,
    )
    used = found.configured
    show.one(found, args.output, used.url if used else found.url, _status_text)
    return 0 if (used.answers if used else found.running) else UNREACHABLE


def _configured(around: Surroundings) -> Configured | None:
    profile = profiles.load(around)
    if profile.embedded:
        return None
    if profile.servers:
        from paddlecloud.sdk import receivers

        with suppress(UnreachableError):  # of all: then the first is named
            _, profile = receivers.answering(profile)
    return Configured(url=profile.server, source=profile.sources["server"], answers=local.says_yes(profile, "/readyz"))


def _status_text(found: Status) -> str:
    lines = [f"commands go to {found.configured.text}"] if found.configured else []
    if found.hung_pid:
        return "\n".join([*lines, local.hung_text(Path(found.data), found.hung_pid)])
    if not found.running:
        return "\n".join([*lines, f"no server runs in {found.data}{_how_to_start(found)}"])
    jobs = ", ".join(f"{count} {state}" for state, count in found.jobs.items()) or "none"
    pairs = [
        ("server", found.url),
        ("pid", str(found.pid)),
        ("up for", show.short_time(found.uptime_seconds)),
        ("jobs", jobs),
        ("data", found.data),
    ]
    return "\n".join([*lines, show.fields(pairs)])


def _how_to_start(found: Status) -> str:
    if not local.can_serve():
        return f", and the parts that run one are not installed: {local.INSTALL}"
    command = local.shared_command(Path(found.data)) or "paddlecloud up"
    return "" if found.configured else f"; start it with: {command}"


def _jobs_by_state(around: Surroundings) -> dict[str, int]:
    from paddlecloud.sdk.client import Client

    with Client(profiles.load_embedded(around)) as client:
        counts = Counter(job.state.label for job in client.list(everyone=True))
    return dict(counts.most_common())
