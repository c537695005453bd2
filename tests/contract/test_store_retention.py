"""The contract of the store for what is let go: what jobs left is told of, and a job is forgotten whole or not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import func, select

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.model.kept import Kept, Removed
from paddlecloud.model.retention import Going, Item, TreeUse
from paddlecloud.model.space import Used
from paddlecloud.model.state import LIVE, JobState
from paddlecloud.store import schema
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Idempotency, Jobs
from paddlecloud.store.remains import PAGE, Owned, Remains
from paddlecloud.store.retention import Forgetting
from tests.contract.records import NOW, WAY_TO, a_job, a_move, a_report, a_task, added, brought_to

S = JobState
TREE, OTHER_TREE = "1" * 64, "2" * 64
LEFT = {Kept.RESULTS: Used(size_bytes=1000, files=2), Kept.LOGS: Used(size_bytes=10, files=1)}


@pytest.fixture
def remains(database: Database) -> Remains:
    return Remains(database)


@pytest.fixture
def records(database: Database) -> Forgetting:
    return Forgetting(database)


def ended(jobs: Jobs, user: str = "ann", minutes: float = 3) -> Job:
    """A job that has succeeded, and of which its backend has nothing any more."""
    job = jobs.add(a_job(user), group="group", idempotency=Idempotency(key=f"key-{minutes}", body_hash="h"))
    for step in (S.SCHEDULE, S.RUNNING):
        job = jobs.move(job, a_move(step, 1))
    jobs.record_tasks({job.handle: a_report(a_task())})
    job = jobs.move(job, a_move(S.SUCCESS, minutes))
    jobs.cleaned([job.handle])
    return job


def measured(jobs: Jobs, remains: Remains, user: str = "ann", minutes: float = 3) -> Job:
    job = ended(jobs, user, minutes)
    remains.measure([(one, LEFT) for one in remains.unmeasured() if one.job == job.id])
    return job


def going(*jobs: Job, why: str = "retention.results = 1 s") -> list[Going]:
    return [Going(Item(name=job.id, since=NOW), why) for job in jobs]


def rows(database: Database) -> dict[str, int]:
    tables = (schema.jobs, schema.history, schema.attempts, schema.tasks, schema.idempotency, schema.remains)
    with database.read() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables
        }


@pytest.mark.parametrize("state", sorted(LIVE & WAY_TO.keys()))
def test_what_a_live_job_has_is_not_measured(jobs: Jobs, remains: Remains, state: JobState) -> None:
    brought_to(jobs, state)
    assert remains.unmeasured() == []


def test_what_a_job_has_is_not_measured_while_its_backend_may_hold_something(jobs: Jobs, remains: Remains) -> None:
    job = brought_to(jobs, S.SUCCESS)
    assert remains.unmeasured() == []
    jobs.cleaned([job.handle])
    assert [one.job for one in remains.unmeasured()] == [job.id]


def test_a_job_that_was_never_placed_is_measured_too(jobs: Jobs, remains: Remains) -> None:
    job = brought_to(jobs, S.KILLED)
    (found,) = remains.unmeasured()
    assert (found.job, found.user, found.ended_at) == (job.id, "ann", job.finished_at)


def test_what_a_job_left_is_measured_once(jobs: Jobs, remains: Remains) -> None:
    job = measured(jobs, remains)
    assert remains.unmeasured() == []
    (found,) = remains.kept(Kept.RESULTS)
    assert found == Item(name=job.id, user="ann", since=NOW + timedelta(minutes=3), size_bytes=1000, files=2)
    assert remains.total_bytes(Kept.LOGS) == 10


def test_what_is_kept_comes_in_the_order_that_jobs_ended_in(jobs: Jobs, remains: Remains) -> None:
    found = {minutes: measured(jobs, remains, minutes=minutes).id for minutes in (7, 3, 5)}
    assert [item.name for item in remains.kept(Kept.LOGS)] == [found[3], found[5], found[7]]
    assert [item.name for item in remains.jobs()] == [found[3], found[5], found[7]]


def test_pages_are_whole_though_what_was_read_goes_meanwhile(jobs: Jobs, remains: Remains) -> None:
    count = 2 * PAGE + 3
    names = set()
    for _ in range(count):
        job = brought_to(jobs, S.KILLED)
        names.add(job.id)
    for _ in range(3):
        remains.measure([(one, LEFT) for one in remains.unmeasured()])
    seen = []
    for item in remains.kept(Kept.RESULTS):
        seen.append(item.name)
        remains.leave(Kept.RESULTS, [Going(item, "why")], NOW)
    assert len(seen) == count
    assert set(seen) == names


def test_what_leaves_is_told_of_before_it_is_gone(jobs: Jobs, remains: Remains) -> None:
    job, other = measured(jobs, remains), measured(jobs, remains, minutes=4)
    remains.leave(Kept.RESULTS, going(job), NOW)
    told = [Removed(kind=Kept.RESULTS, at=NOW, by="retention.results = 1 s")]
    assert remains.removed(job.id) == told
    assert remains.removed(other.id) == []
    assert remains.leaving(Kept.RESULTS) == {job.id: "ann"}
    assert remains.leaving(Kept.LOGS) == {}
    assert [item.name for item in remains.kept(Kept.RESULTS)] == [other.id]
    assert len(list(remains.kept(Kept.LOGS))) == 2

    remains.gone(Kept.RESULTS, [job.id])
    assert remains.leaving(Kept.RESULTS) == {}
    assert remains.removed(job.id) == told
    assert remains.total_bytes(Kept.RESULTS) == 1000


def test_what_never_was_is_not_told_of_as_removed(jobs: Jobs, remains: Remains) -> None:
    job = ended(jobs)
    remains.measure([(one, {Kept.RESULTS: Used(size_bytes=4096), Kept.LOGS: Used()}) for one in remains.unmeasured()])
    remains.leave(Kept.RESULTS, going(job), NOW)
    remains.gone(Kept.RESULTS, [job.id])
    assert remains.removed(job.id) == []


def test_what_left_first_tells_why(jobs: Jobs, remains: Remains) -> None:
    job = measured(jobs, remains)
    remains.leave(Kept.LOGS, going(job, why="first"), NOW)
    remains.leave(Kept.LOGS, going(job, why="second"), NOW + timedelta(days=1))
    assert remains.removed(job.id) == [Removed(kind=Kept.LOGS, at=NOW, by="first")]


def test_a_job_as_a_whole_has_what_is_there_of_all_its_kinds(jobs: Jobs, remains: Remains) -> None:
    job = measured(jobs, remains)
    assert [(item.name, item.size_bytes, item.files) for item in remains.jobs()] == [(job.id, 1010, 3)]
    remains.gone(Kept.RESULTS, [job.id])
    assert [(item.name, item.size_bytes, item.files) for item in remains.jobs()] == [(job.id, 10, 1)]
    remains.gone(Kept.LOGS, [job.id])
    assert [(item.name, item.size_bytes, item.files) for item in remains.jobs()] == [(job.id, 0, 0)]


def test_what_is_used_is_told_by_user(jobs: Jobs, remains: Remains) -> None:
    measured(jobs, remains, minutes=5)
    measured(jobs, remains, minutes=3)
    job = measured(jobs, remains, user="bob")
    remains.gone(Kept.LOGS, [job.id])
    assert remains.used() == {
        ("ann", Kept.RESULTS): (Used(size_bytes=2000, files=4), NOW + timedelta(minutes=3)),
        ("ann", Kept.LOGS): (Used(size_bytes=20, files=2), NOW + timedelta(minutes=3)),
        ("bob", Kept.RESULTS): (Used(size_bytes=1000, files=2), NOW + timedelta(minutes=3)),
    }


def test_a_job_is_forgotten_with_all_that_is_known_of_it(
    jobs: Jobs, remains: Remains, records: Forgetting, database: Database
) -> None:
    before = rows(database)
    job = measured(jobs, remains)
    assert all(count for count in rows(database).values())
    assert records.forget([job.id]) == 1
    assert rows(database) == before
    with pytest.raises(NotFoundError):
        jobs.get(job.id)


def test_forgetting_one_job_leaves_all_others_whole(
    jobs: Jobs, remains: Remains, records: Forgetting, database: Database
) -> None:
    kept = measured(jobs, remains)
    before = rows(database)
    records.forget([measured(jobs, remains, minutes=4).id])
    assert rows(database) == before
    assert jobs.get(kept.id) == kept
    assert jobs.tasks(kept.id)


@pytest.mark.parametrize("state", sorted(LIVE & WAY_TO.keys()))
def test_a_live_job_is_never_forgotten(jobs: Jobs, records: Forgetting, state: JobState) -> None:
    job = brought_to(jobs, state)
    assert records.forget([job.id]) == 0
    assert jobs.get(job.id) == job


def test_a_job_that_a_backend_may_hold_is_not_forgotten(jobs: Jobs, records: Forgetting) -> None:
    job = brought_to(jobs, S.SUCCESS)
    assert records.forget([job.id]) == 0
    jobs.cleaned([job.handle])
    assert records.forget([job.id, "job-nobody"]) == 1


def test_events_go_on_after_all_jobs_were_forgotten(jobs: Jobs, remains: Remains, records: Forgetting) -> None:
    job = measured(jobs, remains)
    last = jobs.last_event()
    records.forget([job.id])
    added(jobs)
    assert [moved.seq for moved in jobs.events(after=last, user=None)] == [last + 1]


def test_the_key_of_a_forgotten_job_is_free_again(jobs: Jobs, remains: Remains, records: Forgetting) -> None:
    job = measured(jobs, remains)
    once = Idempotency(key="key-3", body_hash="h")
    assert jobs.submitted("ann", once) == job
    records.forget([job.id])
    assert jobs.submitted("ann", once) is None


def test_a_tree_is_used_by_the_live_jobs_of_its_user(jobs: Jobs, records: Forgetting) -> None:
    added(jobs, "ann", tree=TREE)
    added(jobs, "bob", tree=OTHER_TREE)
    assert records.trees("ann", [TREE, OTHER_TREE]) == {TREE: TreeUse(live=True, submitted_at=NOW)}
    assert records.trees("bob", [TREE]) == {}
    assert records.trees("ann", []) == {}


def test_of_a_tree_it_is_known_when_its_last_jobs_were_submitted_and_ended(jobs: Jobs, records: Forgetting) -> None:
    for minutes in (9, 5):
        jobs.move(added(jobs, tree=TREE), a_move(S.KILLED, minutes))
    ended_at = NOW + timedelta(minutes=9)
    assert records.trees("ann", [TREE]) == {TREE: TreeUse(submitted_at=NOW, ended_at=ended_at)}
    added(jobs, tree=TREE)
    assert records.trees("ann", [TREE]) == {TREE: TreeUse(live=True, submitted_at=NOW, ended_at=ended_at)}


def test_a_folder_is_of_a_job_or_of_none(jobs: Jobs, remains: Remains) -> None:
    live, done = brought_to(jobs, S.RUNNING), measured(jobs, remains, "bob")
    assert remains.owned([live.id, done.id, "job-nobody", ".x"]) == {
        live.id: Owned(user="ann", started_at=live.started_at, measured=False, busy=True),
        done.id: Owned(user="bob", started_at=done.started_at, measured=True, busy=False, ended_at=done.finished_at),
    }


def test_what_two_measure_at_once_is_recorded_once(jobs: Jobs, remains: Remains) -> None:
    job = brought_to(jobs, S.SUCCESS)
    jobs.cleaned([job.handle])
    (ended,) = remains.unmeasured()
    remains.measure([(ended, {Kept.RESULTS: Used(size_bytes=5, files=1)})])
    remains.measure([(ended, {Kept.RESULTS: Used(size_bytes=9, files=1)})])
    assert remains.total_bytes(Kept.RESULTS) == 5


def test_the_first_job_is_the_oldest_record(jobs: Jobs, records: Forgetting) -> None:
    assert records.oldest_job() is None
    added(jobs)
    assert records.oldest_job() == NOW
