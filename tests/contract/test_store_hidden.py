"""Jobs that are out of the lists: nothing else about them changes, and lists cost no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.state import LIVE, JobState
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from tests.contract.records import a_move, added, brought_to


def ids(jobs: Jobs, **asked: Any) -> list[str]:
    return [job.id for job in jobs.list(**asked).items]


def test_a_hidden_job_is_in_no_list_and_all_else_of_it_stays(jobs: Jobs) -> None:
    shown, hidden = added(jobs), brought_to(jobs, JobState.SUCCESS)
    history = jobs.history(hidden.id)
    for _ in range(2):
        jobs.hide(hidden.id)
        for asked in ({}, {"user": "ann"}, {"name": shown.spec.name}, {"user": "ann", "states": list(JobState)}):
            assert ids(jobs, **asked) == [shown.id], asked
            assert ids(jobs, hidden=True, **asked) == [hidden.id, shown.id], asked
        assert jobs.get(hidden.id) == hidden
        assert jobs.history(hidden.id) == history
        assert jobs.counts() == {JobState.SUBMIT: 1, JobState.SUCCESS: 1}


def test_pages_are_full_though_jobs_between_are_hidden(jobs: Jobs) -> None:
    made = [added(jobs) for _ in range(9)]
    for job in made[::3]:
        jobs.hide(job.id)
    left = [job.id for number, job in enumerate(made) if number % 3]
    first = jobs.list(limit=4)
    assert [job.id for job in first.items] == left[::-1][:4]
    second = jobs.list(limit=4, cursor=first.next_cursor)
    assert [job.id for job in second.items] == left[::-1][4:]
    assert second.next_cursor is None


@pytest.mark.parametrize("state", sorted(LIVE & {JobState.SUBMIT, JobState.RUNNING, JobState.KILLING}))
def test_a_live_job_that_is_hidden_lives_on(jobs: Jobs, state: JobState) -> None:
    job = brought_to(jobs, state)
    jobs.hide(job.id)
    assert jobs.live() == [job]
    jobs.move(job, a_move(JobState.SUCCESS if state is JobState.RUNNING else JobState.KILLED, 9))
    assert jobs.live() == []
    assert ids(jobs) == []


def test_a_job_that_is_not_there_cannot_be_hidden(jobs: Jobs) -> None:
    with pytest.raises(NotFoundError, match="there is no job 'job-x'"):
        jobs.hide("job-x")


def test_a_list_walks_along_an_index_and_sorts_nothing(tmp_path: Path) -> None:
    database = Database.open(f"sqlite:///{tmp_path / 'paddlecloud.db'}")
    jobs = Jobs(database)
    asked: list[tuple[str, Any]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: Any, *_: object) -> None:
        asked.append((statement, parameters))

    with database.read() as connection:
        engine = connection.engine
    event.listen(engine, "before_cursor_execute", note)
    jobs.list(user="ann")
    jobs.list()
    jobs.list(user="ann", name="fit-a-line")
    event.remove(engine, "before_cursor_execute", note)
    with database.read() as connection:
        plans = [
            [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values)]
            for query, values in asked
            if query.startswith("SELECT")
        ]
    database.close()
    assert plans == [
        ["SEARCH jobs USING INDEX ix_jobs_user (user=?)"],
        ["SCAN jobs"],
        ["SEARCH jobs USING INDEX ix_jobs_user_name (user=? AND name=?)"],
    ]
