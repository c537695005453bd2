"""A server as an operator runs it, as root or as a plain account of this machine, with two users and a local attacker.

Accounts are made for the tests and removed after them. A plain account cannot read root's home, where the Python of the
tests may be: its processes get a mount namespace in which the way there is open.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from paddlecloud.sdk.client import Client
from paddlecloud.sdk.profile import Profile
from tests.flow.lab import COMMAND, Lab
from tests.waiting import wait_until

PASSWORD = "correct horse"
ROOT, RANGED, PLAIN = "root", "plain account with a range", "plain account"
KINDS = (ROOT, RANGED, PLAIN) if os.geteuid() == 0 else (PLAIN,)
REPOSITORY = Path(__file__).parents[3]

_FIRST_IDS = 500_000_000  # of ranges that tests give out; each process of tests has its own
_NUMBERS = itertools.count()
_OPEN_THE_WAY = """
set -e
mount --make-rprivate /
number=0
for path in {paths}; do
    for above in $(echo "$path" | awk -F/ '{{ at = ""; for (i = 2; i < NF; i++) {{ at = at "/" $i; print at }} }}'); do
        case $(stat -c %A "$above") in *x|*t) continue ;; esac
        number=$((number + 1))
        kept=/run/paddlecloud-way-$number
        mkdir -p "$kept" && mount --bind "$path" "$kept"
        mount -t tmpfs -o mode=755 none "$above" && mkdir -p "$path" && mount --move "$kept" "$path"
        break
    done
done
exec setpriv --reuid={account} --regid={account} --init-groups "$@"
"""


@dataclass
class Account:
    """An account of this machine; None of its name: the one that the tests run as."""

    name: str | None
    home: Path

    def words(self, *words: str) -> list[str]:
        """A command as this account types it."""
        if self.name is None:
            return list(words)
        paths = " ".join(shlex.quote(str(path)) for path in dict.fromkeys((sys.base_prefix, REPOSITORY)))
        script = _OPEN_THE_WAY.format(paths=paths, account=self.name)
        return ["unshare", "--mount", "sh", "-c", script, "sh", *words]

    def run(self, *words: str, stdin: str = "") -> str:
        """What the command says, on both channels."""
        done = subprocess.run(
            self.words(*words),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
            env=self.environment,
            timeout=60,
        )
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TZ": "UTC"}


@contextmanager
def account(*, ids: bool) -> Iterator[Account]:
    """A new plain account with a home; `ids`: and a range of user ids of its own."""
    number = next(_NUMBERS)
    name = f"pct{os.getpid()}x{number}"
    home = Path("/home") / name
    subprocess.run(["useradd", "--no-log-init", "--create-home", "--shell", "/bin/sh", name], check=True)
    try:
        for kind in ("uids", "gids"):
            file = Path(f"/etc/sub{kind[:-1]}").read_text()
            for line in [line for line in file.splitlines() if line.startswith(f"{name}:")]:
                first, count = (int(word) for word in line.split(":")[1:])
                subprocess.run(["usermod", f"--del-sub{kind}", f"{first}-{first + count - 1}", name], check=True)
            first = _FIRST_IDS + (os.getpid() % 10_000 * 10 + number) * 65_536 % 1_000_000_000
            if ids:
                subprocess.run(["usermod", f"--add-sub{kind}", f"{first}-{first + 65_535}", name], check=True)
        yield Account(name, home)
    finally:
        subprocess.run(["pkill", "-KILL", "-u", str(pwd.getpwnam(name).pw_uid)], check=False)
        subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)


@dataclass
class Person:
    name: str
    client: Client

    def run(self, script: str, **more: object) -> str:
        """What a job of one task says."""
        job = self.begin(script, **more)
        self.client.wait(job, timeout=90)
        return self.said(job)

    def begin(self, script: str, **more: object) -> str:
        return self.client.submit(command=script, **more).id  # type: ignore[arg-type]

    def said(self, job: str) -> str:
        return "".join(piece.text for piece in self.client.logs(job))

    def hears(self, job: str, text: str) -> str:
        """Wait until a running job has said something; all that it said."""
        return wait_until(
            lambda: said if text in (said := self.said(job)) else None, f"{job} says {text!r}", seconds=60
        )


@dataclass
class Box:
    kind: str
    account: Account  # that the server runs as
    data: Path
    lab: Lab
    people: list[Person] = field(default_factory=list)

    @property
    def one_account(self) -> bool:
        return self.kind == PLAIN

    @property
    def key(self) -> str:
        return (self.data / "key").read_text() if os.access(self.data / "key", os.R_OK) else ""

    def person(self, name: str, *, new: bool = True) -> Person:
        """A user, made if this server does not know the name."""
        found = [person for person in self.people if person.name == name]
        if found:
            return found[0]
        if new:
            self.lab.type("user", "add", name, "--password", stdin=f"{PASSWORD}\n")
        made = Person(name, Client(Profile(server=self.lab.server["url"], user=name, password=PASSWORD)))
        self.people.append(made)
        return made


@contextmanager
def box(
    kind: str, folder: Path, config: str = "", data: Path | None = None, env: Mapping[str, str] | None = None
) -> Iterator[Box]:
    """A shared server of this kind with its settings as shipped, but for the port and what `config` says."""
    if kind == ROOT or os.geteuid() != 0:
        folder.mkdir(parents=True, exist_ok=True)
        with _serving(kind, Account(None, folder), folder, config, data, env or {}) as made:
            yield made
        return
    with account(ids=kind == RANGED) as own, _serving(kind, own, own.home, config, data, env or {}) as made:
        yield made


@contextmanager
def _serving(
    kind: str, own: Account, folder: Path, config: str, data: Path | None, env: Mapping[str, str]
) -> Iterator[Box]:
    data, file = data or folder / "data", folder / "server.toml"
    file.write_text(f'[server]\nport = 0\ndata = "{data}"\n{config}')
    file.chmod(0o644)
    desk = folder / f"desk-{next(_NUMBERS)}"
    desk.mkdir()
    lab = Lab(desk)
    lab.data = data
    lab.env["PADDLECLOUD_DATA"] = str(data)
    log = (desk / "serve.log").open("wb")
    serving = subprocess.Popen(
        own.words(*COMMAND, "serve", "--config", str(file)),
        stdout=log,
        stderr=log,
        cwd="/",
        env={**env, **own.environment, "PADDLECLOUD_DATA": str(data)},
    )
    made = Box(kind, own, data, lab)
    try:
        wait_until(
            lambda: (data / "server.json").exists() or serving.poll() is not None, "the server has started", seconds=60
        )
        assert serving.poll() is None, (desk / "serve.log").read_text()
        yield made
    finally:
        for person in made.people:
            _end_jobs(person)
            person.client.close()
        serving.send_signal(signal.SIGTERM)
        try:
            serving.wait(30)
        except subprocess.TimeoutExpired:
            serving.kill()
            serving.wait()
        log.close()


def _end_jobs(person: Person) -> None:
    for job in person.client.list():
        if not job.state.final:
            person.client.kill(job.id)
    for job in person.client.list():
        person.client.wait(job.id, timeout=60)


def python(script: str, *words: str) -> str:
    """A command line that runs this program."""
    return shlex.join(["python3", "-c", script, *words])


def tried(*commands: str) -> str:
    """Try one command after another, whatever became of those before."""
    return "; ".join(f"({command}) 2>&1" for command in commands) + "; echo tried-all"
