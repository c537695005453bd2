"""A job whose files are not here yet: it waits with the reason, holds nobody up, and starts in the tree it is given."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.backends.base import RefusedError
from paddlecloud.model import paths
from paddlecloud.model.bos import StorageKeyRequest
from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec
from paddlecloud.model.state import JobState
from paddlecloud.model.user import Role
from paddlecloud.scheduler.plan import forecast
from paddlecloud.scheduler.round import Folders, Limits, Round
from paddlecloud.store.buckets import Buckets
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.unit.scheduler.test_round import NOW, World


class Waiting(World):
    """A world in which the files of jobs come when a test says so."""

    why = "fetching 1.0 GiB of 2.0 GiB"
    refusal = ""

    def restart(self) -> None:
        self.round = Round(
            jobs=self.jobs,
            quotas=lambda now, users: self.quotas,
            clusters={"local": self.backend},
            default=("local",),
            folders=Folders(lambda user, tree: self.folder, lambda job: self.folder, brought=self.brought),
            limits=Limits(schedule=timedelta(hours=2), attempts=3),
            ready=lambda job: self.why,
        )

    def brought(self, job: Job) -> Path:
        if self.refusal:
            raise RefusedError(self.refusal)
        return self.folder / job.id

    def submit_own(self, trainers: int = 1) -> Job:
        cipher = Cipher(self.folder / "key")
        Users(self.database, cipher).add("ann", Role.USER, None, NOW)
        asked = StorageKeyRequest(url="lab.bj.bcebos.com", key_id="ak", secret="sk")
        Buckets(self.database, cipher).add_key("ann", "key-1", asked, NOW)
        role = RoleSpec(name="trainer", count=trainers, command="x", resources=Resources(cpus=1))
        spec = JobSpec(roles=(role,), public_bos=False, bos_url=asked.url, storage_key="key-1")
        job = Job(id=paths.job_id(bytes(16)), user="ann", spec=spec, created_at=self.now)
        return self.jobs.add(job, group="g")


@pytest.fixture
def world(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


def test_it_waits_with_the_reason_and_holds_nobody_up(world: Waiting) -> None:
    own = world.submit_own(trainers=4)
    world.run(2)
    later = world.submit(2)
    world.run(2)
    assert world.state(own) is JobState.QUEUE
    assert world.jobs.get(own.id).queue_reason == world.why
    assert world.state(later) is JobState.RUNNING
    assert own.id not in forecast(world.round.snapshot(world.now))
    world.why = "fetching 1.5 GiB of 2.0 GiB"
    world.run()
    assert world.jobs.get(own.id).queue_reason == world.why


def test_it_starts_in_the_tree_that_was_brought(world: Waiting) -> None:
    own = world.submit_own()
    world.run()
    world.why = ""
    world.run(2)
    assert world.state(own) is JobState.RUNNING
    assert [launch.tree for launch in world.backend.launches if launch.job == own.id] == [world.folder / own.id]


def test_what_will_never_be_here_fails_it_at_its_start(world: Waiting) -> None:
    own = world.submit_own()
    world.why, world.refusal = "", "there are no files in lab.bj.bcebos.com"
    world.run(2)
    assert world.state(own) is JobState.FAILED
    assert world.refusal in world.jobs.get(own.id).error
