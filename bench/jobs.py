"""Measures submit to final state for one and for 500 jobs of `true`, against bare processes and other launchers."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.launchers import Measured, measured  # noqa: E402
from bench.table import Row, arguments, met, seconds, tell  # noqa: E402
from paddlecloud.model.state import JobState  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

JOBS = 500
SINGLE_JOBS = 20
GOAL_MILLISECONDS = 100
GOAL_RATE = 100
GOAL_RATIO = 2  # our rate divided by Slurm's
# More resources than the machine has: a job of `true` should only wait for its own start.
CONFIG = '[clusters.local]\nbackend = "local"\ncpus = 64\nmemory = "64Gi"\n'
UNISOLATED = f"{CONFIG}isolate = false\n"  # as other launchers run jobs: without namespaces and control groups


def main() -> None:
    given = arguments(__doc__ or "", repeats=5)
    floor = Row(
        f"`sh -c true`, {JOBS} times, one after the other (the floor)",
        [JOBS / seconds(_processes) for _ in range(given.repeats)],
        "jobs/s",
    )
    ours = _ours("PaddleCloud", CONFIG, given.repeats)
    bare = _ours("PaddleCloud without isolation", UNISOLATED, given.repeats)
    theirs = measured(JOBS, given.repeats)
    rows = [row for each in (ours, bare) for row in (each.one, each.rate)]
    rows += [floor, *(row for peer in theirs.values() for row in (peer.one, peer.rate))]
    tell("jobs", rows, _verdict(ours, floor, theirs), write=given.write)


def _ours(name: str, config: str, repeats: int) -> Measured:
    with server.running(config) as client:
        _one(client)
        one = [1000 * seconds(lambda: _one(client)) for _ in range(SINGLE_JOBS)]
        rate = []
        for _ in range(repeats):
            last = max(moved.seq for moved in client.events())
            rate.append(JOBS / seconds(partial(many, client, last)))
    return Measured(
        Row(f"{name}: one job of `true`, submit to `success`", one, "ms"),
        Row(f"{name}: {JOBS} jobs, first submit to last `success`", rate, "jobs/s"),
    )


def _one(client: Client) -> None:
    job = client.submit(command="true")
    ended = client.wait(job.id)
    _must_succeed(ended.id, ended.state)


def many(client: Client, last: int) -> None:
    """Submit all jobs with one client on one connection, without files; watch for their ends in the event stream."""
    waiting = {client.submit(command="true").id for _ in range(JOBS)}
    for moved in client.events(follow=True, after=last):
        if moved.to_state.final and moved.job in waiting:
            _must_succeed(moved.job, moved.to_state)
            waiting.remove(moved.job)
            if not waiting:
                return


def _processes() -> None:
    for _ in range(JOBS):
        subprocess.run(["sh", "-c", "true"], check=True)


def _must_succeed(job: str, state: JobState) -> None:
    if state is not JobState.SUCCESS:
        raise SystemExit(f"{job} ended as {state.label}: nothing was measured")


def _verdict(ours: Measured, floor: Row, theirs: dict[str, Measured]) -> str:
    one, rate = ours.one.median, ours.rate.median
    said = [
        f"Goal of one job in less than {GOAL_MILLISECONDS} ms: {met(one < GOAL_MILLISECONDS)}, {one:.0f} ms.",
        f"Goal of {GOAL_RATE} jobs a second: {met(rate >= GOAL_RATE)}, {rate:.0f}.",
        f"A job costs {floor.median / rate:.1f} times what starting a bare process costs.",
    ]
    if slurm := theirs.get("Slurm"):
        ratio = rate / slurm.rate.median
        said.append(f"Goal of {GOAL_RATIO} times Slurm's rate: {met(ratio >= GOAL_RATIO)}, {ratio:.1f} times.")
    if theirs:
        told = [
            f"{name} {peer.one.median / one:.1f} and {rate / peer.rate.median:.1f}" for name, peer in theirs.items()
        ]
        said.append(f"Times as quick as others, for one job and for many: {'; '.join(told)}.")
    return " ".join(said)


if __name__ == "__main__":
    main()
