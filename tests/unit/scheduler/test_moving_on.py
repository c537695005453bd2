"""Clusters with queues of their own: a job that waits there is queued to its user, and the default list moves on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.backends.base import Launch, RefusedError
from paddlecloud.model import lifecycle
from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec
from paddlecloud.model.state import JobState
from paddlecloud.scheduler.round import Folders, Limits, Round
from tests.fakes import FakeBackend
from tests.unit.scheduler.test_round import NOW, World

WITHIN = timedelta(minutes=30)


class Refusing(FakeBackend):
    def start(self, launch: Launch) -> None:
        raise RefusedError("Slurm refuses it: Invalid partition name specified")


class TwoClusters(World):
    """`hpc`, whose queue is its own, and then `local`."""

    def __init__(self, folder: Path, hpc: FakeBackend) -> None:
        self.hpc = hpc
        super().__init__(folder)

    def restart(self) -> None:
        self.round = Round(
            jobs=self.jobs,
            quotas=lambda now, users: self.quotas,
            clusters={"hpc": self.hpc, "local": self.backend},
            default=("hpc", "local"),
            folders=Folders(tree=lambda user, tree: self.folder, results=lambda job: self.folder),
            limits=Limits(schedule=timedelta(hours=2), attempts=3, start_within={"hpc": WITHIN}),
        )

    def where(self, job: Job) -> str | None:
        placement = self.jobs.get(job.id).placement
        return None if placement is None else placement.cluster


@pytest.fixture
def hpc() -> FakeBackend:
    made = FakeBackend(None, clock=lambda: NOW)
    made.slow_to_start = True
    made.waits = "in the queue of Slurm: others are before it"
    return made


@pytest.fixture
def world(tmp_path: Path, hpc: FakeBackend) -> TwoClusters:
    return TwoClusters(tmp_path, hpc)


def test_what_waits_in_the_queue_of_its_cluster_is_queued_to_its_user_with_the_reason(
    world: TwoClusters, hpc: FakeBackend
) -> None:
    job = world.submit(1)
    world.run(3)
    record = world.jobs.get(job.id)
    assert (record.state, record.seen.state) == (JobState.SCHEDULE, JobState.QUEUE)
    assert record.queue_reason == hpc.waits
    assert [found.id for found in world.jobs.list(states=[JobState.QUEUE], seen=True).items] == [job.id]
    assert world.jobs.list(states=[JobState.SCHEDULE], seen=True).items == ()
    assert len(hpc.launches) == 1


def test_the_expected_start_is_part_of_the_reason(world: TwoClusters, hpc: FakeBackend) -> None:
    hpc.about_at = NOW + timedelta(minutes=10)
    job = world.submit(1)
    world.run(3)
    assert world.jobs.get(job.id).queue_reason == f"{hpc.waits}; it is expected to start at about 2026-11-15 12:10 UTC"


def test_once_it_runs_nothing_is_left_of_the_reason(world: TwoClusters, hpc: FakeBackend) -> None:
    job = world.submit(1)
    world.run(3)
    hpc.begin(f"{job.id}-1")
    world.run()
    record = world.jobs.get(job.id)
    assert (record.state, record.seen.state, record.queue_reason) == (JobState.RUNNING, JobState.RUNNING, "")


def test_a_job_that_would_start_too_late_goes_to_the_next_cluster(world: TwoClusters, hpc: FakeBackend) -> None:
    hpc.about_at = NOW + WITHIN + timedelta(minutes=1)
    job = world.submit(1)
    world.run(6)
    assert (world.state(job), world.where(job)) == (JobState.RUNNING, "local")
    record = world.jobs.get(job.id)
    assert (list(record.passed), record.retries) == (["hpc"], {})
    assert hpc.stops
    assert hpc.held == {}
    assert world.walked(job) == ["submit", "schedule", "killing", "queue", "schedule", "running"]


def test_a_job_that_starts_in_time_stays(world: TwoClusters, hpc: FakeBackend) -> None:
    hpc.about_at = NOW + WITHIN
    job = world.submit(1)
    world.run(6)
    assert (world.state(job), world.where(job)) == (JobState.SCHEDULE, "hpc")


def test_a_job_stays_where_no_other_cluster_answers(world: TwoClusters, hpc: FakeBackend) -> None:
    hpc.about_at = NOW + timedelta(days=1)
    world.backend.reachable = False
    job = world.submit(1)
    world.run(6)
    assert (world.state(job), world.where(job)) == (JobState.SCHEDULE, "hpc")


def test_a_job_that_names_its_cluster_stays_there(world: TwoClusters, hpc: FakeBackend) -> None:
    hpc.about_at = NOW + timedelta(days=1)
    job = submitted_to(world, "hpc")
    world.run(6)
    assert (world.state(job), world.where(job)) == (JobState.SCHEDULE, "hpc")


def test_a_cluster_that_refuses_is_passed_by(tmp_path: Path) -> None:
    world = TwoClusters(tmp_path, Refusing(None))
    job = world.submit(1)
    world.run(4)
    assert (world.state(job), world.where(job)) == (JobState.RUNNING, "local")
    assert "Invalid partition" in world.jobs.get(job.id).passed["hpc"]


def test_a_job_that_all_its_clusters_refuse_fails(tmp_path: Path) -> None:
    world = TwoClusters(tmp_path, Refusing(None))
    world.backend = Refusing(Resources(cpus=4, memory_bytes=2**34))
    world.restart()
    job = world.submit(1)
    world.run(6)
    assert world.state(job) is JobState.FAILED
    assert "Invalid partition" in world.jobs.get(job.id).error


def test_a_job_that_named_the_cluster_which_refuses_it_fails(tmp_path: Path) -> None:
    world = TwoClusters(tmp_path, Refusing(None))
    job = submitted_to(world, "hpc")
    world.run(3)
    assert world.state(job) is JobState.FAILED


def test_a_job_waits_in_another_queue_no_longer_than_in_ours(world: TwoClusters, hpc: FakeBackend) -> None:
    job = world.submit(1)
    world.run(3)
    world.now += timedelta(hours=2)
    world.run(3)
    assert world.state(job) is JobState.SCHEDULE_TIMEOUT
    assert hpc.waits in world.jobs.get(job.id).error


def test_a_killed_job_that_waits_there_is_stopped_there(world: TwoClusters, hpc: FakeBackend) -> None:
    job = world.submit(1)
    world.run(3)
    move = lifecycle.kill(world.jobs.get(job.id), world.now, by="ann")
    assert move is not None
    world.jobs.move(world.jobs.get(job.id), move)
    world.run(2)
    assert world.state(job) is JobState.KILLED
    assert hpc.held == {}


def submitted_to(world: World, cluster: str) -> Job:
    roles = (RoleSpec(name="trainer", count=1, command="x", resources=Resources(cpus=1)),)
    spec = JobSpec(roles=roles, cluster=cluster, wall_time_seconds=600)
    return world.jobs.add(Job(id=f"job-{7:032x}", user="ann", spec=spec, created_at=world.now), group="g")
