"""The collection: what may go goes, whatever moment it is killed at, and nothing of a live job ever does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from paddlecloud.model.audit import Action
from paddlecloud.model.errors import FullError, NotFoundError
from paddlecloud.model.kept import Kept
from paddlecloud.model.retention import Going, Item, Rule
from paddlecloud.model.space import Collected
from paddlecloud.model.state import JobState
from paddlecloud.server.audit import HERE
from paddlecloud.server.collectors import Uploads
from paddlecloud.server.pace import Pace, TimeUpError
from paddlecloud.server.retention import Retention
from paddlecloud.store.retention import Forgetting
from tests.unit.server.house import House, opened

S = JobState
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
BOTH = ["log/trainer-0.log", "rank-0/model"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path / "data") as made:
        yield made


def test_with_no_limits_nothing_ever_goes(house: House) -> None:
    job, tree = house.ended(), house.uploaded(b"x")
    house.later(days=10_000)
    assert house.keeping().retention.run(house.now).collected == ()
    assert house.has(job) == BOTH
    assert house.trees() == {tree}


def test_results_go_after_their_time_and_logs_and_the_record_stay(house: House) -> None:
    old = house.ended()
    house.later(days=2)
    young = house.ended()
    house.later(days=29)
    keeping = house.keeping(results=30 * DAY)
    (went,) = keeping.retention.run(house.now).collected
    assert (went.kind, went.by, went.count, went.used.files) == (Kept.RESULTS, "retention.results = 30 days", 1, 1)
    assert house.has(old) == ["log/trainer-0.log"]
    assert house.has(young) == BOTH
    assert house.jobs.get(old.id) == old
    assert [(one.kind, one.at) for one in keeping.remains.removed(old.id)] == [(Kept.RESULTS, house.now)]


def test_logs_go_after_their_time_with_their_marks(house: House) -> None:
    job = house.ended()
    house.later(days=1)
    house.keeping(logs=DAY).retention.run(house.now)
    assert house.has(job) == ["rank-0/model"]
    assert os.listdir(house.folder.marks) == []


@pytest.mark.parametrize("path", [(), (S.QUEUE,), (S.SCHEDULE,), (S.SCHEDULE, S.RUNNING), (S.SCHEDULE, S.KILLING)])
def test_nothing_of_a_live_job_goes(house: House, path: Sequence[JobState]) -> None:
    tree = house.uploaded(b"x")
    job = house.brought(*path, tree=tree)
    house.later(days=10_000)
    keeping = house.keeping(jobs=SECOND, results=SECOND, logs=SECOND, uploads=SECOND, results_size=0, uploads_size=0)
    assert keeping.retention.run(house.now).collected == ()
    assert house.has(job) == BOTH
    assert house.trees() == {tree}
    assert house.jobs.get(job.id) == job


def test_nothing_goes_of_a_job_that_its_backend_may_still_hold(house: House) -> None:
    job = house.brought(S.SCHEDULE, S.RUNNING, S.SUCCESS)
    house.later(days=10)
    keeping = house.keeping(jobs=SECOND, results=SECOND, logs=SECOND)
    assert keeping.retention.run(house.now).collected == ()
    assert house.has(job) == BOTH
    house.jobs.cleaned([job.handle])
    assert keeping.retention.run(house.now).collected != ()
    assert house.has(job) == []


def test_above_the_size_the_results_of_the_jobs_that_ended_first_go(house: House) -> None:
    jobs = []
    for _ in range(4):
        jobs.append(house.ended(size=2**20))
        house.later(seconds=1)
    (went,) = house.keeping(results_size=2 * 2**20 + 50_000).retention.run(house.now).collected
    assert went.by == "retention.results_size = 2.0 MiB"
    assert [house.has(job) for job in jobs] == [["log/trainer-0.log"]] * 2 + [BOTH] * 2


def test_a_job_goes_as_a_whole(house: House) -> None:
    job = house.ended()
    house.later(days=30)
    (went,) = house.keeping(jobs=30 * DAY, results=30 * DAY).retention.run(house.now).collected
    assert (went.kind, went.count, went.used.files) == (Kept.JOBS, 1, 3)
    with pytest.raises(NotFoundError):
        house.jobs.get(job.id)
    assert os.listdir(house.folder.results / "ann") == os.listdir(house.folder.marks) == []


def test_a_job_that_ended_today_or_yesterday_is_not_forgotten_whatever_the_setting(house: House) -> None:
    """The minutes of the day that its user has had are counted from its attempts."""
    job = house.ended()
    keeping = house.keeping(jobs=SECOND)
    house.later(days=1.9)
    assert keeping.retention.run(house.now).collected == ()
    house.later(days=0.1)
    assert [one.count for one in keeping.retention.run(house.now).collected] == [1]
    assert keeping.remains.owned([job.id]) == {}


def test_a_dry_run_takes_nothing_and_says_what_a_run_would_take(house: House) -> None:
    for _ in range(3):
        house.ended()
    tree = house.uploaded(b"x")
    house.later(days=40)
    young = house.ended()
    house.later(days=1)
    keeping = house.keeping(jobs=30 * DAY, results=DAY, logs=DAY, uploads=30 * DAY)
    would = keeping.retention.run(house.now, dry_run=True)
    assert house.has(young) == BOTH
    assert house.trees() == {tree}
    assert keeping.retention.run(house.now).collected == would.collected
    assert {one.kind: one.count for one in would.collected} == {
        Kept.JOBS: 3,
        Kept.RESULTS: 1,
        Kept.LOGS: 1,
        Kept.UPLOADS: 1,
    }
    assert house.has(young) == []


def test_what_went_is_on_the_audit_record(house: House) -> None:
    house.ended()
    house.later(days=1)
    house.keeping(results=DAY).retention.run(house.now, user="root-of-all")
    (entry,) = house.audit.list(user=None, action="retention", since=None, cursor=None, limit=10).items
    assert (entry.action, entry.user, entry.target) == (Action.RETENTION, "root-of-all", "1 results")
    assert "retention.results = 24 h" in entry.detail


def test_the_audit_record_itself_is_kept_by_age(house: House) -> None:
    for _ in range(1100):
        house.audit.record(Action.JOB_KILL, HERE, target="long ago")
    house.later(days=366)
    house.audit.record(Action.JOB_KILL, HERE, target="now")
    keeping = house.keeping(audit=365 * DAY)
    assert keeping.retention.run(house.now, dry_run=True).collected[0].count == 1100
    (went,) = keeping.retention.run(house.now).collected
    assert went == Collected(kind=Kept.AUDIT, by="retention.audit = 365 days", count=1100)
    left = house.audit.list(user=None, action=None, since=None, cursor=None, limit=10).items
    assert [entry.target for entry in left] == ["1100 audit", "now"]


class Dying(Pace):
    """Dies at the step of this number, as kill -9 would have it: nothing that would follow is done."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._left = at

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Killed

    def rest(self) -> None:
        self()


