"""The server on this machine: whether it runs, and starting the embedded one that commands start for themselves.

A start holds <data>/start.lock from its first look to the server's first answer, so two at once make one server.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paddlecloud.cli import shell
from paddlecloud.model.errors import ConfigError, UnreachableError
from paddlecloud.sdk import profile as profiles
from paddlecloud.sdk.profile import Profile, Surroundings

INSTALL = "pip install 'paddlecloud[server]'"
_NEEDED = ("fcntl", "fastapi", "uvicorn", "sqlalchemy", "alembic", "argon2", "cryptography", "prometheus_client")
_START_SECONDS = 30.0
LOOK_SECONDS = 0.05
_LOG_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What <data>/server.json says of a server that answers."""

    pid: int
    url: str
    started_at: datetime
    fingerprint: str  # of its certificate; "" where it has none


def ensure_server(around: Surroundings, *, new: bool = False) -> Running:
    """The embedded server of this user, started if it does not run; its access key goes into our own config. `new`:
    without the records that are gone."""
    running = answering(around.data_folder)
    if running is None:
        if pid := hung(around.data_folder):
            raise UnreachableError(hung_text(around.data_folder, pid))
        if not can_serve():
            if importlib.util.find_spec("fcntl") is None:
                raise ConfigError(
                    "no server is configured, and none can run on this system: name one by PADDLECLOUD_SERVER or "
                    "paddlecloud login"
                )
            raise ConfigError(
                "no server is configured, and the parts that run one on this machine are not installed: "
                f"{INSTALL}, or name a server by PADDLECLOUD_SERVER or paddlecloud login"
            )
        _check_own(around.data_folder)
        with start_lock(around.data_folder):
            running = answering(around.data_folder) or _start(around, new)
    profiles.save_embedded(around)
    return running


def _check_own(folder: Path) -> None:
    """A server of several users is for its operator to start: with its own settings, not with ours."""
    if (command := shared_command(folder)) is not None:
        raise UnreachableError(f"the shared server of {folder} does not run; it is started with: {command}")


def shared_command(folder: Path) -> str | None:
    """What the server of a data folder is started with, if it is one of several users; None: it is a person's own."""
    try:
        return str(json.loads((folder / "shared.json").read_bytes())["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def can_serve() -> bool:
    """Whether the parts that run a server are installed; the client alone does without them."""
    return all(importlib.util.find_spec(name) is not None for name in _NEEDED)


def require_server_parts() -> None:
    if not can_serve():
        raise ConfigError(f"the parts that run a server are not installed on this machine: {INSTALL}")


def answering(folder: Path, *, ready: bool = False) -> Running | None:
    """The server of this data folder, if it can be asked; `ready`: and if it takes jobs.

    One whose database is away is asked all the same: its answer says so, and no other can take its place.
    """
    running = _named(folder)
    if running is None or not alive(running.pid):
        return None
    there = Profile(server=running.url, fingerprint=running.fingerprint)
    return running if says_yes(there, "/readyz" if ready else "/healthz") else None


def hung(folder: Path) -> int | None:
    """The pid of a server of this data folder that runs and, as it was found, does not answer."""
    running = _named(folder)
    if running is None or not alive(running.pid):
        return None
    try:
        words = Path(f"/proc/{running.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return running.pid if b"serve" in words else None  # else the number is another process's by now


def hung_text(folder: Path, pid: int) -> str:
    return (
        f"the server of {folder} (pid {pid}) runs and does not answer; {folder / 'server.log'} may say why, and "
        f"`kill -9 {pid}` ends it: jobs go on, and the next server takes them up"
    )


def _named(folder: Path) -> Running | None:
    try:
        plain = json.loads((folder / "server.json").read_bytes())
        return Running(
            pid=int(plain["pid"]),
            url=str(plain["url"]),
            started_at=datetime.fromisoformat(plain["started_at"]),
            fingerprint=str(plain.get("fingerprint", "")),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def says_yes(there: Profile, path: str) -> bool:
    from paddlecloud.sdk import trust
    from paddlecloud.sdk.connections import BrokenError

    try:
        return trust.connections(there).request("GET", path, seconds=5.0).read().status == 200
    except BrokenError:
        return False


def alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and was not waited for by its parent does not."""
    if not hasattr(os, "fork"):  # on Windows no server runs, and signal 0 is a key that is pressed
        return False
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:  # no /proc, as on macOS, or just gone
        return not Path("/proc/self").exists()
    except OSError:
        return False


def _start(around: Surroundings, new: bool) -> Running:
    import subprocess  # most commands find a server that runs

    folder = around.data_folder
    log = folder / "server.log"
    began = time.monotonic()
    with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as stream:
        size = stream.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "paddlecloud", "serve", "--embedded", *(["--new"] if new else [])],
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
            shell.talk("the end of its log:", *_new_lines(log, size))
            raise UnreachableError("the embedded server did not start")
        time.sleep(LOOK_SECONDS)
    raise UnreachableError(
        f"the embedded server (pid {process.pid}) does not answer after {_START_SECONDS:.0f} s; {log} says why"
    )


def _new_lines(log: Path, size: int) -> list[str]:
    with open(log, encoding="utf-8", errors="replace") as stream:
        stream.seek(size if size <= log.stat().st_size else 0)  # the server may have begun a new file
        lines = stream.read().splitlines()
    return [f"  {line}" for line in lines[-_LOG_LINES:]] or [f"  {log} says nothing"]


@contextlib.contextmanager
def start_lock(folder: Path) -> Iterator[None]:
    import fcntl  # which Windows lacks: no server runs there

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def holder(folder: Path) -> int | None:
    """The pid of the server that holds the data folder. Asked under the start lock only: asking takes the lock."""
    import fcntl

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
