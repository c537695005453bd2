"""A real Slurm of one's own: munged, slurmctld and a slurmd, all on loopback and in one folder, gone at the end.

Set to be quick, so that nobody can say it was held back: no accounting, no delay for batches, and so much room that no
job waits for another. Its scheduler looks once a second whatever it is told.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.peers import LeftOut, free_ports

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"]
_PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "sinfo"]
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
_START_SECONDS = 30.0
_END_SECONDS = 120.0
_POLL_SECONDS = 0.002
_CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SlurmUser={user}
SlurmdUser={user}
SlurmdPidFile={folder}/slurmd.pid
SlurmdLogFile={folder}/slurmd.log
SlurmdSpoolDir={folder}/spool
# A node may have more CPUs than the machine.
SlurmdParameters=config_overrides
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/ended.txt
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_min_interval=100000,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node} CPUs=256 State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=01:00:00 State=UP
"""


class Slurm:
    """Jobs are submitted as its users do, by `sbatch`; their ends are read where slurmctld tells them first."""

    def __init__(self, folder: Path) -> None:
        self.env = {"PATH": _PATH, "HOME": str(folder), "SLURM_CONF": str(folder / "slurm.conf")}
        self._folder = folder

    def run_true(self, count: int) -> None:
        """Run `true` as so many jobs, submitted one by one; return when the last has succeeded."""
        submit = ["sbatch", "--quiet", f"--output={self._folder}/output/%j.txt", "--wrap=true"]
        wanted = self._ended() + count
        for _ in range(count):
            subprocess.run(submit, env=self.env, check=True)
        deadline = time.monotonic() + _END_SECONDS
        while (ended := self._ended()) < wanted:
            if time.monotonic() > deadline:
                raise LeftOut(f"{wanted - ended} of its {count} jobs did not end")
            time.sleep(_POLL_SECONDS)

    def _ended(self) -> int:
        """How many jobs have succeeded so far."""
        file = self._folder / "ended.txt"
        text = file.read_text() if file.exists() else ""
        succeeded = text.count(" JobState=COMPLETED ")
        if succeeded < text.count(" JobState="):
            raise LeftOut("not all of its jobs succeeded")
        return succeeded


@contextmanager
def running() -> Iterator[Slurm]:
    _install()
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as name, ExitStack() as stack:
        folder = Path(name)
        _configure(folder)
        slurm = Slurm(folder)
        for daemon in (_munged(folder), ["slurmctld", "-D"], ["slurmd", "-D", "-N", "n1"]):
            stack.enter_context(_daemon(daemon, slurm))
        _wait_until_idle(slurm)
        yield slurm


def _install() -> None:
    """Root on Debian gets its packages, which need no setting up; anyone else is told what to install."""
    if _installed():
        return
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing Slurm …", file=sys.stderr)
        env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(install, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    if not _installed():
        raise LeftOut(f"it is not installed (on Debian: {' '.join(install)})")


def _installed() -> bool:
    return all(shutil.which(program, path=_PATH) for program in _PROGRAMS)


def _configure(folder: Path) -> None:
    # munged wants its socket where any user could reach it.
    folder.chmod(0o711)
    for name in ("state", "spool", "output"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(0o600)
    key.write_bytes(secrets.token_bytes(128))
    control, node = free_ports(2)
    host, user = socket.gethostname().partition(".")[0], pwd.getpwuid(os.geteuid()).pw_name
    config = _CONFIG.format(host=host, user=user, folder=folder, control=control, node=node)
    (folder / "slurm.conf").write_text(config)


def _munged(folder: Path) -> list[str]:
    files = [f"--{kind}-file={folder}/munge.{kind}" for kind in ("key", "pid", "log", "seed")]
    return ["munged", "--foreground", f"--socket={folder}/munge.socket", *files]


@contextmanager
def _daemon(command: list[str], slurm: Slurm) -> Iterator[None]:
    process = subprocess.Popen(command, env=slurm.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_until_idle(slurm: Slurm) -> None:
    idle = ["sinfo", "--noheader", "--states=idle", "--format=%N"]
    deadline = time.monotonic() + _START_SECONDS
    while not subprocess.run(idle, env=slurm.env, capture_output=True, check=False).stdout.strip():
        if time.monotonic() > deadline:
            raise LeftOut("it does not start")
        time.sleep(0.1)
