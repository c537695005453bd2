"""From submit to the final state of `true`, one job and 200 of them, beside 200 bare processes without any server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.table import Row, arguments, seconds, tell  # noqa: E402
from paddlecloud.model.state import JobState  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

JOBS = 200
SINGLE_JOBS = 20
# More room than the machine has: a job of `true` should wait for nothing but its own start.
CONFIG = '[clusters.local]\nbackend = "local"\ncpus = 64\nmemory = "64Gi"\n'


def main() -> None:
    given = arguments(__doc__ or "", repeats=5)
    with server.running(CONFIG) as client:
        _one(client)
        single = [1000 * seconds(lambda: _one(client)) for _ in range(SINGLE_JOBS)]
        floor, many = [], []
        for _ in range(given.repeats):
            floor.append(seconds(_processes))
            many.append(seconds(lambda: _many(client)))
    rows = [
        Row("one job of `true`, submit to `success`", single, "ms"),
        Row(f"{JOBS} jobs of `true`, first submit to last `success`", many, "s"),
        Row(f"{JOBS} times `sh -c true`, one after the other (the floor)", floor, "s"),
    ]
    ratio = rows[1].median / rows[2].median
    rate = JOBS / rows[1].median
    verdict = f"{rate:.0f} jobs a second; a job costs {ratio:.1f} times what starting a bare process costs."
    tell("jobs", rows, verdict, write=given.write)


def _one(client: Client) -> None:
    job = client.submit(command="true")
    ended = client.wait(job.id)
    _must_succeed(ended.id, ended.state)


def _many(client: Client) -> None:
    """All of them by one client on one connection, no files; their ends are read from the stream of events."""
    last = max((moved.seq for moved in client.events()), default=0)
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


if __name__ == "__main__":
    main()
