"""Results that the owner of an ended job lets go."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.kept import Kept, Removed
from paddlecloud.model.state import JobState
from paddlecloud.server.discards import Discards, open_discards
from tests.unit.server.house import House, opened

S = JobState
BOTH = ["log/trainer-0.log", "rank-0/model"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path / "data") as made:
        yield made


def discards(house: House) -> Discards:
    return open_discards(house.database, house.results, house.folder.marks, lambda: house.now)


@pytest.mark.parametrize("measured", [False, True])
def test_all_that_a_job_left_goes_and_it_is_told_who_let_it_go(house: House, measured: bool) -> None:
    job, other = house.ended(), house.ended()
    keeping = house.keeping()
    if measured:
        keeping.retention.measure()
    discards(house).discard("ann", job.id)
    assert (house.has(job), house.has(other)) == ([], BOTH)
    assert not (house.folder.results / "ann" / job.id).exists()
    assert os.listdir(house.folder.marks) == [other.id]
    by = [Removed(kind=kind, at=house.now, by="its owner ann") for kind in (Kept.RESULTS, Kept.LOGS)]
    assert keeping.remains.removed(job.id) == by
    assert by[0].sentence(job.id).endswith(f"were removed on {house.now:%Y-%m-%d} by its owner ann")
    keeping.retention.measure()
    assert keeping.remains.removed(other.id) == []


def test_what_is_gone_already_is_told_with_who_let_it_go(house: House) -> None:
    job = house.ended()
    discards(house).discard("ann", job.id)
    with pytest.raises(NotFoundError, match="the results of .* by its owner ann"):
        discards(house).discard("ann", job.id)


def test_what_retention_left_of_a_job_goes_too_and_each_says_its_own(house: House) -> None:
    job = house.ended()
    house.later(days=2)
    keeping = house.keeping(results=timedelta(days=1))
    keeping.retention.run(house.now)
    discards(house).discard("ann", job.id)
    assert [one.by for one in keeping.remains.removed(job.id)] == ["retention.results = 24 h", "its owner ann"]


@pytest.mark.parametrize("path", [(), (S.QUEUE,), (S.SCHEDULE,), (S.SCHEDULE, S.RUNNING), (S.SCHEDULE, S.KILLING)])
def test_nothing_of_a_live_job_goes(house: House, path: Sequence[JobState]) -> None:
    job = house.brought(*path)
    with pytest.raises(ConflictError, match=f"{job.id} has not ended"):
        discards(house).discard("ann", job.id)
    assert house.has(job) == BOTH


def test_what_a_backend_may_still_write_stays(house: House) -> None:
    job = house.brought(S.SCHEDULE, S.RUNNING, S.SUCCESS)
    with pytest.raises(ConflictError, match="still being cleaned up"):
        discards(house).discard("ann", job.id)
    assert house.has(job) == BOTH


@pytest.mark.parametrize("user", ["bob", ""])
def test_nobody_lets_the_results_of_another_go(house: House, user: str) -> None:
    job = house.ended()
    for name in (job.id, "job-nobody", "log"):
        with pytest.raises(NotFoundError, match="no job"):
            discards(house).discard(user, name)
    assert house.has(job) == BOTH


def test_what_a_crash_broke_off_the_next_collection_finishes(house: House) -> None:
    job = house.ended()
    discards(house).discard("ann", job.id)
    house.write(job, 4096)
    remains = house.keeping().remains
    with house.database.write() as connection:
        connection.exec_driver_sql("UPDATE remains SET stage = 'leaving'")
    house.keeping().retention.run(house.now)
    assert house.has(job) == []
    assert len(remains.removed(job.id)) == 2
