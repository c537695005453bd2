"""What a queue does for its jobs: their turn, and what their cluster is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paddlecloud.model.job import Job, JobSpec, Placement, Resources, RoleSpec
from paddlecloud.scheduler.launch import launch
from paddlecloud.scheduler.plan import Snapshot, forecast, order, plan
from paddlecloud.scheduler.queues import Terms, options_of

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
MACHINE = Resources(cpus=4, memory_bytes=2**34)
QUEUES = {"slow": Terms(priority=-10), "fast": Terms(priority=10, options={"partition": "short", "qos": "high"})}


def a_job(number: int, queue: str = "", **changes: Any) -> Job:
    role = RoleSpec(name="trainer", count=1, command="train", resources=Resources(cpus=1, memory_bytes=2**30))
    spec = JobSpec(roles=(role,), cluster="local", queue=queue, wall_time_seconds=60, **changes)
    return Job(id=f"job-{number:032x}", user="ann", spec=spec, created_at=NOW + timedelta(seconds=number))


def numbers(jobs: list[Job]) -> list[int]:
    return [int(job.id[4:], 16) for job in jobs]


def a_snapshot(*waiting: Job, cpus: int = 4) -> Snapshot:
    return Snapshot(now=NOW, waiting=waiting, placed=(), clusters={"local": replace(MACHINE, cpus=cpus)}, queues=QUEUES)


def test_the_turn_is_the_jobs_priority_with_its_queues_then_time_of_submission() -> None:
    jobs = [a_job(1), a_job(2, "slow"), a_job(3, "fast"), a_job(4, "slow", priority=10), a_job(5, priority=11)]
    assert numbers(order(jobs, QUEUES)) == [5, 3, 1, 4, 2]


def test_what_is_placed_and_foretold_keeps_that_turn() -> None:
    decided = plan(a_snapshot(a_job(1), a_job(2, "fast"), cpus=1))
    assert numbers([job for job, _ in decided.placements]) == [2]
    told = forecast(a_snapshot(a_job(1), a_job(2, "fast")))
    assert [told[a_job(number).id].position for number in (1, 2)] == [2, 1]


def test_a_job_of_a_queue_that_is_no_longer_there_waits_and_holds_nobody_up() -> None:
    lost, other = a_job(1, "gone"), a_job(2)
    decided = plan(a_snapshot(lost, other, cpus=1))
    assert numbers([job for job, _ in decided.placements]) == [2]
    assert decided.reasons[lost.id] == (
        "queue gone is no longer configured on this server: ask its operator, or kill the job"
    )
    assert forecast(a_snapshot(lost))[lost.id].about_at is None


def test_a_cluster_is_asked_for_the_queues_options_then_the_jobs_own() -> None:
    spec = a_job(1, "fast", slurm={"qos": "low", "constraint": "rack1"}).spec
    assert options_of(spec, QUEUES) == {"partition": "short", "qos": "low", "constraint": "rack1"}
    assert options_of(a_job(1).spec, QUEUES) == {}


def test_a_launch_carries_them() -> None:
    job, placement = a_job(1, "fast"), Placement(cluster="local", tasks=())
    launched = launch(job, placement, tree=None, results=Path("/results"), queues=QUEUES)
    assert launched.options == {"partition": "short", "qos": "high"}
