"""Seed 003's queues as a story: a short one for everyone, a slow one beside it, and another team's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.waiting import wait_until

FCR = "nmg01-hpc-off-dmop-cpu-10G_cluster"
SLOW = "nmg01-hpc-off-dmop-slow-cpu-10G_cluster"
IDL = "nmg01-idl-dl-cpu-10G_cluster"
CONFIG = f"""\
[clusters.hpc]
backend = "local"
cpus = 1
gpus = 0

[queues.{FCR}]
cluster = "hpc"
time_limit = "00:30:00"
priority = 10

[queues.{SLOW}]
cluster = "hpc"
time_limit = "99:59:59"

[queues.{IDL}]
users = ["somebody-of-idl"]
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path)
    made.configure(CONFIG)
    yield made
    made.close()


def submit(lab: Lab, queue: str, command: str, *more: str) -> str:
    return lab.out("submit", "--no-files", "--queue", queue, *more, "--", command).strip()


def test_short_jobs_pass_long_ones_and_each_queue_keeps_its_limit_and_its_users(lab: Lab) -> None:
    assert lab.out("queues", "-o", "name").split() == [FCR, SLOW]
    refused = lab.type("submit", "--no-files", "--queue", FCR, "--time-limit", "00:30:01", "--", "true", code=2)
    assert f"queue {FCR} takes jobs of 00:30:00 at most, and 00:30:01 is asked for: {SLOW} would take it" in (
        refused.stderr
    )
    refused = lab.type("submit", "--no-files", "--queue", SLOW, "--time-limit", "100h", "--", "true", code=2)
    assert f"none of yours takes so long; {SLOW} takes the longest, 99:59:59" in refused.stderr
    assert f"you may use {FCR}, {SLOW}" in lab.type("submit", "--no-files", "--queue", IDL, "--", "true", code=3).stderr
    runs = submit(lab, SLOW, "sleep 1000", "--time-limit", "99:59:59")
    wait_until(lambda: lab.field(runs, "job_status") == "running", "it runs")
    assert lab.field(runs, "queue") == SLOW
    slow = submit(lab, SLOW, "true", "--time-limit", "2h")
    fast = submit(lab, FCR, "true")
    assert lab.field(fast, "wall_time") == "00:30:00"
    wait_until(lambda: lab.out("queue", "-o", "name").split() == [fast, slow], "the short queue goes first")
    lab.out("kill", "--wait", runs)
    for job in (fast, slow):
        lab.ends(job, "success")
    first, second = (str(lab.client().get(job).job.started_at) for job in (fast, slow))
    assert first < second


def test_a_job_whose_queue_is_taken_away_waits_and_says_so_until_it_is_back(lab: Lab) -> None:
    runs = submit(lab, SLOW, "sleep 1000")
    waits = submit(lab, FCR, "true")
    wait_until(lambda: lab.field(waits, "job_status") == "queue", "it waits")
    lab.out("down")
    lab.configure(CONFIG.replace(f"[queues.{FCR}]", "[queues.renamed]"))
    lab.out("up")
    lab.out("kill", "--wait", runs)
    wait_until(lambda: "is no longer configured" in lab.field(waits, "queue_reason"), "it says why it waits")
    lab.out("down")
    lab.configure(CONFIG)
    lab.out("up")
    lab.ends(waits, "success")
