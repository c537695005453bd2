"""Measures how long other launchers take to run a number of jobs of `true` on this machine.

Each is used through its fastest client, polled as often as makes sense, and keeps its logs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import slurm
from bench.peers import RAY, TORCHX, LeftOut, free_ports, installed
from bench.table import Row, seconds

Jobs = Callable[[int], None]
SINGLE_JOBS = 10


@dataclass(frozen=True, slots=True)
class Launcher:
    """`batch` is the number of jobs to run at once without waiting too long."""

    name: str
    running: Callable[[], AbstractContextManager[Jobs]]
    batch: int


@dataclass(frozen=True, slots=True)
class Measured:
    one: Row
    rate: Row


def measured(batch: int, repeats: int) -> dict[str, Measured]:
    """Measure every launcher that runs here, one after the other; stderr says why others do not."""
    found = {}
    for launcher in (
        Launcher("Slurm", _slurm, batch),
        Launcher("torchx", _torchx, batch),
        Launcher("Ray", _ray, min(batch, 10)),
    ):
        try:
            with launcher.running() as jobs:
                found[launcher.name] = _measure(launcher, jobs, repeats)
        except LeftOut as why:
            print(f"{launcher.name} is left out: {why}", file=sys.stderr)
    return found


def _measure(launcher: Launcher, jobs: Jobs, repeats: int) -> Measured:
    jobs(1)
    one = [1000 * _at(number / SINGLE_JOBS, lambda: jobs(1)) for number in range(SINGLE_JOBS)]
    rate = [launcher.batch / seconds(lambda: jobs(launcher.batch)) for _ in range(repeats)]
    return Measured(
        Row(f"{launcher.name}: one job", one, "ms"),
        Row(f"{launcher.name}: {launcher.batch} jobs", rate, "jobs/s"),
    )


def _at(pause: float, action: Callable[[], None]) -> float:
    """Time an action after a pause, so that a launcher that polls once a second is measured at varying moments."""
    time.sleep(pause)
    return seconds(action)


@contextmanager
def _slurm() -> Iterator[Jobs]:
    with slurm.running() as cluster:
        yield cluster.run_true


@contextmanager
def _torchx() -> Iterator[Jobs]:
    with _within(installed("torchx", TORCHX), "within_torchx.py") as jobs:
        yield jobs


@contextmanager
def _ray() -> Iterator[Jobs]:
    ray = installed("ray", RAY)
    # It contains Ray's sockets, and a socket's path may have at most 107 characters.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        port, dashboard, agent, client = free_ports(4)
        command = [
            *(str(ray), "start", "--head", "--block", "--disable-usage-stats"),
            *("--node-ip-address=127.0.0.1", "--dashboard-host=127.0.0.1", "--num-cpus=64", f"--temp-dir={folder}"),
            *(f"--port={port}", f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}"),
            *(f"--ray-client-server-port={client}", "--object-store-memory=200000000"),
        ]
        env = {"PATH": os.environ["PATH"], "HOME": folder}
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with _within(ray, "within_ray.py", f"http://127.0.0.1:{dashboard}") as jobs:
                yield jobs
        finally:
            process.terminate()
            process.wait()


@contextmanager
def _within(program: Path, script: str, *words: str) -> Iterator[Jobs]:
    """Start a process in a program's environment: it runs as many jobs as each line says, and prints how they ended."""
    command = [str(program.with_name("python")), str(Path(__file__).with_name(script)), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdin
        assert process.stdout
        asked, answers = process.stdin, process.stdout

        def jobs(count: int) -> None:
            print(count, file=asked, flush=True)
            if (answer := answers.readline().strip()) != "SUCCEEDED":
                raise LeftOut(f"its jobs ended as {answer or 'nothing'}")

        if not answers.readline():
            raise LeftOut("it does not start")
        yield jobs
