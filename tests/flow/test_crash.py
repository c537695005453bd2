"""Nothing acknowledged is lost: the server and the supervisors of tasks are killed again and again while a hundred
jobs are in flight, on both kinds of database."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from paddlecloud.model.job import JobSpec, RoleSpec
from paddlecloud.model.state import JobState
from paddlecloud.sdk.client import Client
from tests.flow.lab import Lab, a_free_port, processes_with
from tests.waiting import wait_until

JOBS = 100
KILLS = 50
ATTEMPTS = 20  # more than one job can lose: its end is its own


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_job_ends_once_in_its_right_state_whatever_is_killed(database_line: str, lab: Lab) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    lab.configure(
        f"[server]\nport = {a_free_port()}\n{database_line}\n[jobs]\nattempts = {ATTEMPTS}\n"
        '[clusters.local]\nbackend = "local"\ncpus = 20\n'
    )
    lab.type("up")
    client = lab.client()
    assert list(client.list()) == []  # from now on it has met the server, and waits for it
    jobs: list[str] = []
    submitter = threading.Thread(target=submit_all, args=(client, jobs))
    submitter.start()
    taken = 0
    for kill in range(KILLS):
        time.sleep(chance.uniform(0.05, 0.8))
        if chance.random() < 0.5 or not kill_a_supervisor(lab, chance):
            lab.kill_server()
            lab.type("up")
        if kill % 3 == 0:  # on a busy machine the client would else never meet a server that lives
            wait_until(lambda: len(jobs) > taken or not submitter.is_alive(), "a submit is taken", seconds=60)  # noqa: B023
            taken = len(jobs)
    submitter.join()
    for number, job in enumerate(jobs):
        check_one(client, number, job, f"seed {seed}")
    assert len(list(client.list())) == len(jobs) == JOBS
    assert [pid for job in jobs for pid in processes_with(job)] == []
    assert supervisors(lab) == []


def submit_all(client: Client, jobs: list[str]) -> None:
    """One submit after the other; the client itself goes on trying while the server is away."""
    for number in range(JOBS):
        jobs.append(client.submit(spec=a_spec(number)).id)
        time.sleep(0.2)  # so that jobs are in flight from the first kill to the last


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
    log = "".join(piece.text for piece in client.logs(job))
    lines = [line for line in log.splitlines() if not line.startswith("--- attempt ")]
    assert lines[-2:] == [f"begin {number}", f"end {number}"], (seed, detail, log)
    # A lost attempt may have said its lines before it was lost; no line is lost or comes from elsewhere.
    assert set(lines) == {f"begin {number}", f"end {number}"}, (seed, detail, log)
    assert 1 <= lines.count(f"begin {number}") <= detail.job.attempt, (seed, detail, log)


def kill_a_supervisor(lab: Lab, chance: random.Random) -> bool:
    """kill -9 of the supervisor of a task, with its task left behind; whether there was one."""
    living = supervisors(lab)
    if not living:
        return False
    try:
        os.kill(chance.choice(living), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def supervisors(lab: Lab) -> list[int]:
    """The processes of this lab's server that watch over a task. What one of them has forked to become the command is
    called as they are for a moment: whoever kills that has killed the task."""
    parents = {}
    for entry in Path("/proc").iterdir():
        try:
            if (
                entry.name.isdigit()
                and (entry / "comm").read_text() == "paddlecloud-run\n"
                and str(lab.data).encode() in (entry / "cmdline").read_bytes()
            ):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [pid for pid, parent in parents.items() if parent not in parents]
