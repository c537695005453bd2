"""Verbs about jobs, typed: several at once, waiting ones, and how lists look on a narrow screen."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from paddlecloud.cli import show
from paddlecloud.cli.clusters import cluster_columns
from paddlecloud.cli.jobs import queue_columns
from paddlecloud.model.job import Resources
from paddlecloud.model.service import Cluster
from paddlecloud.model.state import JobState
from paddlecloud.model.views import Forecast, JobDetail
from tests.unit.cli.command import Command
from tests.unit.cli.records import CREATED, ID, a_job
from tests.unit.server.running import Running
from tests.waiting import wait_until

HALF = ("--cpus", "900")


def submit(command: Command, *words: str) -> str:
    return command.out("submit", "--no-files", *words, "--", "go on").strip()


def test_kill_tries_every_job_and_then_says_what_went_wrong(command: Command, server: Running) -> None:
    first, last = submit(command), submit(command)
    said = command.type("kill", "--wait", first, "no-such-job", last, code=102)
    assert said.stdout.splitlines() == [f"{first}  killed", f"{last}  killed"]
    assert "'no-such-job'" in said.stderr
    assert command.type("kill", "no-such-job", first, code=1).stderr.count("paddlecloud: ") == 2


def test_wait_takes_several_jobs_and_exits_as_the_worst_ended(command: Command, server: Running) -> None:
    good, bad = (command.out("submit", "--no-files", "--", words).strip() for words in ("true", "exit 3"))
    assert command.type("wait", good, bad, code=100).stdout.split() == [good, "success", bad, "failed"]
    assert [one["job"]["id"] for one in json.loads(command.out("wait", good, good, "-o", "json"))] == [good, good]
    said = command.type("wait", "no-such-job", good, code=102)
    assert said.stdout.split() == [good, "success"]


def test_who_waits_or_follows_a_waiting_job_is_told_why_it_waits(command: Command, server: Running) -> None:
    front = submit(command, *HALF)
    server.reaches(front, "running")
    behind = submit(command, *HALF)
    server.reaches(behind, "queue")
    wait_until(lambda: "CPU" in command.out("queue"), "the reason is known")
    said = command.type("wait", "--timeout", "1s", behind, code=101).stderr
    assert f"{behind} is in state queue: first in the queue" in said
    follower = command.begin("logs", "-f", behind)
    assert follower.stderr is not None
    assert "is in state queue: first in the queue" in follower.stderr.readline()
    server.finish(front)
    server.reaches(behind, "running")
    server.finish(behind)
    follower.communicate(timeout=20)
    assert follower.returncode == 0


def test_a_list_without_a_match_is_not_called_a_first_use(command: Command) -> None:
    assert command.type("ls", "--name", "nobody-has-this").stderr == "no job matches\n"


def test_the_queue_on_a_narrow_screen_cuts_the_reason_and_wraps_nothing() -> None:
    job = a_job(state=JobState.QUEUE, queue_reason="needs 2 CPUs and 4.0 GiB, of which 1 CPU is free on local")
    waiting = [JobDetail(job=job, forecast=Forecast(position=1, about_at=CREATED + timedelta(minutes=12)))]
    columns = [column for column in queue_columns(CREATED, everyone=False) if not column.wide]
    lines = show.table(waiting, columns, width=60).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].split() == ["POSITION", "JOB", "WHY"]
    assert ID[:12] in lines[1]
    assert ID not in lines[1]
    assert lines[1].endswith("  needs 2 CPUs and 4.0 GiB, of which …")
    assert job.queue_reason in show.table(waiting, columns)


def test_clusters_say_how_much_is_free_of_how_much() -> None:
    capacity = Resources(cpus=2.0, memory_bytes=2**31, gpus=0)
    one = Cluster(name="local", backend="local", policy="open", default=True, capacity=capacity, free=capacity)
    line = show.table([one], cluster_columns()).splitlines()[1]
    assert "2 of 2 free" in line
    assert "2.0 GiB of 2.0 GiB free" in line


@pytest.mark.parametrize(("limit", "told"), [("process", "per process"), ("task", "per task"), (None, "0")])
def test_clusters_say_whose_memory_is_limited(limit: str | None, told: str) -> None:
    capacity = Resources(cpus=2.0, memory_bytes=2**31, gpus=0)
    one = Cluster(name="a", backend="local", policy="open", default=True, capacity=capacity, memory_limit=limit)
    assert show.table([one], cluster_columns()).splitlines()[1].endswith(told)
