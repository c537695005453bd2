"""The contract of lists of jobs by filter, order and page, as the database makes them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from paddlecloud.model.job import Job, JobSpec, Resources, RoleSpec
from paddlecloud.model.paths import job_id
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.listing import Field, JobListing, Page, Wanted
from paddlecloud.store.schema import jobs as table

NOW = datetime(2026, 11, 17, tzinfo=UTC)
Add = Callable[..., str]


@pytest.fixture
def listing(database: Database) -> JobListing:
    return JobListing(database)


@pytest.fixture
def add(database: Database) -> Add:
    records = Jobs(database)
    count = 0

    def make(
        name: str = "train",
        user: str = "ann",
        state: JobState = JobState.QUEUE,
        *,
        gpus: int = 0,
        tasks: int = 1,
        stop: StopReason | None = None,
        finished: int | None = None,
        hidden: bool = False,
        **spec: object,
    ) -> str:
        nonlocal count
        count += 1
        role = RoleSpec(name="trainer", count=tasks, command="true", resources=Resources(cpus=1, gpus=gpus))
        asked = replace(JobSpec(roles=(role,), name=name), **spec)
        job = Job(
            id=job_id(count.to_bytes(16, "big")), user=user, spec=asked, created_at=NOW + timedelta(seconds=count)
        )
        records.add(job, group="g")
        columns = {
            "state": state.value,
            "stop": stop,
            "hidden": hidden,
            "finished_at": None if finished is None else NOW + timedelta(hours=finished),
        }
        with database.write() as connection:
            connection.execute(update(table).where(table.c.id == job.id).values(columns))
        return job.id

    return make


def ids(listing: JobListing, wanted: Wanted | None = None, **page: object) -> list[str]:
    return [job.id for job in listing.list(wanted or Wanted(), Page(**page))]  # type: ignore[arg-type]


def test_the_newest_is_first_and_pages_follow_one_another(listing: JobListing, add: Add) -> None:
    made = [add(f"job{number}") for number in range(5)]
    assert ids(listing) == made[::-1]
    assert ids(listing, ascending=True) == made
    assert ids(listing, limit=2) + ids(listing, offset=2, limit=2) + ids(listing, offset=4, limit=2) == made[::-1]
    assert ids(listing, limit=0) == []
    assert listing.count(Wanted()) == 5


def test_filters_are_all_kept_together(listing: JobListing, add: Add) -> None:
    wanted = add("couplet_1", "ann", JobState.RUNNING, queue="long", priority=100)
    add("couplet_2", "ann", JobState.QUEUE, queue="long", priority=100)
    add("couplet_3", "bob", JobState.RUNNING, queue="long", priority=100)
    add("couplet_4", "ann", JobState.RUNNING, queue="short", priority=100)
    add("other", "ann", JobState.RUNNING, queue="long", priority=100)
    add("couplet_5", "ann", JobState.RUNNING, queue="long", priority=0)
    asked = Wanted(
        users={"ann"}, pools={"long"}, states={JobState.RUNNING}, priorities=[(1, 150)], text="couplet", name=None
    )
    assert ids(listing, asked) == [wanted]
    assert listing.count(asked) == 1
    assert ids(listing, Wanted(users=frozenset())) == []


def test_a_word_is_looked_for_in_name_user_and_pool_as_it_is_written(listing: JobListing, add: Add) -> None:
    by_name, by_user, by_pool = add("100%_done"), add("a", "percent%"), add("b", queue="q%q")
    add("plain")
    assert ids(listing, Wanted(text="%")) == [by_pool, by_user, by_name]
    assert ids(listing, Wanted(text="%_D")) == [by_name]
    assert ids(listing, Wanted(text="\\")) == []


def test_jobs_that_are_being_stopped_are_told_apart_by_why(listing: JobListing, add: Add) -> None:
    asked = add("a", state=JobState.KILLING, stop=StopReason.ASKED)
    done = add("b", state=JobState.KILLING, stop=StopReason.DONE)
    runs = add("c", state=JobState.RUNNING)
    assert ids(listing, Wanted(states=[], stopping=[StopReason.ASKED])) == [asked]
    assert ids(listing, Wanted(states=[JobState.RUNNING], stopping=[StopReason.DONE])) == [runs, done]


@pytest.mark.parametrize(
    ("field", "ascending", "order"),
    [
        (Field.NAME, True, "abc"),
        (Field.NAME, False, "cba"),
        (Field.TASKS, True, "cab"),
        (Field.GPUS, False, "abc"),
        (Field.FINISHED, True, "bac"),
        (Field.FINISHED, False, "cab"),
        (Field.USER, True, "bca"),
        (Field.POOL, True, "cba"),
        (Field.PRIORITY, False, "cba"),
        (Field.STATE, True, "bac"),
    ],
)
def test_a_list_is_sorted_by_any_field(
    listing: JobListing, add: Add, field: Field, ascending: bool, order: str
) -> None:
    """What has not ended yet is last in rising order and first in falling order."""
    add("a", "x", JobState.SUCCESS, tasks=2, gpus=3, finished=2, queue="w", priority=1)
    add("b", "v", JobState.FAILED, tasks=3, gpus=1, finished=1, queue="v", priority=2)
    add("c", "w", JobState.RUNNING, tasks=1, gpus=1, queue="u", priority=3)
    ranks = {JobState.FAILED: 0, JobState.SUCCESS: 1, JobState.RUNNING: 2}
    found = listing.list(Wanted(), Page(order=field, ascending=ascending, state_order=ranks))
    assert "".join(job.name for job in found) == order


def test_where_jobs_are_alike_the_newest_is_first(listing: JobListing, add: Add) -> None:
    made = [add("same") for _ in range(3)]
    assert ids(listing, order=Field.NAME, ascending=True) == made[::-1]


def test_a_name_means_the_live_job_else_the_newest(listing: JobListing, add: Add) -> None:
    first = add("train", state=JobState.SUCCESS)
    live = add("train", state=JobState.RUNNING)
    newest = add("train", state=JobState.FAILED)
    gone = add("train", state=JobState.QUEUE, hidden=True)
    other = add("train", "bob")
    assert listing.find("ann", "train") == live
    assert listing.find("bob", "train") == other
    assert listing.find("ann", "nothing") is None
    found = {job.id: job.found for job in listing.list(Wanted(), Page())}
    assert found == {first: False, live: True, newest: False, other: True}
    assert gone not in found


def test_the_newest_of_ended_jobs_is_found_by_their_name(listing: JobListing, add: Add) -> None:
    add("train", state=JobState.SUCCESS)
    newest = add("train", state=JobState.FAILED)
    assert listing.find("ann", "train") == newest
    assert [job.id for job in listing.list(Wanted(), Page()) if job.found] == [newest]


def test_jobs_are_counted_by_state(listing: JobListing, add: Add) -> None:
    for state in (JobState.RUNNING, JobState.RUNNING, JobState.SUCCESS):
        add(state=state)
    add("x", "bob", JobState.FAILED)
    assert listing.states(Wanted(users={"ann"})) == {JobState.RUNNING: 2, JobState.SUCCESS: 1}


@pytest.mark.parametrize("odd", ["\0", "\ud800", "a\0b", "%", "_", "\\", "'"])
def test_what_no_text_of_a_job_can_be_finds_none(listing: JobListing, add: Add, odd: str) -> None:
    add()
    names = {odd}
    for wanted in (
        Wanted(users=names),
        Wanted(pools=names),
        Wanted(text=odd),
        Wanted(tags=names),
    ):
        assert listing.list(wanted, Page(limit=10)) == []
        assert listing.count(wanted) == 0
    assert len(listing.list(Wanted(without_tags=names), Page(limit=10))) == 1
    assert listing.find(odd, odd) is None
    assert listing.find("ann", odd) is None
