"""Nothing acknowledged is lost: the server is killed again and again while a hundred jobs are in flight."""

from __future__ import annotations

import random
import socket
import threading
import time

import pytest

from paddlecloud.model.job import JobSpec, RoleSpec
from paddlecloud.model.state import JobState
from paddlecloud.sdk.client import Client
from tests.flow.lab import Lab, processes_with
from tests.waiting import wait_until

JOBS = 100
KILLS = 10


@pytest.mark.timeout(600)
def test_every_job_ends_once_in_its_right_state_whatever_moment_the_server_dies(lab: Lab) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    lab.configure(f'[server]\nport = {a_free_port()}\n[clusters.local]\nbackend = "local"\ncpus = 20\n')
    lab.type("up")
    client = lab.client()
    jobs: list[str] = []
    submitter = threading.Thread(target=submit_all, args=(client, jobs))
    submitter.start()
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.1, 1.5))
        lab.kill_server()
        lab.type("up")
    submitter.join()
    for number, job in enumerate(jobs):
        check_one(client, number, job, f"seed {seed}")
    assert len(list(client.list())) == len(jobs) == JOBS
    assert [pid for job in jobs for pid in processes_with(job)] == []


def submit_all(client: Client, jobs: list[str]) -> None:
    """One submit after the other; the client itself goes on trying while the server is away."""
    jobs.extend(client.submit(spec=a_spec(number)).id for number in range(JOBS))


def a_spec(number: int) -> JobSpec:
    """Three in four succeed, one in four fails; each says a line, waits and says another."""
    command = f"echo begin {number}; sleep {0.2 + number % 7 / 4}; echo end {number}; exit {0 if number % 4 else 7}"
    return JobSpec(name=f"crash-{number}", roles=(RoleSpec(name="trainer", count=1, command=command),))


def check_one(client: Client, number: int, job: str, seed: str) -> None:
    detail = wait_until(
        lambda: found if (found := client.get(job)).job.state.final else None, f"{job} ends", seconds=60
    )
    assert detail.job.state is (JobState.SUCCESS if number % 4 else JobState.FAILED), (seed, detail)
    assert len([row for row in detail.history if row.to_state.final]) == 1, (seed, detail)
    assert detail.job.attempt == 1, (seed, detail)
    log = "".join(piece.text for piece in client.logs(job))
    assert log == f"begin {number}\nend {number}\n", seed


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
