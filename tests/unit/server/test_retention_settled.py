"""A data folder of the version before: its results are where they belong once no task writes them, counted and kept
by the same rules meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.model import paths
from paddlecloud.model.job import Job
from paddlecloud.model.state import JobState
from paddlecloud.server import config
from paddlecloud.server.app import create, utc_now
from tests.contract.older import JOB, older
from tests.contract.records import a_move
from tests.fakes import FakeBackend
from tests.unit.server.house import House, opened
from tests.unit.server.running import MACHINE

S = JobState
BOTH = ["log/trainer-0.log", "rank-0/model"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path / "data") as made:
        yield made


def as_before(house: House, job: Job) -> Job:
    """Its results lie where the version before this one put them."""
    (house.folder.results / job.user / job.id).rename(house.folder.results / job.id)
    return job


def test_results_of_ended_jobs_move_at_once_and_of_others_when_they_are_done(house: House) -> None:
    done = as_before(house, house.ended())
    live = as_before(house, house.brought(S.SCHEDULE, S.RUNNING))
    held = as_before(house, house.brought(S.SCHEDULE, S.RUNNING, S.SUCCESS, user="bob"))
    keeping = house.keeping()
    keeping.settle()
    assert house.has(done) == BOTH
    assert house.has(live) == house.has(held) == []
    assert [entry.path for entry in house.results.list(live, "rank-0").items] == [f"output/{live.id}/rank-0/model"]
    assert {one.user: one.results.files for one in keeping.space.tell(None, users=True).users} == {"ann": 2, "bob": 1}
    assert "unknown" not in {share.kind for share in keeping.space.tell(None).shares}

    ended = house.jobs.move(live, a_move(S.SUCCESS))
    house.jobs.cleaned([ended.handle, held.handle])
    keeping.run()
    assert house.has(live) == house.has(held) == BOTH
    assert sorted(path.name for path in house.folder.results.iterdir()) == ["ann", "bob"]


def test_what_lies_as_before_is_measured_and_goes_by_its_age(house: House) -> None:
    live = as_before(house, house.brought(S.SCHEDULE, S.RUNNING))
    keeping = house.keeping(results=timedelta(days=1))
    keeping.settle()
    house.jobs.cleaned([house.jobs.move(live, a_move(S.SUCCESS)).handle])
    house.later(days=2)
    (went,) = keeping.retention.run(house.now).collected
    assert (went.count, went.used.files) == (1, 1)
    keeping.settle()
    assert house.has(live) == ["log/trainer-0.log"]


def test_results_that_no_record_knows_stay_until_one_does(house: House) -> None:
    unknown = house.folder.results / paths.job_id(bytes(16))
    (unknown / "rank-0").mkdir(parents=True)
    (unknown / "rank-0" / "model").write_bytes(bytes(5000))
    keeping = house.keeping()
    keeping.run()
    (share,) = (share for share in keeping.space.tell(None).shares if share.kind == "unknown")
    assert share.used.files == 1
    assert unknown.is_dir()


def test_results_in_the_folder_of_a_user_whose_they_are_not_are_unknown(house: House) -> None:
    job = house.ended("ann")
    (house.folder.results / "bob" / job.id).mkdir(parents=True)
    (house.folder.results / "bob" / job.id / "model").write_bytes(bytes(5000))
    (house.folder.results / "bob" / "notes").write_bytes(bytes(5000))
    told = {share.kind: share.used.files for share in house.keeping().space.tell(None).shares}
    assert (told["unknown"], told["results"]) == (2, 1)


def test_a_server_starts_with_a_data_folder_of_the_version_before(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    older(f"sqlite:///{data / 'paddlecloud.db'}", "0004", data / "key", state=S.FAILED)
    (data / "results" / JOB.id / "rank-0").mkdir(parents=True)
    (data / "results" / JOB.id / "rank-0" / "model").write_text("weights")
    settings = config.parse({"clusters": {"local": {"policy": "open"}}}, data=data)

    async def start_and_read() -> bytes:
        app = create(settings, utc_now, backends=lambda *_: {"local": FakeBackend(MACHINE, clock=utc_now)})
        async with app.router.lifespan_context(app):
            services = app.state.services
            with closing(services.transfers.open(services.records.get(JOB.id), "rank-0/model")) as found:
                return b"".join(found.pieces())

    for _ in range(2):
        assert asyncio.run(start_and_read()) == b"weights"
    assert (data / "results" / "ann" / JOB.id / "rank-0" / "model").read_text() == "weights"
    assert not (data / "results" / JOB.id).exists()
