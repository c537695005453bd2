"""The contract of the store for attempts and their tasks: what backends hold, and what they last said."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.store.attempts import Held, merged
from paddlecloud.store.jobs import Jobs
from tests.contract.records import NOW, a_move, a_report, a_task, added, brought_to

S = JobState
LATER = NOW + timedelta(minutes=3)
ENDED = a_task(
    state=TaskState.FAILED, exit_code=3, reason="", started_at=NOW, ended_at=LATER, tail="Traceback\nValueError\n"
)


def test_tasks_come_back_as_reported_and_in_the_order_their_backend_named_them(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    names = [f"trainer-{index}" for index in range(11)] + ["pserver-0"]
    tasks = [replace(ENDED, name=name, signal=number, restarts=number) for number, name in enumerate(names)]
    jobs.record_tasks({job.handle: a_report(*tasks)})
    assert jobs.tasks(job.id) == tasks


def test_a_job_that_was_never_placed_has_no_tasks(jobs: Jobs) -> None:
    assert jobs.tasks(added(jobs).id) == []


def test_reports_of_handles_that_no_attempt_has_are_left_out(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    jobs.record_tasks({"job-unknown-1": a_report(a_task()), job.handle: a_report(a_task())})
    assert jobs.tasks(job.id) == [a_task()]
    jobs.record_tasks({})


def test_the_tasks_of_a_job_are_those_of_its_newest_attempt(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    jobs.record_tasks({job.handle: a_report(ENDED)})
    queued = jobs.move(job, a_move(S.QUEUE))
    assert jobs.tasks(job.id) == [ENDED]
    again = jobs.move(queued, a_move(S.SCHEDULE))
    assert jobs.tasks(job.id) == []
    jobs.record_tasks({again.handle: a_report(a_task()), job.handle: a_report(ENDED)})
    assert jobs.tasks(job.id) == [a_task()]


def test_a_task_that_comes_later_joins_the_others(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    jobs.record_tasks({job.handle: a_report(a_task("trainer-0"))})
    jobs.record_tasks({job.handle: a_report(ENDED, a_task("trainer-1"))})
    assert jobs.tasks(job.id) == [ENDED, a_task("trainer-1")]


def test_the_first_times_that_were_seen_are_kept(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    for task in (a_task(started_at=NOW), replace(ENDED, started_at=LATER), replace(ENDED, ended_at=NOW)):
        jobs.record_tasks({job.handle: a_report(task)})
    assert jobs.tasks(job.id) == [ENDED]


@pytest.mark.parametrize(
    "less",
    [
        a_task(state=TaskState.FAILED),
        a_task(state=TaskState.LOST, reason="its node is gone"),
        a_task(state=TaskState.RUNNING),
        a_task(state=TaskState.STARTING),
    ],
    ids=lambda task: task.state.value,
)
def test_a_later_report_that_knows_less_takes_nothing_away(jobs: Jobs, less: TaskReport) -> None:
    job = brought_to(jobs, S.RUNNING)
    jobs.record_tasks({job.handle: a_report(ENDED)})
    jobs.record_tasks({job.handle: a_report(less)})
    assert jobs.tasks(job.id) == [ENDED]


def test_a_task_that_was_taken_for_lost_may_turn_out_to_have_ended(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    jobs.record_tasks({job.handle: a_report(a_task(state=TaskState.LOST, reason="its node is gone"))})
    jobs.record_tasks({job.handle: a_report(ENDED)})
    assert jobs.tasks(job.id) == [ENDED]


def test_a_restart_begins_a_new_run_of_which_the_end_is_open(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    jobs.record_tasks({job.handle: a_report(ENDED)})
    restarted = a_task(restarts=1, started_at=LATER)
    jobs.record_tasks({job.handle: a_report(restarted)})
    assert jobs.tasks(job.id) == [replace(restarted, started_at=NOW)]
    jobs.record_tasks({job.handle: a_report(ENDED)})
    assert jobs.tasks(job.id)[0].restarts == 1


def test_odd_characters_in_a_log_do_not_stop_a_report(jobs: Jobs) -> None:
    job = brought_to(jobs, S.RUNNING)
    jobs.record_tasks({job.handle: a_report(replace(ENDED, tail="a\0b\udc80c 你好\n"))})
    assert jobs.tasks(job.id) == [replace(ENDED, tail="a\ufffdb\ufffdc 你好\n")]


def test_an_attempt_is_held_from_its_placement_until_it_is_cleaned(jobs: Jobs) -> None:
    job = brought_to(jobs, S.SCHEDULE)
    first = Held(handle=job.handle, cluster="local", job=job.id)
    assert jobs.held() == [first]
    again = jobs.move(jobs.move(job, a_move(S.QUEUE)), a_move(S.SCHEDULE))
    second = Held(handle=again.handle, cluster="local", job=job.id)
    assert jobs.held() == [first, second]
    jobs.cleaned([first.handle, "job-unknown-1"])
    jobs.cleaned([])
    assert jobs.held() == [second]


_times = st.none() | st.sampled_from([NOW, LATER])
_tasks = st.builds(
    TaskReport,
    name=st.just("trainer-0"),
    state=st.sampled_from(TaskState),
    exit_code=st.none() | st.integers(0, 255),
    signal=st.none() | st.integers(1, 31),
    reason=st.sampled_from(["", "out of memory"]),
    started_at=_times,
    ended_at=_times,
    restarts=st.integers(0, 2),
    tail=st.sampled_from(["", "last words\n"]),
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(_tasks, min_size=1, max_size=6))
def test_whatever_a_backend_says_the_record_is_the_sum_of_it(jobs: Jobs, said: list[TaskReport]) -> None:
    job = brought_to(jobs, S.RUNNING)
    known = said[0]
    jobs.record_tasks({job.handle: a_report(known)})
    for task in said[1:]:
        before, known = known, merged(known, task)
        jobs.record_tasks({job.handle: a_report(task)})
        assert known.started_at == (before.started_at or task.started_at)
        if task.restarts <= before.restarts:
            assert known.restarts == before.restarts
            assert known.ended_at == before.ended_at or before.ended_at is None
            assert known.state.ended or not before.state.ended or before.state is TaskState.LOST
    assert jobs.tasks(job.id) == [known]
