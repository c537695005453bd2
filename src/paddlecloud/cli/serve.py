"""Verbs about a server on this machine, and the embedded one that commands start for themselves.

A start holds <data>/start.lock from its first look to the server's first answer, so two at once make one server.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paddlecloud import __version__
from paddlecloud.cli import shell, show
from paddlecloud.cli.exits import UNREACHABLE
from paddlecloud.cli.parser import Parser, Setup, add_output, path
from paddlecloud.model.errors import ConfigError, PaddleCloudError, UnreachableError
from paddlecloud.model.finding import Finding
from paddlecloud.model.state import HELD
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.profile import Profile, Surroundings

INSTALL = "pip install 'paddlecloud[server]'"
_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "argon2", "cryptography", "prometheus_client")
_START_SECONDS = 30.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.05
_LOG_LINES = 15


def serve(parser: Parser) -> None:
    parser.add_argument(
        "--config", type=path, metavar="FILE", help="its settings (server.toml in its data folder, if there)"
    )
    parser.add_argument("--embedded", action="store_true", help="make this user its admin, with an access key")
    parser.set_defaults(run=_serve)


def up(parser: Parser) -> None:
    parser.set_defaults(run=_up)


def down(parser: Parser) -> None:
    parser.set_defaults(run=_down)


def status(parser: Parser) -> None:
    add_output(parser)
    parser.set_defaults(run=_status)


def version(parser: Parser) -> None:
    parser.set_defaults(run=lambda _: print(f"paddlecloud {__version__}"))


VERBS: Mapping[str, Setup] = {"serve": serve, "up": up, "down": down, "status": status, "version": version}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What <data>/server.json says of a server that answers."""

    pid: int
    url: str
    started_at: datetime
    fingerprint: str  # of its certificate; "" where it has none


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    url: str
    source: str
    answers: bool

    @property
    def text(self) -> str:
        return f"{self.url} ({self.source}), which {'answers' if self.answers else 'does not answer'}"


def ensure_server(around: Surroundings) -> Running:
    """The embedded server of this user, started if it does not run; its access key goes into our own config."""
    running = answering(around.data_folder)
    if running is None:
        if not can_serve():
            raise ConfigError(
                "no server is configured, and the parts that run one on this machine are not installed: "
                f"{INSTALL}, or name a server by PADDLECLOUD_SERVER or paddlecloud login"
            )
        _check_own(around.data_folder)
        with _start_lock(around.data_folder):
            running = answering(around.data_folder) or _start(around)
    profiles.save_embedded(around)
    return running


