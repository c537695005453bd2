"""A real Slurm for tests: Debian's daemons in a folder of their own, on loopback; whatever kills the tests ends them.

Each node is a process namespace with a slurmd in it, on an address of its own: to kill it ends everything that ran
there, as when a machine loses its power, and nothing of it can be left over. Set to be quick: see tests/slurm_conf.py.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests import slurm_conf
from tests.absent import absent
from tests.ports import free_ports
from tests.slurm_conf import ACCOUNT, Shape
from tests.waiting import wait_until

INSTALL = "make engines"
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
NOBODY = 65534
CGROUPS = Path("/sys/fs/cgroup")
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sinfo", "unshare")
_OF_ACCOUNTING = ("mariadb-install-db", "mariadbd", "mariadb", "slurmdbd", "sacctmgr")
_OF_REST = ("slurmrestd",)
# The first process of a node: it lives on when slurmd dies, and starts another as long as it should.
_INIT = 'while :; do [ -e "$0" ] && "$@"; sleep 0.1; done'


class Slurm:
    """One cluster; commands find it by `env`."""

    def __init__(self, folder: Path, shape: Shape) -> None:
        self.folder = folder
        self.shape = shape
        self.nodes = shape.names
        self.account = ACCOUNT if shape.accounting else None
        self.env = {"PATH": PATH, "HOME": str(folder), "SLURM_CONF": str(folder / "slurm.conf")}
        self.rest = f"http://127.0.0.1:{shape.rest_port}" if shape.rest_port else None
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def run(self, *command: str, seconds: float = 60.0, env: Mapping[str, str] | None = None) -> str:
        """What a command of Slurm writes; AssertionError with all it said if it fails."""
        ran = self.attempt(*command, seconds=seconds, env=env)
        assert ran.returncode == 0, f"{' '.join(command)}: {ran.stdout}{ran.stderr}"
        return ran.stdout

    def attempt(
        self, *command: str, seconds: float = 60.0, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command that may fail."""
        env = {**self.env, **(env or {})}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=seconds, cwd=self.folder)

    def submit(self, script: str, *options: str) -> str:
        """The number of a new batch job that runs lines of shell, whose output is in `output/<number>.txt`."""
        output = f"--output={self.folder}/output/%j.txt"
        return self.run("sbatch", "--parsable", output, *options, f"--wrap={script}").strip()

    def output(self, job: str) -> str:
        return (self.folder / "output" / f"{job}.txt").read_text()

    def job_state(self, job: str) -> str:
        """As the controller tells it; it forgets a job 300 seconds after its end."""
        words = self.run("scontrol", "show", "job", job, "--oneliner").split()
        return next(word.partition("=")[2] for word in words if word.startswith("JobState="))

    def node_states(self) -> dict[str, str]:
        """`idle`, `mixed`, `down*`, …; nothing while the controller does not answer."""
        asked = self.attempt("sinfo", "--noheader", "--Node", "--partition=batch", "--format=%N %T")
        return dict(line.split() for line in asked.stdout.splitlines()) if asked.returncode == 0 else {}

    def wait_for_nodes(self, state: str = "idle", names: Sequence[str] = ()) -> None:
        wanted = names or self.nodes
        wait_until(
            lambda: all(self.node_states().get(name) == state for name in wanted),
            f"nodes {', '.join(wanted)} are {state}; {self.folder}/log says why not",
            seconds=90,
        )

    def empty(self) -> None:
        """No job is left, running or waiting."""
        self.run("scancel", "--state=PENDING", "--quiet", *self._everyone())
        self.run("scancel", "--quiet", *self._everyone())
        wait_until(lambda: not self.run("squeue", "--noheader").strip(), "no job is left", seconds=90)

    def stop_controller(self, how: signal.Signals = signal.SIGTERM) -> None:
        self._stop("slurmctld", how)

    def start_controller(self) -> None:
        self._start("slurmctld", ["slurmctld", "-D"])
        wait_until(lambda: " UP" in self.attempt("scontrol", "ping").stdout, "slurmctld answers")

    def hang_controller(self) -> None:
        """It takes connections, and answers none of them, until it is waked."""
        self._daemons["slurmctld"].send_signal(signal.SIGSTOP)

    def wake_controller(self) -> None:
        self._daemons["slurmctld"].send_signal(signal.SIGCONT)
        wait_until(lambda: " UP" in self.attempt("scontrol", "ping").stdout, "slurmctld answers")

    def stop_accounting(self) -> None:
        self._stop("slurmdbd")

    def start_accounting(self) -> None:
        self._start("slurmdbd", ["slurmdbd", "-D"])
        wait_until(lambda: _listens(self.shape.accounting_port), "slurmdbd listens")

    def kill_node(self, name: str) -> None:
        """Its slurmd and whatever it runs are dead at once, and nobody is told; Slurm finds out by itself."""
        self._stop(name, signal.SIGKILL)

    def start_node(self, name: str) -> None:
        """It comes back as after a restart of the machine; `wait_for_nodes` waits until Slurm uses it."""
        self._should_run(name).parent.mkdir(parents=True, exist_ok=True)
        self._should_run(name).touch()
        namespace = ["--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        if os.geteuid() != 0:
            namespace += ["--user", "--map-current-user"]
        slurmd = [str(self._should_run(name)), "slurmd", "-D", "-N", name]
        self._start(name, ["unshare", *namespace, "sh", "-c", _INIT, *slurmd])

    def kill_slurmd(self, name: str) -> None:
        """The daemon alone: what it had started goes on."""
        self._should_run(name).unlink()
        for pid in self._slurmds(name):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self._slurmds(name), f"slurmd of {name} is dead")

    def start_slurmd(self, name: str) -> None:
        """What the controller asks a node for in vain it asks again only after minutes, so it listens on return."""
        self._should_run(name).touch()
        port = self.shape.node_ports[self.nodes.index(name)]
        wait_until(lambda: _listens(port), f"slurmd of {name} listens")

    def start(self) -> None:
        self._start_munged()
        if self.shape.accounting:
            self._start_database()
            self.start_accounting()
            self._add_accounts()
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        if self.shape.rest_port:
            self._start_rest()
        self.wait_for_nodes()

    def stop(self) -> None:
        """Everything is ended by force, nodes first: no file of theirs is read again."""
        for name in [*self.nodes, *reversed(self._daemons)]:
            self._stop(name, signal.SIGKILL)
        _remove_cgroups(self.nodes)

    def _start_munged(self) -> None:
        key = self.folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        files = [f"--{kind}-file={self.folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed")]
        self._start("munged", ["munged", "--foreground", f"--socket={self.folder}/munge.socket", *files])
        wait_until((self.folder / "munge.socket").exists, "munged answers")

    def _start_database(self) -> None:
        place = self.folder / "database"
        # At its start it removes what it takes for leftovers of its own: of another's tables in /tmp, too.
        where = [f"--datadir={place}", f"--tmpdir={self.folder}", f"--user={_me()}", "--skip-name-resolve"]
        made = ["--auth-root-authentication-method=normal", "--skip-test-db", *slurm_conf.DATABASE]
        self.run("mariadb-install-db", "--no-defaults", *where, *made)
        reached = ["--bind-address=127.0.0.1", f"--port={self.shape.database_port}", f"--socket={place}/socket"]
        self._start("mariadbd", ["mariadbd", "--no-defaults", *where, *reached, *slurm_conf.DATABASE])
        client = ["mariadb", "--no-defaults", f"--socket={place}/socket", "--user=root", "--execute"]
        wait_until(lambda: self.attempt(*client, "select 1").returncode == 0, "MariaDB answers")
        self.run(*client, slurm_conf.GRANTS)

    def _add_accounts(self) -> None:
        for words in slurm_conf.accounts([_me(), *self.shape.users]):
            self.run("sacctmgr", "--immediate", "--quiet", *words)

    def _start_rest(self) -> None:
        """slurmrestd of 22.05 refuses to be root or the user of the cluster."""
        account = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--pdeathsig=KILL"]
        command = ["slurmrestd", "-a", "rest_auth/jwt", "-s", "openapi/v0.0.38,openapi/dbv0.0.38"]
        self._start("slurmrestd", [*account, *command, f"127.0.0.1:{self.shape.rest_port}"], {"SLURM_JWT": "daemon"})
        wait_until(lambda: _listens(self.shape.rest_port), "slurmrestd listens")

    def _start(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        with (self.folder / "log" / f"{name}.txt").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", *command],
                env={**self.env, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        if process := self._daemons.pop(name, None):
            process.send_signal(how)
            process.wait(timeout=60)

    def _slurmds(self, name: str) -> list[int]:
        """Below setpriv, which becomes unshare, and the shell."""
        process = self._daemons[name]
        found = [pid for shell in _children(process.pid) for pid in _children(shell)]
        return [pid for pid in found if Path(f"/proc/{pid}/comm").read_text().strip() == "slurmd"]

    def _everyone(self) -> list[str]:
        return [f"--user={user}" for user in (_me(), *self.shape.users)]

    def _should_run(self, name: str) -> Path:
        return self.folder / "spool" / name / "slurmd-should-run"


@contextmanager
def running(
    *,
    nodes: int = 4,
    accounting: bool = True,
    rest: bool = True,
    proctrack: str = "linuxproc",
    cpus: int = 8,
    memory_mb: int = 16_000,
    gpus: int = 4,
    users: Sequence[str] = (),
    timeout_seconds: int = slurm_conf.TIMEOUT_SECONDS,
    extra: str = "",
) -> Iterator[Slurm]:
    """A cluster of idle nodes n1, n2, …, or what tests/absent.py makes of there being none.

    `users` get an account beside the one that runs the tests; after `timeout_seconds` a node that does not answer is
    dead; `extra` are more lines of slurm.conf. slurmrestd wants an account of its own, which root alone can give it:
    `Slurm.rest` is None where it cannot run.
    """
    rest = rest and os.geteuid() == 0
    if why := missing(accounting=accounting, rest=rest):
        absent(why)
    control, database, accounts, web, *own = free_ports(4 + nodes)
    shape = Shape(
        names=tuple(f"n{number}" for number in range(1, nodes + 1)),
        cpus=cpus,
        memory_mb=memory_mb,
        gpus=gpus,
        accounting=accounting,
        proctrack=proctrack,
        users=tuple(users),
        timeout_seconds=timeout_seconds,
        extra=extra,
        control_port=control,
        accounting_port=accounts,
        database_port=database,
        rest_port=web if rest else 0,
        node_ports=tuple(own),
    )
    folder = Path(tempfile.mkdtemp(prefix="pc-slurm-", dir="/tmp"))  # a socket's path may have about 100 characters
    slurm = Slurm(folder, shape)
    try:
        _configure(folder, shape)
        slurm.start()
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(folder)


def missing(*, accounting: bool = True, rest: bool = True) -> str | None:
    """Why no cluster can run here, and what to do."""
    programs = (*_PROGRAMS, *(_OF_ACCOUNTING if accounting else ()), *(_OF_REST if rest else ()))
    absent = [program for program in programs if shutil.which(program, path=PATH) is None]
    return f"Slurm is not installed ({', '.join(absent)}): {INSTALL}" if absent else None


def _configure(folder: Path, shape: Shape) -> None:
    # Any user of the cluster reads its configuration and reaches the socket of munged.
    folder.chmod(0o755)
    for name in ("log", "state", "spool", "output"):
        (folder / name).mkdir()
    (folder / "output").chmod(0o1777)
    key = folder / "jwt.key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(32))
    host = socket.gethostname().partition(".")[0]
    # Clusters of other processes name their control groups by node and job, as this one does.
    slurm_conf.write(folder, shape, host=host, user=_me(), first_job=secrets.randbelow(50_000_000) + 1)


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _children(pid: int) -> list[int]:
    with suppress(FileNotFoundError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _remove_cgroups(nodes: Sequence[str]) -> None:
    """Those that nothing runs in; another cluster's steps make theirs again."""
    for name in nodes:
        for top in CGROUPS.glob(f"*/slurm_{name}"):
            for folder in sorted((found for found in top.rglob("*") if found.is_dir()), reverse=True):
                with suppress(OSError):
                    folder.rmdir()
            with suppress(OSError):
                top.rmdir()
