"""The contract of the store for use: how long attempts ran in a span, on whatever day, and how many jobs wait."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paddlecloud.model.job import Job, Placement
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.scheduler.day import day_of
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.use import UseOfDay, UseRecords
from tests.contract.records import NOW, PLACEMENT, a_move, added, brought_to

MINUTE = timedelta(minutes=1)
DAY = (NOW, NOW + timedelta(days=1))
users_named = (f"user-{number}" for number in itertools.count())


@pytest.fixture
def use(database: Database) -> UseRecords:
    return UseRecords(database)


def ran(jobs: Jobs, user: str, spans: list[tuple[datetime, datetime]], cluster: str = "local") -> Job:
    """A job with one attempt for each of these spans, which all but the last lost their node."""
    job = added(jobs, user)
    for began, stopped in spans:
        placement = Placement(cluster=cluster, tasks=PLACEMENT.tasks)
        job = jobs.move(job, Move(to=JobState.SCHEDULE, at=began, why="placed", placement=placement))
        job = jobs.move(job, Move(to=JobState.RUNNING, at=began, why="started"))
        job = jobs.move(job, Move(to=JobState.QUEUE, at=stopped, why="lost", stop=StopReason.NODE_LOST))
    return job


def test_all_attempts_of_all_jobs_of_a_user_count_where_they_ran(jobs: Jobs, use: UseRecords) -> None:
    ran(jobs, "ann", [(NOW, NOW + 2 * MINUTE), (NOW + 3 * MINUTE, NOW + 4 * MINUTE)])
    ran(jobs, "ann", [(NOW, NOW + 5 * MINUTE)], cluster="cce")
    ran(jobs, "ann", [(NOW, NOW + timedelta(milliseconds=250))])
    ran(jobs, "bob", [(NOW, NOW + 7 * MINUTE)])
    assert use.seconds(["ann"], *DAY) == {"ann": {"local": pytest.approx(180.25, abs=0.01), "cce": pytest.approx(300)}}
    assert set(use.seconds(["ann", "bob", "eve"], *DAY)) == {"ann", "bob"}
    assert use.seconds([], *DAY) == {}


def test_of_an_attempt_that_crosses_an_end_of_the_span_only_the_part_inside_counts(jobs: Jobs, use: UseRecords) -> None:
    start, end = DAY
    ran(jobs, "ann", [(start - 10 * MINUTE, start + MINUTE), (end - 2 * MINUTE, end + 10 * MINUTE)])
    ran(jobs, "bob", [(start - MINUTE, end + MINUTE)])
    ran(jobs, "eve", [(start - MINUTE, start), (end, end + MINUTE)])
    assert use.seconds(["ann", "bob", "eve"], *DAY) == {
        "ann": {"local": pytest.approx(180, abs=0.01)},
        "bob": {"local": pytest.approx(86400, abs=0.01)},
    }


def test_the_time_from_running_until_nothing_runs_counts_once_it_is_over(jobs: Jobs, use: UseRecords) -> None:
    for state in (JobState.SUBMIT, JobState.QUEUE, JobState.SCHEDULE, JobState.RUNNING, JobState.KILLED):
        brought_to(jobs, state, "ann")
    killing = brought_to(jobs, JobState.KILLING, "ann")
    assert use.seconds(["ann"], *DAY) == {}
    jobs.move(killing, a_move(JobState.KILLED, minutes=30))
    assert use.seconds(["ann"], *DAY) == {"ann": {"local": pytest.approx(28 * 60, abs=0.01)}}


def test_of_a_job_that_is_stopped_while_it_starts_the_stopping_counts(jobs: Jobs, use: UseRecords) -> None:
    killing = jobs.move(brought_to(jobs, JobState.SCHEDULE, "ann"), a_move(JobState.KILLING, minutes=2))
    jobs.move(killing, a_move(JobState.KILLED, minutes=5))
    assert use.seconds(["ann"], *DAY) == {"ann": {"local": pytest.approx(180, abs=0.01)}}


def test_a_clock_that_went_backwards_takes_nothing_away(jobs: Jobs, use: UseRecords) -> None:
    ran(jobs, "ann", [(NOW + 5 * MINUTE, NOW + MINUTE), (NOW + 5 * MINUTE, NOW + 6 * MINUTE)])
    assert use.seconds(["ann"], *DAY) == {"ann": {"local": pytest.approx(60, abs=0.01)}}


def test_the_use_of_a_day_follows_the_records_whatever_was_read_before(
    database: Database, jobs: Jobs, use: UseRecords
) -> None:
    kept = UseOfDay(database, use)

    def seconds(*users: str, start: datetime = DAY[0]) -> list[float]:
        found = kept.seconds(users, start, start + timedelta(days=1))
        return [round(sum(found[user].values())) for user in users]

    assert seconds("ann", "bob") == [0, 0]
    ran(jobs, "ann", [(NOW, NOW + MINUTE)])
    assert seconds("ann", "bob") == [60, 0]
    running = brought_to(jobs, JobState.RUNNING, "bob")
    ran(jobs, "ann", [(NOW, NOW + MINUTE)], cluster="cce")
    assert seconds("bob") == [0]
    killing = jobs.move(running, a_move(JobState.KILLING, minutes=4))
    assert seconds("ann", "bob", "eve") == [120, 0, 0]
    jobs.move(killing, a_move(JobState.KILLED, minutes=5))
    assert seconds("ann", "bob", "eve") == [120, 180, 0]
    assert seconds("ann", "bob", start=DAY[1]) == [0, 0]
    assert seconds("ann", "bob") == [120, 180]


def test_waiting_jobs_are_counted_by_the_cluster_they_asked_for(jobs: Jobs, use: UseRecords) -> None:
    for cluster in ("default", "default", "cce"):
        added(jobs, "ann", cluster=cluster)
    brought_to(jobs, JobState.QUEUE, "bob")
    for state in (JobState.SCHEDULE, JobState.RUNNING, JobState.KILLED):
        brought_to(jobs, state, "ann")
    assert use.waiting("ann") == {"default": 2, "cce": 1}
    assert use.waiting("bob") == {"default": 1}
    assert use.waiting("eve") == {}


zones = st.sampled_from(["UTC", "Asia/Shanghai", "America/Havana", "Africa/Cairo", "Pacific/Apia", "America/St_Johns"])
moments = st.timedeltas(timedelta(0), timedelta(days=7500)).map(lambda ago: NOW - ago)
lengths = st.timedeltas(timedelta(milliseconds=1), timedelta(days=4))


@given(began=moments, length=lengths, zone=zones)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_used_on_all_days_together_is_what_an_attempt_ran(
    jobs: Jobs, use: UseRecords, began: datetime, length: timedelta, zone: str
) -> None:
    user = next(users_named)
    stopped = began + length
    ran(jobs, user, [(began, stopped)])
    day, total = day_of(began, ZoneInfo(zone)), 0.0
    while day.start < stopped:
        total += sum(use.seconds([user], day.start, day.end).get(user, {}).values())
        day = day_of(day.end, ZoneInfo(zone))
    assert total == pytest.approx(length.total_seconds(), abs=0.01)