class Killed(BaseException):
    pass


def test_a_collection_that_is_killed_at_any_step_leaves_what_the_next_one_finishes(tmp_path: Path) -> None:
    died = 0
    for step in range(1, 1000):
        with opened(tmp_path / str(step), pace=Dying(step)) as house:
            forgotten, tree = house.ended(), house.uploaded(b"x")
            house.later(days=40)
            job, live = house.ended(), house.brought(S.SCHEDULE, S.RUNNING)
            house.later(days=1)
            try:
                house.keeping(jobs=30 * DAY, results=DAY, logs=DAY, uploads=DAY).retention.run(house.now)
            except Killed:
                died += 1
            told_and_there(house, job.id)
            if house.keeping().remains.owned([forgotten.id]):
                told_and_there(house, forgotten.id)
            house.pace = Pace()
            house.keeping(jobs=30 * DAY, results=DAY, logs=DAY, uploads=DAY).retention.run(house.now)
            assert house.keeping().remains.owned([forgotten.id, job.id, live.id]).keys() == {job.id, live.id}
            assert sorted(os.listdir(house.folder.results / "ann")) == [live.id]
            assert sorted(os.listdir(house.folder.marks)) == [live.id]
            assert os.listdir(house.folder.files / "ann/trees") == []
            assert tree not in house.trees()
            assert house.keeping().remains.used().keys() == set()
        if step > died:
            break
    assert died > 20


def told_and_there(house: House, job: str) -> None:
    """What is not told of as removed is there."""
    removed = {one.kind for one in house.keeping().remains.removed(job)}
    there = {path.split("/")[0] for path in house.has(house.jobs.get(job))}
    assert Kept.RESULTS in removed or "rank-0" in there
    assert Kept.LOGS in removed or "log" in there


class Refusing(Pace):
    """A disk that refuses something once."""

    refused = False

    def __call__(self) -> None:
        if not self.refused:
            self.refused = True
            raise OSError("busy")


def test_what_cannot_be_removed_keeps_nothing_else_from_going_and_is_tried_again(house: House) -> None:
    first = house.ended()
    house.later(seconds=1)
    second = house.ended()
    house.later(days=1)
    house.keeping().retention.run(house.now)
    house.pace = Refusing()
    keeping = house.keeping(results=DAY)
    (went,) = keeping.retention.run(house.now).collected
    assert went.count == 1
    assert [house.has(first), house.has(second)] == [BOTH, ["log/trainer-0.log"]]
    assert keeping.remains.removed(first.id) != []
    keeping.retention.run(house.now)
    assert house.has(first) == ["log/trainer-0.log"]
    assert keeping.remains.leaving(Kept.RESULTS) == {}


class OnFullDisk:
    """What cannot be recorded as leaving."""

    def going(self, rule: Rule, now: datetime) -> Iterator[Going]:
        yield Going(Item(name="x", since=now), "why")

    def remove(self, going: Sequence[Going], now: datetime) -> Sequence[Going]:
        raise FullError("no space left")

    def finish(self) -> None:
        raise FullError("no space left")


def test_uploads_make_room_where_nothing_can_be_recorded(house: House) -> None:
    house.uploaded(b"x")
    house.later(days=2)
    keeping = house.keeping()
    retention = Retention(
        rules={Kept.RESULTS: Rule(kind=Kept.RESULTS, age=DAY), Kept.UPLOADS: Rule(kind=Kept.UPLOADS, age=DAY)},
        collectors={
            Kept.RESULTS: OnFullDisk(),
            Kept.UPLOADS: Uploads(house.uploads.trees, Forgetting(house.database), house.pace),
        },
        remains=keeping.remains,
        files=keeping.retention._files,
        audit=house.audit,
        pace=house.pace,
    )
    assert [one.kind for one in retention.run(house.now).collected] == [Kept.UPLOADS]
    assert house.trees() == set()


def test_a_collection_ends_with_its_time_and_with_the_server(house: House) -> None:
    house.ended()
    house.later(days=1)
    keeping = house.keeping(results=DAY)
    assert keeping.retention.run(house.now, seconds=0.0).more
    house.pace.stop()
    assert keeping.retention.run(house.now).more
    with pytest.raises(TimeUpError):
        keeping.space.count()


def test_one_piece_of_long_work_is_done_at_a_time(house: House) -> None:
    keeping = house.keeping()
    with house.pace.within(None):
        assert keeping.retention.run(house.now, seconds=0.01).more
    assert not keeping.retention.run(house.now, seconds=5).more
