"""Runs a temporary one-node Slurm on this machine, as the tests do, but configured for speed.

To be fair to Slurm, it has no accounting, no delay for batches, and enough resources that no job waits for another. Its
scheduler runs once a second whatever the configuration says.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import LeftOut
from tests import slurm

_INSTALL = Path(__file__).parents[1] / "tools" / "engines.sh"
_END_SECONDS = 120.0
_POLL_SECONDS = 0.002


class OneNode:
    """Submits jobs by `sbatch`, as users do; reads their ends where slurmctld reports them first."""

    def __init__(self, cluster: slurm.Slurm) -> None:
        self._cluster = cluster

    def run_true(self, count: int) -> None:
        """Run `true` as `count` jobs, submitted one by one; return when the last has succeeded."""
        self.run(count, "true")

    def run(self, count: int, script: str) -> None:
        submit = ["sbatch", "--quiet", f"--output={self._cluster.folder}/output/%j.txt", f"--wrap={script}"]
        wanted = self._ended() + count
        for _ in range(count):
            subprocess.run(submit, env=self._cluster.env, check=True)
        deadline = time.monotonic() + _END_SECONDS
        while (ended := self._ended()) < wanted:
            if time.monotonic() > deadline:
                raise LeftOut(f"{wanted - ended} of its {count} jobs did not end")
            time.sleep(_POLL_SECONDS)

    def _ended(self) -> int:
        """How many jobs have succeeded so far."""
        file = self._cluster.folder / "ended.txt"
        text = file.read_text() if file.exists() else ""
        succeeded = text.count(" JobState=COMPLETED ")
        if succeeded < text.count(" JobState="):
            raise LeftOut("not all of its jobs succeeded")
        return succeeded


@contextmanager
def running() -> Iterator[OneNode]:
    """For root on Debian, install Slurm's packages, which need no setup; tell anyone else what to install."""
    if slurm.missing(accounting=False, rest=False):
        subprocess.run(["sh", str(_INSTALL)], check=False)
    if why := slurm.missing(accounting=False, rest=False):
        raise LeftOut(why)
    with slurm.running(nodes=1, cpus=256, memory_mb=256_000, gpus=0, accounting=False, rest=False) as cluster:
        yield OneNode(cluster)
