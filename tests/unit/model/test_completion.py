"""When a job whose first role ends it is done or fails, and which failures are tried again: as OpenPAI has it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from paddlecloud.model import lifecycle
from paddlecloud.model.job import Job, JobSpec, Placement, Retry, RoleSpec
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import Report, TaskReport, TaskState

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
R, S, F, L = TaskState.RUNNING, TaskState.SUCCEEDED, TaskState.FAILED, TaskState.LOST


def a_job(worker: tuple[int | None, int], ps: tuple[int | None, int], retry: Retry | None = None) -> Job:
    """Two workers and a ps, each with its min_failed and its min_succeeded (0: never)."""
    roles = tuple(
        RoleSpec(name=name, count=count, command="x", min_failed=failed, min_succeeded=succeeded)
        for name, count, (failed, succeeded) in (("worker", 2, worker), ("ps", 1, ps))
    )
    return Job(
        id="job-" + "0" * 32,
        user="ann",
        spec=JobSpec(roles=roles, first_role_ends=True, retry=retry or Retry()),
        created_at=NOW,
        state=JobState.RUNNING,
        attempt=1,
        started_at=NOW,
        running_since=NOW,
        placement=Placement(cluster="local", tasks=()),
    )


def a_report(*states: TaskState, tail: str = "") -> Report:
    names = ("worker-0", "worker-1", "ps-0")
    return Report(
        tasks=tuple(
            TaskReport(
                name=name,
                state=state,
                started_at=NOW,
                exit_code={S: 0, F: 3}.get(state),
                ended_at=None if state is R else NOW + timedelta(seconds=number),
                tail=tail if state is F else "",
            )
            for number, (name, state) in enumerate(zip(names, states, strict=True))
        )
    )


OFF = (None, 0)


@pytest.mark.parametrize(
    ("worker", "ps", "states", "ends_in", "named"),
    [
        ((1, 2), (1, 1), (R, R, R), None, ""),
        ((1, 2), (1, 1), (S, R, R), None, ""),
        ((1, 2), (1, 1), (S, S, R), StopReason.DONE, "worker-1"),
        ((1, 2), (1, 1), (R, R, S), StopReason.DONE, "ps-0"),
        ((1, 1), (1, 1), (R, S, R), StopReason.DONE, "worker-1"),
        ((1, 2), (1, 1), (S, F, R), StopReason.TASK_FAILED, "worker-1"),
        ((2, 2), (1, 1), (F, R, R), None, ""),
        ((2, 2), (1, 1), (F, F, R), StopReason.TASK_FAILED, "worker-0"),
        (OFF, OFF, (F, F, R), None, ""),
        (OFF, OFF, (S, S, R), None, ""),
        (OFF, OFF, (F, S, F), StopReason.DONE, "all of its tasks have ended"),
        ((1, 0), (1, 0), (S, S, S), StopReason.DONE, "all of its tasks have ended"),
        ((1, 0), (1, 0), (S, S, R), None, ""),
        (OFF, OFF, (S, S, L), StopReason.NODE_LOST, "ps-0"),
    ],
)
def test_the_first_role_to_have_its_successes_ends_the_job(
    worker: tuple[int | None, int],
    ps: tuple[int | None, int],
    states: tuple[TaskState, ...],
    ends_in: StopReason | None,
    named: str,
) -> None:
    move = lifecycle.advance(a_job(worker, ps), a_report(*states), NOW, attempts_limit=1)
    assert (None if move is None else move.stop) == ends_in
    if move is not None:
        assert named in move.why
        assert move.to is (JobState.KILLING if R in states else move.to)


def test_a_failure_that_another_attempt_cannot_mend_is_not_tried_again() -> None:
    job = a_job((1, 2), (1, 1), Retry(user_error=3, by_cause=True))
    missing = a_report(F, S, S, tail="ModuleNotFoundError: No module named 'torch'\n")
    move = lifecycle.advance(job, missing, NOW, attempts_limit=1)
    assert move is not None
    assert (move.to, move.stop) == (JobState.FAILED, StopReason.TASK_FAILED)
    assert "module" in move.error
    unknown = lifecycle.advance(job, a_report(F, S, S, tail="what?"), NOW, attempts_limit=1)
    assert unknown is not None
    assert (unknown.to, unknown.stop) == (JobState.QUEUE, StopReason.TASK_FAILED)


def test_a_failure_is_judged_after_the_others_were_stopped_too() -> None:
    job = replace(
        a_job((1, 2), (1, 1), Retry(user_error=3, by_cause=True)),
        state=JobState.KILLING,
        stop=StopReason.TASK_FAILED,
        error="worker-0 failed first: exit code 127",
    )
    report = a_report(F, F, S, tail="")
    tasks = (replace(report.tasks[0], exit_code=127), *report.tasks[1:])
    move = lifecycle.advance(job, Report(tasks=tasks), NOW, attempts_limit=1)
    assert move is not None
    assert move.to is JobState.FAILED


def test_other_jobs_are_tried_again_whatever_the_cause() -> None:
    job = a_job((1, 2), (1, 1), Retry(user_error=1))
    move = lifecycle.advance(job, a_report(F, S, S, tail="SyntaxError: x\n"), NOW, attempts_limit=1)
    assert move is not None
    assert move.to is JobState.QUEUE


def test_a_job_without_end_of_retries_is_started_again_and_one_for_ever_after_its_success_too() -> None:
    endless = replace(a_job((1, 2), (1, 1), Retry(endless=True)), retries={StopReason.TASK_FAILED: 500})
    again = lifecycle.advance(endless, a_report(F, S, S, tail="SyntaxError: x\n"), NOW, attempts_limit=1)
    done = lifecycle.advance(endless, a_report(S, S, S), NOW, attempts_limit=1)
    assert again is not None
    assert done is not None
    assert (again.to, done.to) == (JobState.QUEUE, JobState.SUCCESS)
    always = a_job((1, 2), (1, 1), Retry(endless=True, after_success=True))
    for job in (always, replace(always, state=JobState.KILLING, stop=StopReason.DONE)):
        move = lifecycle.advance(job, a_report(S, S, S), NOW, attempts_limit=1)
        assert move is not None
        assert lifecycle.apply(job, move).retries == {StopReason.DONE: 1}


def test_a_job_without_awaited_successes_is_quiet_when_all_that_run_are() -> None:
    job = a_job(OFF, OFF)
    quiet = tuple(replace(task, quiet_since=NOW) for task in a_report(R, R, R).tasks)
    move = lifecycle.advance(job, Report(tasks=quiet), NOW, attempts_limit=1)
    assert move is not None
    assert move.quiet_since == NOW
    one_works = (replace(quiet[0], quiet_since=None), *quiet[1:])
    assert lifecycle.advance(job, Report(tasks=one_works), NOW, attempts_limit=1) is None
