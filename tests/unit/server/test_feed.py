"""One reader for all followers: nothing is missed, and whoever is too far behind is told to ask the records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.job import Job, JobSpec, RoleSpec
from paddlecloud.server.changes import Changes, wait
from paddlecloud.server.feed import Feed
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from tests.migrated import migrated


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    database = Database.open(migrated(tmp_path / "db"))
    yield Jobs(database)
    database.close()


def submit(jobs: Jobs, number: int) -> None:
    spec = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="x"),))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    jobs.add(Job(id=f"job-{number:032x}", user="ann", spec=spec, created_at=at), group="g")


def fed(jobs: Jobs, story: Callable[[Feed, Changes], Awaitable[None]], *, kept: int = 100) -> None:
    """Tell a story beside a running feed."""

    async def tell() -> None:
        changes = Changes()
        changes.attach()
        feed = Feed(jobs, changes, kept=kept)
        running = asyncio.create_task(feed.run())
        await story(feed, changes)
        changes.close()
        await running

    asyncio.run(tell())


async def reach(feed: Feed, seq: int) -> None:
    async with asyncio.timeout(10):
        while feed.last < seq:
            await wait(feed.turn(), 0.1)


def test_what_happens_is_known_in_order_to_whoever_asks_from_before(jobs: Jobs) -> None:
    submit(jobs, 1)

    async def story(feed: Feed, changes: Changes) -> None:
        begin = feed.last
        for number in (2, 3):
            submit(jobs, number)
        changes.ring()
        await reach(feed, begin + 2)
        assert [move.seq for move in feed.after(begin) or ()] == [begin + 1, begin + 2]
        assert [move.seq for move in feed.after(begin + 1) or ()] == [begin + 2]
        assert feed.after(begin + 2) == []
        assert feed.after(begin - 1) is None

    fed(jobs, story)


def test_whoever_is_further_behind_than_what_is_kept_is_told(jobs: Jobs) -> None:
    async def story(feed: Feed, changes: Changes) -> None:
        begin = feed.last
        for number in range(5):
            submit(jobs, number)
        changes.ring()
        await reach(feed, begin + 5)
        assert feed.after(begin) is None
        assert feed.after(begin + 1) is None
        assert [move.seq for move in feed.after(begin + 2) or ()] == [begin + 3, begin + 4, begin + 5]

    fed(jobs, story, kept=3)


def test_a_change_that_rang_no_bell_is_found_a_moment_later(jobs: Jobs) -> None:
    async def story(feed: Feed, changes: Changes) -> None:
        for number in (1, 2):
            submit(jobs, number)
            await reach(feed, number)
            for _ in range(5):  # the feed's own read, which is under way, is over before these are
                await run_in_threadpool(jobs.last_event)

    fed(jobs, story)


def test_the_end_of_the_server_wakes_those_who_wait(jobs: Jobs) -> None:
    async def story(feed: Feed, changes: Changes) -> None:
        turn = feed.turn()
        changes.close()
        assert await wait(turn, 10)

    fed(jobs, story)