def _check_own(folder: Path) -> None:
    """A server of several users is for its operator to start: with its own settings, not with ours."""
    try:
        command = str(json.loads((folder / "shared.json").read_bytes())["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    raise UnreachableError(f"the shared server of {folder} does not run; it is started with: {command}")


def can_serve() -> bool:
    """Whether the parts that run a server are installed; the client alone does without them."""
    return all(importlib.util.find_spec(name) is not None for name in _NEEDED)


def settings_text(file: Path | None) -> str:
    """The effective settings of a server on this machine, as its config file would say them."""
    require_server_parts()
    from paddlecloud.server import config

    settings = config.load(file)
    running = answering(settings.server.data) if file is None else None
    if running is not None:
        shell.talk(
            f"the server that runs (pid {running.pid}) may have been started with another file, which is not known "
            "here: if so, name it by --config FILE"
        )
    return config.render(settings)


def checkup(file: Path | None, *, embedded: bool) -> list[Finding]:
    """What there is to say of a server on this machine, from its settings and its data folder alone."""
    require_server_parts()
    from paddlecloud.server import checkup, config

    settings = config.load(file, embedded=embedded)
    return checkup.examine(settings, shell.now(), healthy=answering(settings.server.data, ready=True) is not None)


def _serve(args: Namespace) -> None:
    require_server_parts()
    from paddlecloud.server import app, config

    file = Path(args.config).absolute() if args.config else None
    again = ["paddlecloud", "serve", *(["--config", str(file)] if file else [])]
    app.serve(config.load(file, embedded=args.embedded), command=shlex.join(again))


def _up(_: Namespace) -> None:
    require_server_parts()
    around = profiles.surroundings()
    running = answering(around.data_folder)
    if running is not None:
        shell.talk(f"the embedded server runs already at {running.url} (pid {running.pid})")
    running = ensure_server(around)
    print(running.url)
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
    with _start_lock(folder):
        pid = _holder(folder)
        if pid is None:
            shell.talk(f"no server runs in {folder}")
            return
        held = _held_jobs(around)
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while _holder(folder) is not None or _alive(pid):
            if time.monotonic() > deadline:
                raise UnreachableError(
                    f"the server (pid {pid}) has not stopped within {_STOP_SECONDS:.0f} s; {folder}/server.log says why"
                )
            time.sleep(_LOOK_SECONDS)
    shell.talk(f"the server (pid {pid}) is stopped{_left_running(held)}")


def _left_running(held: int | None) -> str:
    """What goes on without a server; None: it could not be asked."""
    if held == 0:
        return ""
    which = "jobs that run, if any," if held is None else show.counted(held, "running job")
    return f"; {which} {'runs' if held == 1 else 'run'} on, to be picked up at the next start"


def _held_jobs(around: Surroundings) -> int | None:
    from paddlecloud.sdk.client import Client

    if answering(around.data_folder) is None:
        return None
    try:
        with Client(profiles.load_embedded(around)) as client:
            return len(client.list(states=sorted(HELD), everyone=True))
    except PaddleCloudError:  # a server that is not this user's own embedded one
        return None


def _status(args: Namespace) -> int:
    around = profiles.surroundings()
    running = answering(around.data_folder)
    uptime = int((shell.now() - running.started_at).total_seconds()) if running else 0
    found = Status(
        running=running is not None,
        pid=running.pid if running else 0,
        url=running.url if running else "",
        uptime_seconds=uptime,
        jobs=_jobs_by_state(around) if running else {},
        data=str(around.data_folder),
        configured=_configured(around),
    )
    used = found.configured
    show.one(found, args.output, used.url if used else found.url, _status_text)
    return 0 if (used.answers if used else found.running) else UNREACHABLE


def _configured(around: Surroundings) -> Configured | None:
    profile = profiles.load(around)
    if profile.embedded:
        return None
    return Configured(url=profile.server, source=profile.sources["server"], answers=_says_yes(profile, "/readyz"))


def _status_text(found: Status) -> str:
    lines = [f"commands go to {found.configured.text}"] if found.configured else []
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
    if not can_serve():
        return f", and the parts that run one are not installed: {INSTALL}"
    return "" if found.configured else "; start it with: paddlecloud up"


def _jobs_by_state(around: Surroundings) -> dict[str, int]:
    from paddlecloud.sdk.client import Client

    with Client(profiles.load_embedded(around)) as client:
        counts = Counter(job.state.label for job in client.list(everyone=True))
    return dict(counts.most_common())


def require_server_parts() -> None:
    if not can_serve():
        raise ConfigError(f"the parts that run a server are not installed on this machine: {INSTALL}")


def answering(folder: Path, *, ready: bool = False) -> Running | None:
    """The server of this data folder, if it can be asked; `ready`: and if it takes jobs.

    One whose database is away is asked all the same: its answer says so, and no other can take its place.
    """
    try:
        plain = json.loads((folder / "server.json").read_bytes())
        running = Running(
            pid=int(plain["pid"]),
            url=str(plain["url"]),
            started_at=datetime.fromisoformat(plain["started_at"]),
            fingerprint=str(plain.get("fingerprint", "")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    there = Profile(server=running.url, fingerprint=running.fingerprint)
    return running if _alive(running.pid) and _says_yes(there, "/readyz" if ready else "/healthz") else None


def _says_yes(there: Profile, path: str) -> bool:
    from paddlecloud.sdk import trust
    from paddlecloud.sdk.connections import BrokenError

    try:
        return trust.connections(there).request("GET", path, seconds=5.0).read().status == 200
    except BrokenError:
        return False


def _alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for by its parent does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:  # no /proc, as on macOS, or just gone
        return not Path("/proc/self").exists()
    except OSError:
        return False


def _start(around: Surroundings) -> Running:
    folder = around.data_folder
    log = folder / "server.log"
    began = time.monotonic()
    with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        size = stream.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "paddlecloud", "serve", "--embedded"],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            cwd=folder,
            env={**around.variables, "PADDLECLOUD_DATA": str(folder)},
            start_new_session=True,
        )
    while time.monotonic() - began < _START_SECONDS:
        running = answering(folder, ready=True)
        if running is not None:
            shell.talk(f"started the embedded server at {running.url} (paddlecloud down stops it)")
            return running
        if process.poll() is not None:
            raise UnreachableError(f"the embedded server did not start:\n{_new_lines(log, size)}")
        time.sleep(_LOOK_SECONDS)
    raise UnreachableError(
        f"the embedded server (pid {process.pid}) does not answer after {_START_SECONDS:.0f} s; {log} says why"
    )


def _new_lines(log: Path, size: int) -> str:
    with open(log, encoding="utf-8", errors="replace") as stream:
        stream.seek(size if size <= log.stat().st_size else 0)  # the server may have begun a new file
        lines = stream.read().splitlines()
    return "\n".join(f"  {line}" for line in lines[-_LOG_LINES:]) or f"  {log} says nothing"


@contextlib.contextmanager
def _start_lock(folder: Path) -> Iterator[None]:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _holder(folder: Path) -> int | None:
    """The pid of the server that holds the data folder. Asked under the start lock only: asking takes the lock."""
    try:
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        text = os.pread(handle, 20, 0).decode("ascii", "replace").strip()
        return int(text) if text.isdigit() else None
    finally:
        os.close(handle)
