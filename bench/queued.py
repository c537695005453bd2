"""Measures submits, scheduling rounds and memory of a server with 10,000 jobs in its queue."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from bench import server  # noqa: E402
from bench.table import Row, arguments, met, seconds, tell  # noqa: E402
from paddlecloud.model.state import JobState  # noqa: E402
from paddlecloud.sdk.client import Client  # noqa: E402

JOBS = 10_000
CONFIG = '[clusters.local]\nbackend = "local"\ncpus = 1\nmemory = "1Gi"\n'
MEBIBYTE = 2**20
GOAL_SUBMIT_MILLISECONDS = 20
GOAL_ROUND_MILLISECONDS = 100
GOAL_MEMORY_BYTES = 150e6


def main() -> None:
    given = arguments(__doc__ or "", repeats=200)
    with server.running(CONFIG) as client:
        _take_all(client)
        empty = [1000 * seconds(lambda: client.submit(command="true")) for _ in range(given.repeats)]
        for number in range(JOBS - given.repeats):
            client.submit(command=f"python train.py --seed {number}", name=f"train-{number}")
        submits, rounds = [], []
        for _ in range(given.repeats):
            before = _metrics(client)
            submits.append(1000 * seconds(lambda: client.submit(command="true")))
            rounds.append(1000 * _round_seconds(client, before))
        memory = _metrics(client)["process_resident_memory_bytes"] / MEBIBYTE
    rows = [
        Row("submit, with an empty queue at first", empty, "ms"),
        Row(f"submit, with {JOBS:,} jobs queued", submits, "ms"),
        Row(f"scheduling round, with {JOBS:,} jobs queued", rounds, "ms"),
        Row("resident memory of the server after that", [memory], "MiB"),
    ]
    tell("queued", rows, _verdict(*(row.median for row in rows)), write=given.write)


def _verdict(empty: float, submit: float, round_: float, memory: float) -> str:
    is_small = memory * MEBIBYTE < GOAL_MEMORY_BYTES
    return (
        f"With {JOBS:,} jobs queued a submit takes {submit / empty:.1f} times what it takes with next to none. "
        f"Goal of a submit in less than {GOAL_SUBMIT_MILLISECONDS} ms: {met(submit < GOAL_SUBMIT_MILLISECONDS)}. "
        f"Goal of a round in less than {GOAL_ROUND_MILLISECONDS} ms: {met(round_ < GOAL_ROUND_MILLISECONDS)}. "
        f"Goal of less than {GOAL_MEMORY_BYTES / 1e6:.0f} MB: {met(is_small)}."
    )


def _take_all(client: Client) -> None:
    """Submit one job that takes all resources, so that every other job waits; it ends when the server does."""
    host, _, port = client.profile.server.rpartition("//")[2].partition(":")
    watch = f"while not socket.socket().connect_ex(({host!r}, {port})): time.sleep(1)"
    job = client.submit(command=f'python3 -c "import socket, time\n{watch}"')
    while client.get(job.id).job.state is not JobState.RUNNING:
        time.sleep(0.05)


def _round_seconds(client: Client, before: dict[str, float]) -> float:
    """The average duration of rounds since then; a submit is followed by at least one round."""
    name = "paddlecloud_round_seconds"
    while (now := _metrics(client))[f"{name}_count"] == before[f"{name}_count"]:
        time.sleep(0.02)
    rounds = now[f"{name}_count"] - before[f"{name}_count"]
    return (now[f"{name}_sum"] - before[f"{name}_sum"]) / rounds


def _metrics(client: Client) -> dict[str, float]:
    """The server's metrics."""
    lines = client.http.request("GET", "/metrics").data.decode().splitlines()
    words = [line.split() for line in lines if not line.startswith("#")]
    return {name: float(value) for name, value, *_ in words if "{" not in name}


if __name__ == "__main__":
    main()
