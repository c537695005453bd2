"""Measures jobs of `true` on a four-node Slurm, through PaddleCloud and by sbatch, and one report of 5,000."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.slurm import OneNode  # noqa: E402
from bench.table import Row, arguments, met, seconds, tell  # noqa: E402
from paddlecloud.backends.slurm import SlurmBackend  # noqa: E402
from paddlecloud.backends.slurmcalls import Commands  # noqa: E402
from paddlecloud.backends.slurmcluster import Cluster  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402
from tests import slurm, slurm_conf  # noqa: E402
from tests.launches import make_launch  # noqa: E402
from tests.waiting import wait_until  # noqa: E402

JOBS = 200
QUEUED = 5000
GOAL_OVERHEAD = 0.20  # of the total time
PYTHON = "PATH=/usr/local/bin:/usr/bin:/bin; exec python3 -I -S -c pass"  # the minimum cost of a Python runtime


def main() -> None:
    given = arguments(__doc__ or "", repeats=5)
    with _cluster() as cluster, _ours(cluster) as client:
        theirs = OneNode(cluster)
        _many(client, 5)
        alone, python, through, twice = [], [], [], []
        for _ in range(given.repeats):
            alone.append(seconds(lambda: theirs.run_true(JOBS)))
            python.append(seconds(lambda: theirs.run(JOBS, PYTHON)))
            through.append(seconds(lambda: _many(client, JOBS)))
            _all_done(cluster)
            twice.append(seconds(lambda: _many(client, 2 * JOBS)))
            _all_done(cluster)
    looks, few = _looks()
    rows = [
        Row(f"sbatch alone: {JOBS} jobs of `true`, first submit to last end", alone, "s"),
        Row(f"sbatch alone: {JOBS} jobs of `python3 -I -S -c pass`", python, "s"),
        Row(f"PaddleCloud on the same Slurm: {JOBS} jobs of `true`, first submit to last `success`", through, "s"),
        Row(f"PaddleCloud: {2 * JOBS} jobs", twice, "s"),
        Row(f"report() of {QUEUED} jobs that wait, one question", looks, "ms"),
        Row(f"report() of {QUEUED // 10} jobs", few, "ms"),
    ]
    tell("cluster", rows, _verdict(rows), write=given.write)


def _verdict(rows: Sequence[Row]) -> str:
    alone, python, through, twice, looks, few = (row.median for row in rows)
    share, floor = 1 - alone / through, 1 - alone / python
    each, each_of_twice = 1000 * through / JOBS, 1000 * twice / (2 * JOBS)
    look, look_of_few = 1000 * looks / QUEUED, 1000 * few / (QUEUED // 10)
    return (
        f"Goal of less than {GOAL_OVERHEAD:.0%} of the total for us: {met(share < GOAL_OVERHEAD)}, {share:.0%}; "
        f"of jobs that start a Python which does nothing it is {floor:.0%}. "
        f"A job takes {each:.0f} ms where there are {JOBS}, and {each_of_twice:.0f} ms where there are {2 * JOBS}. "
        f"It costs {look:.0f} µs of a look at {QUEUED}, and {look_of_few:.0f} µs of one at {QUEUED // 10}."
    )


def _cluster() -> contextlib.AbstractContextManager[slurm.Slurm]:
    """Use Slurm's usual timeouts for nodes instead of the tests' short ones: all nodes share this machine."""
    return slurm.running(
        nodes=4, cpus=8, gpus=0, accounting=False, rest=False, timeout_seconds=slurm_conf.PATIENT_SECONDS
    )


@contextlib.contextmanager
def _ours(cluster: slurm.Slurm) -> Iterator[Client]:
    config = '[clusters.hpc]\nbackend = "slurm"\npolicy = "open"\n'
    with server.running(config, more={"SLURM_CONF": cluster.env["SLURM_CONF"], "PATH": cluster.env["PATH"]}) as client:
        yield client


def _many(client: Client, count: int) -> None:
    last = max((moved.seq for moved in client.events()), default=0)
    waiting = {client.submit(command="true").id for _ in range(count)}
    for moved in client.events(follow=True, after=last):
        if moved.to_state.final and moved.job in waiting:
            if moved.to_state.value != "success":
                raise SystemExit(f"{moved.job} ended as {moved.to_state.label}: {moved.why}")
            waiting.remove(moved.job)
            if not waiting:
                return


def _all_done(cluster: slurm.Slurm) -> None:
    wait_until(lambda: not cluster.run("squeue", "--noheader").strip(), "Slurm has finished all jobs", seconds=60)


def _looks() -> tuple[list[float], list[float]]:
    """Milliseconds of one report of jobs that all wait, since one long job occupies the nodes."""
    with _cluster() as cluster, tempfile.TemporaryDirectory() as name:
        cluster.submit("sleep 3600", "--nodes=4", "--exclusive")
        made = Cluster(name="hpc", options={"exclusive": "true"}, accounts={})
        backend = SlurmBackend(Path(name), made, Commands(env=cluster.env), clock=lambda: datetime.now(UTC))
        handles: list[str] = []
        few: list[float] = []
        for number in range(QUEUED):
            launch = make_launch(Path(name, "results"), "true", job=f"job-{number:032x}", memory_bytes=1 << 20)
            backend.start(launch)
            handles.append(launch.handle)
            if len(handles) == QUEUED // 10:
                few = _look(backend, handles)
        return _look(backend, handles), few


def _look(backend: SlurmBackend, handles: list[str]) -> list[float]:
    """Leave out the first report, which opens the folders of all jobs."""
    took = [seconds(lambda: _all_wait(backend, handles))]
    while len(took) < 6:
        time.sleep(2 + 11 * took[-1])  # until the backend queries Slurm again
        took.append(seconds(lambda: _all_wait(backend, handles)))
    return [1000 * one for one in took[1:]]


def _all_wait(backend: SlurmBackend, handles: list[str]) -> None:
    waiting = sum(bool(report.waits) for report in backend.report(handles).values())
    if waiting != len(handles):
        raise SystemExit(f"{waiting} of {len(handles)} jobs wait: nothing was measured")


if __name__ == "__main__":
    main()
