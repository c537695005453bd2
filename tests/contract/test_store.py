"""The contract of the store for jobs: records, lists, moves and their history, the same on every database."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta, timezone
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import FINAL, HELD, LIVE, MOVES, JobState
from paddlecloud.model.task import TaskState
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Idempotency, Jobs
from paddlecloud.store.live import LiveJobs
from paddlecloud.store.schema import jobs as job_table
from tests.contract.records import NOW, PLACEMENT, a_job, a_move, a_report, a_task, added, brought_to

T = TypeVar("T")
S = JobState


def test_a_job_comes_back_as_it_was_put_in(jobs: Jobs) -> None:
    job = a_job()
    assert jobs.add(job, group="group") == job
    assert jobs.get(job.id) == job


def test_a_time_of_another_zone_is_the_same_moment_after_storing(jobs: Jobs) -> None:
    job = replace(a_job(), created_at=NOW.astimezone(timezone(timedelta(hours=8))))
    jobs.add(job, group="group")
    assert jobs.get(job.id).created_at == NOW
    assert jobs.get(job.id).created_at.utcoffset() == timedelta(0)


def test_an_unknown_job_is_not_found(jobs: Jobs) -> None:
    with pytest.raises(NotFoundError, match="job-nobody"):
        jobs.get("job-nobody")


def test_the_same_id_cannot_be_added_twice(jobs: Jobs) -> None:
    job = added(jobs)
    with pytest.raises(ConflictError, match="exists already"):
        jobs.add(job, group="group")
    assert len(jobs.history(job.id)) == 1


def test_the_same_key_and_body_is_the_same_job(jobs: Jobs) -> None:
    once = Idempotency(key="k", body_hash="h")
    first = jobs.add(a_job(), group="group", idempotency=once)
    assert jobs.add(a_job(), group="group", idempotency=once) == first
    assert jobs.list().items == (first,)
    assert jobs.last_event() == 1


def test_the_same_key_with_another_body_is_a_conflict(jobs: Jobs) -> None:
    first = jobs.add(a_job(), group="group", idempotency=Idempotency(key="k", body_hash="h"))
    with pytest.raises(ConflictError, match=first.id):
        jobs.add(a_job(), group="group", idempotency=Idempotency(key="k", body_hash="other"))
    assert jobs.list().items == (first,)


def test_a_key_is_its_users_own(jobs: Jobs) -> None:
    once = Idempotency(key="k", body_hash="h")
    first = jobs.add(a_job("ann"), group="group", idempotency=once)
    assert jobs.add(a_job("bob"), group="group", idempotency=once) != first


def test_one_key_sent_by_many_threads_at_once_makes_one_job(jobs: Jobs) -> None:
    once = Idempotency(key="k", body_hash="h")
    made = _at_once(8, lambda: jobs.add(a_job(), group="group", idempotency=once))
    assert len({job.id for job in made}) == 1
    assert jobs.list().items == (made[0],)


def test_lists_are_newest_first_and_page_by_cursor(jobs: Jobs) -> None:
    made = [added(jobs) for _ in range(7)]
    first = jobs.list(limit=3)
    second = jobs.list(limit=3, cursor=first.next_cursor)
    added(jobs)
    third = jobs.list(limit=3, cursor=second.next_cursor)
    assert [*first.items, *second.items, *third.items] == made[::-1]
    assert third.next_cursor is None


def test_a_page_that_just_fits_has_no_next_one(jobs: Jobs) -> None:
    added(jobs)
    assert jobs.list(limit=1).next_cursor is None


def test_a_list_takes_a_user_states_and_an_exact_name(jobs: Jobs) -> None:
    running = brought_to(jobs, S.RUNNING)
    waiting = added(jobs, name="fit")
    other = added(jobs, "bob", name="fit")
    assert jobs.list(user="ann").items == (waiting, running)
    assert jobs.list(states=[S.RUNNING, S.KILLING]).items == (running,)
    assert jobs.list(states=[]).items == ()
    assert jobs.list(name="fit").items == (other, waiting)
    assert jobs.list(name="fi").items == jobs.list(name="FIT").items == jobs.list(name="f%").items == ()
    assert jobs.list(user="ann", name="fit", states=[S.SUBMIT]).items == (waiting,)


@pytest.mark.parametrize("cursor", ["", "garbled", "é", "YWZ0ZXI6MQ", "YmVmb3JlOi0x", "YmVmb3JlOjE=x", "a b", "\0"])
def test_a_garbled_cursor_is_refused(jobs: Jobs, cursor: str) -> None:
    with pytest.raises(InvalidError, match="cursor") as refused:
        jobs.list(cursor=cursor)
    assert refused.value.field == "cursor"


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_of_no_sensible_size_is_refused(jobs: Jobs, limit: int) -> None:
    with pytest.raises(InvalidError) as refused:
        jobs.list(limit=limit)
    assert refused.value.field == "limit"


def test_live_jobs_are_all_that_are_not_final_oldest_first(jobs: Jobs) -> None:
    made = [brought_to(jobs, state) for state in (S.SUBMIT, S.SUCCESS, S.RUNNING, S.KILLED, S.QUEUE, S.KILLING)]
    assert jobs.live() == [job for job in made if not job.state.final]


def test_live_jobs_are_seen_as_they_are_now_by_whoever_changed_them(jobs: Jobs, database: Database) -> None:
    waiting = brought_to(jobs, S.QUEUE)
    assert jobs.live() == [waiting]
    jobs.say_why({waiting.id: "the cluster is full"})
    assert [job.queue_reason for job in jobs.live()] == ["the cluster is full"]
    elsewhere = Jobs(database)
    placed = elsewhere.move(waiting, a_move(S.SCHEDULE))
    assert jobs.live() == [placed]
    placed = elsewhere.move(placed, a_move(S.RUNNING))
    assert jobs.live() == [placed]
    later = added(elsewhere)
    elsewhere.move(placed, a_move(S.FAILED))
    assert jobs.live() == [later]


def test_live_jobs_are_seen_as_they_are_now_while_many_change_them(jobs: Jobs) -> None:
    made = [added(jobs) for _ in range(8)]
    workers = itertools.count()

    def walk() -> None:
        job = made[next(workers)]
        for step in (S.QUEUE, S.SCHEDULE, S.RUNNING, S.QUEUE, S.SCHEDULE, S.RUNNING):
            job = jobs.move(job, a_move(step))
            assert job in jobs.live()
        jobs.move(job, a_move(S.SUCCESS))
        assert job.id not in {one.id for one in jobs.live()}

    _at_once(8, walk)
    assert jobs.live() == []


def test_what_is_told_late_of_live_jobs_undoes_nothing(jobs: Jobs, database: Database) -> None:
    live = LiveJobs(database)
    submitted, ended = added(jobs), added(jobs)
    assert live.list() == [submitted, ended]
    queued = jobs.move(submitted, a_move(S.QUEUE))
    jobs.move(ended, a_move(S.KILLED))
    assert live.list() == [queued]
    live.moved([submitted, ended])
    assert live.list() == [queued]


def test_many_live_jobs_are_read_in_pieces_and_in_order(jobs: Jobs) -> None:
    made = [added(jobs) for _ in range(1001)]
    assert jobs.live() == made


def test_a_history_is_in_order_though_an_end_was_before_the_stop(jobs: Jobs) -> None:
    killing = brought_to(jobs, S.KILLING)
    ended = jobs.move(killing, a_move(S.FAILED, 2.5))
    times = [line.at for line in jobs.history(ended.id)]
    assert times == sorted(times)
    assert ended.finished_at is not None
    assert ended.finished_at < times[-1], "when it ended is kept as it was"


def test_a_move_writes_the_record_and_its_history(jobs: Jobs) -> None:
    job = added(jobs)
    placed = jobs.move(job, a_move(S.SCHEDULE, minutes=1, why="placed on local"))
    assert jobs.get(job.id) == placed
    assert (placed.state, placed.version, placed.attempt, placed.placement) == (S.SCHEDULE, 1, 1, PLACEMENT)
    first, last = jobs.history(job.id)
    assert (first.from_state, first.to_state, first.at, first.attempt) == (None, S.SUBMIT, NOW, 0)
    assert (last.from_state, last.to_state, last.at, last.attempt) == (
        S.SUBMIT,
        S.SCHEDULE,
        NOW + timedelta(minutes=1),
        1,
    )
    assert (last.job, last.user, last.why) == (job.id, "ann", "placed on local")


def test_a_move_outside_the_table_is_refused_and_leaves_no_trace(jobs: Jobs) -> None:
    job, other = added(jobs), added(jobs)
    with pytest.raises(ConflictError, match="from submit to success"):
        jobs.move(job, a_move(S.SUCCESS))
    with pytest.raises(ConflictError):
        jobs.move_all([(other, a_move(S.QUEUE)), (job, a_move(S.RUNNING))])
    assert jobs.live() == [job, other]
    assert jobs.last_event() == 2


def test_a_move_of_a_record_that_has_changed_meanwhile_is_refused(jobs: Jobs) -> None:
    stale = added(jobs)
    jobs.move(stale, a_move(S.KILLED))
    with pytest.raises(ConflictError, match="now in killed"):
        jobs.move(stale, a_move(S.SCHEDULE))
    assert jobs.get(stale.id).state is S.KILLED
    assert len(jobs.history(stale.id)) == 2


def test_a_move_of_an_unknown_job_is_not_found(jobs: Jobs) -> None:
    with pytest.raises(NotFoundError):
        jobs.move(a_job(), a_move(S.QUEUE))


def test_a_batch_leaves_out_the_jobs_that_have_changed_meanwhile(jobs: Jobs) -> None:
    first, stale, last = added(jobs), added(jobs), added(jobs)
    killed = jobs.move(stale, a_move(S.KILLED))
    unknown = a_job()
    moved = jobs.move_all([(job, a_move(S.QUEUE)) for job in (first, stale, unknown, last)])
    assert [job.id for job in moved] == [first.id, last.id]
    assert jobs.live() == moved
    assert jobs.get(stale.id) == killed


def test_a_job_twice_in_a_batch_moves_once_unless_one_move_follows_the_other(jobs: Jobs) -> None:
    job = added(jobs)
    queued = jobs.move_all([(job, a_move(S.QUEUE)), (job, a_move(S.KILLED))])
    assert [moved.state for moved in queued] == [S.QUEUE]
    placed = replace(queued[0], version=2, state=S.SCHEDULE, attempt=1, placement=PLACEMENT, queue_reason="")
    both = jobs.move_all([(queued[0], a_move(S.SCHEDULE)), (placed, a_move(S.RUNNING))])
    assert [moved.state for moved in both] == [S.SCHEDULE, S.RUNNING]
    assert jobs.get(job.id) == both[1]


def test_of_many_moves_of_one_record_at_once_one_happens(jobs: Jobs) -> None:
    job = added(jobs)

    def move() -> Job | None:
        try:
            return jobs.move(job, a_move(S.SCHEDULE))
        except ConflictError:
            return None

    assert len([moved for moved in _at_once(8, move) if moved]) == 1
    assert jobs.get(job.id).attempt == 1
    assert len(jobs.history(job.id)) == 2


def test_an_empty_batch_is_nothing(jobs: Jobs) -> None:
    assert jobs.move_all([]) == jobs.advance([added(jobs)], lambda _: None, {}) == []


def test_a_job_is_advanced_as_far_as_it_goes_with_a_line_of_history_for_each_move(jobs: Jobs) -> None:
    placed, stale = brought_to(jobs, S.SCHEDULE), brought_to(jobs, S.SCHEDULE)
    killing = jobs.move(stale, a_move(S.KILLING))
    way = {S.SCHEDULE: S.RUNNING, S.RUNNING: S.SUCCESS}
    report = a_report(a_task(state=TaskState.SUCCEEDED, exit_code=0))

    def next_move(job: Job) -> Move | None:
        return a_move(way[job.state]) if job.state in way else None

    moved = jobs.advance([placed, stale], next_move, {placed.handle: report})
    assert [(job.id, job.state) for job in moved] == [(placed.id, S.RUNNING), (placed.id, S.SUCCESS)]
    assert [line.to_state for line in jobs.history(placed.id)] == [S.SUBMIT, S.SCHEDULE, S.RUNNING, S.SUCCESS]
    assert jobs.get(placed.id) == moved[-1]
    assert jobs.tasks(placed.id) == list(report.tasks)
    assert jobs.get(stale.id) == killing


def test_a_job_that_would_be_advanced_outside_the_table_leaves_no_trace(jobs: Jobs) -> None:
    placed = brought_to(jobs, S.SCHEDULE)
    moves = iter([a_move(S.RUNNING), a_move(S.SCHEDULE)])
    with pytest.raises(ConflictError, match="from running to schedule"):
        jobs.advance([placed], lambda _: next(moves), {placed.handle: a_report(a_task())})
    assert jobs.get(placed.id) == placed
    assert jobs.tasks(placed.id) == []


def test_an_ended_job_keeps_how_long_its_last_attempt_ran(jobs: Jobs, database: Database) -> None:
    def duration(job: Job) -> float | None:
        with database.read() as connection:
            row = connection.execute(job_table.select().where(job_table.c.id == job.id)).one()
        assert row.group_hash == "group"
        return row.duration_seconds  # type: ignore[no-any-return]

    running = brought_to(jobs, S.RUNNING)
    again = jobs.move(jobs.move(running, a_move(S.QUEUE, 5)), a_move(S.SCHEDULE, 6))
    again = jobs.move(again, a_move(S.RUNNING, 7))
    assert duration(again) is None
    assert duration(jobs.move(again, a_move(S.SUCCESS, 10))) == 180
    assert duration(brought_to(jobs, S.KILLED)) is None


def test_why_a_job_waits_is_told_without_a_move(jobs: Jobs) -> None:
    waiting, new, running = (brought_to(jobs, state) for state in (S.QUEUE, S.SUBMIT, S.RUNNING))
    before = jobs.last_event()
    jobs.say_why({waiting.id: "2 of 2 CPUs are taken", new.id: "after it", running.id: "no", "job-unknown": "no"})
    assert jobs.get(waiting.id) == replace(waiting, queue_reason="2 of 2 CPUs are taken")
    assert jobs.get(new.id) == replace(new, queue_reason="after it")
    assert jobs.get(running.id) == running
    assert jobs.last_event() == before
    jobs.move(waiting, a_move(S.SCHEDULE))


def test_a_job_that_is_placed_while_its_reason_is_told_keeps_none(jobs: Jobs, database: Database) -> None:
    waiting = brought_to(jobs, S.QUEUE)

    assert jobs.live() == [waiting]
    placed = Jobs(database).move(waiting, a_move(S.SCHEDULE))
    jobs.say_why({waiting.id: "too late"})
    assert jobs.live() == [jobs.get(waiting.id)] == [placed]


def test_events_are_read_on_from_a_number_for_all_or_one_user(jobs: Jobs) -> None:
    assert jobs.last_event() == 0
    ann = brought_to(jobs, S.QUEUE)
    bob = added(jobs, "bob")
    seen = jobs.events(after=0, user=None)
    assert [(event.job, event.to_state) for event in seen] == [
        (ann.id, S.SUBMIT),
        (ann.id, S.QUEUE),
        (bob.id, S.SUBMIT),
    ]
    assert jobs.events(after=seen[0].seq, user="ann") == [seen[1]]
    assert jobs.events(after=seen[0].seq, user=None, limit=1) == [seen[1]]
    assert jobs.events(after=jobs.last_event(), user=None) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(walk=st.lists(st.tuples(st.sampled_from(S), st.integers(0, 3), st.booleans()), max_size=14))
def test_however_a_job_is_moved_its_history_tells_its_state(jobs: Jobs, walk: list[tuple[S, int, bool]]) -> None:
    records = [added(jobs)]
    for to, age, in_batch in walk:
        now = records[-1]
        before = records[max(0, len(records) - 1 - age)]
        good = to in MOVES[before.state] and before is now
        try:
            moved = jobs.move_all([(before, a_move(to))]) if in_batch else [jobs.move(before, a_move(to))]
        except ConflictError:
            moved = []
        assert bool(moved) is good
        records += moved
    _history_agrees(jobs, jobs.get(records[-1].id))
    assert jobs.get(records[-1].id) == records[-1]


def _history_agrees(jobs: Jobs, job: Job) -> None:
    told = jobs.history(job.id)
    assert job.version == len(told) - 1
    assert told[0].from_state is None
    assert all(later.from_state is earlier.to_state for earlier, later in pairwise(told))
    assert told[-1].to_state is job.state
    assert job.attempt == sum(line.to_state is S.SCHEDULE for line in told)
    assert [line.seq for line in told] == sorted(line.seq for line in told)
    assert (job in jobs.live()) is (job.state in LIVE)
    assert (job.finished_at is not None) is (job.state in FINAL)
    assert job.state not in HELD or job.handle in {held.handle for held in jobs.held()}


def _at_once(count: int, act: Callable[[], T]) -> list[T]:
    together = threading.Barrier(count)

    def one(_: int) -> T:
        together.wait()
        return act()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))
