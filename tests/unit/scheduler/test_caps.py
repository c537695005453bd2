"""What the jobs of a queue may use at a time: who waits for it and why, who may pass, and about when they start."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec, total
from paddlecloud.model.state import JobState
from paddlecloud.scheduler import places
from paddlecloud.scheduler.caps import counted
from paddlecloud.scheduler.plan import Plan, Snapshot, forecast, plan
from paddlecloud.scheduler.queues import Cap, Terms

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
GIB = 2**30
MACHINE = Resources(cpus=16, memory_bytes=64 * GIB, gpus=4)
QUEUES = {"narrow": Terms(cap=Cap(cpus=4, gpus=1)), "wide": Terms(), "small": Terms(cap=Cap(memory_bytes=2 * GIB))}


def a_job(number: int, cpus: float = 1, *, queue: str = "narrow", minutes: int = 30, **changes: Any) -> Job:
    resources = Resources(cpus=cpus, memory_bytes=GIB, gpus=changes.pop("gpus", 0))
    role = RoleSpec(name="trainer", count=changes.pop("count", 1), command="train", resources=resources)
    spec = JobSpec(roles=(role,), wall_time_seconds=minutes * 60, cluster=changes.pop("cluster", "local"), queue=queue)
    created = NOW + timedelta(seconds=number - 1000)
    return replace(Job(id=f"job-{number:032x}", user=f"user-{number}", spec=spec, created_at=created), **changes)


def running(job: Job, cluster: str = "local") -> Job:
    placement = places.place(job, cluster, places.requests(job.spec, MACHINE), [], 4)
    return replace(job, state=JobState.RUNNING, placement=placement, running_since=NOW, attempt=1)


def a_snapshot(waiting: Sequence[Job], placed: Sequence[Job] = (), **changes: Any) -> Snapshot:
    snapshot = Snapshot(now=NOW, waiting=waiting, placed=placed, clusters={"local": MACHINE}, queues=QUEUES)
    return dataclasses.replace(snapshot, **changes)


def decide(waiting: Sequence[Job], placed: Sequence[Job] = (), **changes: Any) -> Plan:
    return plan(a_snapshot(waiting, placed, **changes))


def placed_ids(decided: Plan) -> list[int]:
    return [int(job.id[4:], 16) for job, _ in decided.placements]


def test_jobs_of_a_queue_together_use_no_more_than_its_cap_and_others_are_not_held_up() -> None:
    jobs = [a_job(number, cpus=2) for number in (1, 2, 3)]
    decided = decide([*jobs, a_job(4, cpus=8, queue="wide"), a_job(5, cpus=2, queue="")])
    assert placed_ids(decided) == [1, 2, 4, 5]
    assert decided.reasons[jobs[2].id] == (
        "queue narrow: its jobs use 4 of 4 CPUs and 0 of 1 GPU that they may at a time, and this one needs 2 CPUs "
        "and 0 GPUs"
    )


def test_what_runs_counts_and_every_kind_of_the_cap_does() -> None:
    decided = decide([a_job(2, gpus=1)], [running(a_job(1, gpus=1))])
    assert placed_ids(decided) == []
    assert "1 of 4 CPUs and 1 of 1 GPU" in decided.reasons[a_job(2).id]
    assert placed_ids(decide([a_job(2)], [running(a_job(1, gpus=1))])) == [2]
    decided = decide([a_job(3, queue="small", count=3)])
    assert decided.reasons[a_job(3).id] == (
        "queue small: its jobs may use 2.0 GiB at a time, and this one alone needs 3.0 GiB: ask for less, or name "
        "another queue"
    )


def test_the_first_that_does_not_fit_is_promised_its_room_in_the_queue_alone() -> None:
    hour = running(a_job(1, cpus=2, minutes=60))
    large, short, long = a_job(2, cpus=4), a_job(3, minutes=30), a_job(4, minutes=120)
    decided = decide([large, short, long, a_job(5, cpus=8, queue="wide", minutes=600)], [hour])
    assert placed_ids(decided) == [3, 5]
    assert decided.reasons[long.id] == (f"the room it needs in queue narrow is kept for {large.id}, which is before it")


def test_a_job_that_its_queue_holds_back_keeps_no_room_of_the_cluster() -> None:
    full = running(a_job(1, cpus=4, minutes=600))
    decided = decide([a_job(2, cpus=4), a_job(3, cpus=12, queue="wide", minutes=6000)], [full])
    assert placed_ids(decided) == [3]


def test_on_a_cluster_that_does_not_tell_what_it_has_a_task_without_cpus_counts_for_one() -> None:
    role = RoleSpec(name="trainer", count=3, command="train")
    jobs = [
        replace(a_job(number, cluster="hpc"), spec=replace(a_job(1).spec, roles=(role,), cluster="hpc"))
        for number in (1, 2)
    ]
    decided = decide(jobs, clusters={"hpc": None})
    assert placed_ids(decided) == [1]
    assert "3 of 4 CPUs" in decided.reasons[jobs[1].id]


def test_forecasts_wait_for_the_queue_and_nobody_else_for_its_jobs() -> None:
    hour = running(a_job(1, cpus=4, minutes=60))
    told = forecast(a_snapshot([a_job(2, cpus=3), a_job(3, cpus=3), a_job(4, cpus=1), a_job(5, queue="wide")], [hour]))
    starts = [told[a_job(number).id].about_at for number in (2, 3, 4, 5)]
    assert starts == [NOW + timedelta(minutes=60), NOW + timedelta(minutes=90), NOW + timedelta(minutes=90), NOW]


def test_of_a_job_that_never_fits_its_queue_nothing_is_foretold() -> None:
    assert forecast(a_snapshot([a_job(1, cpus=5)]))[a_job(1).id].about_at is None


@pytest.mark.parametrize(
    ("cap", "said"),
    [
        (Cap(cpus=4), "2 CPUs"),
        (Cap(gpus=4), "1 GPU"),
        (Cap(cpus=4, memory_bytes=GIB, gpus=4), "2 CPUs, 1.0 GiB and 1 GPU"),
    ],
)
def test_a_cap_speaks_only_of_what_it_caps(cap: Cap, said: str) -> None:
    assert cap.describe(Resources(cpus=2, memory_bytes=GIB, gpus=1)) == said


def test_of_a_cluster_a_queue_has_no_more_than_its_cap() -> None:
    assert Cap(cpus=4, gpus=9).within(MACHINE) == Resources(cpus=4, memory_bytes=64 * GIB, gpus=4)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2), st.sampled_from(["narrow", "wide", ""])), max_size=12))
def test_whatever_waits_no_plan_passes_a_cap(asked: list[tuple[int, int, str]]) -> None:
    waiting = [a_job(n, cpus=cpus, gpus=gpus, queue=queue) for n, (cpus, gpus, queue) in enumerate(asked, start=1)]
    decided = decide(waiting)
    used = total(counted(placement.tasks) for job, placement in decided.placements if job.spec.queue == "narrow")
    assert used.fits(Resources(cpus=4, memory_bytes=2**62, gpus=1))
    assert len(decided.placements) + len(decided.reasons) == len(waiting)
    forecast(a_snapshot(waiting))
