"""What makes a job move, case by case; the walk at the end tries every answer a backend could give."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from paddlecloud.model import lifecycle
from paddlecloud.model.errors import ConflictError
from paddlecloud.model.job import Job, JobSpec, Placement, Retry, RoleSpec
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import ENDS, FINAL, HELD, MOVES, JobState, StopReason
from paddlecloud.model.task import Report, TaskReport, TaskState

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
ROLES = (
    RoleSpec(name="trainer", count=2, command="train"),
    RoleSpec(name="pserver", count=1, command="serve", min_succeeded=0),
)
RUNNING, SUCCEEDED, FAILED, LOST = TaskState.RUNNING, TaskState.SUCCEEDED, TaskState.FAILED, TaskState.LOST


def a_job(state: JobState, **changes: Any) -> Job:
    spec = JobSpec(roles=ROLES, wall_time_seconds=600)
    job = Job(id="job-" + "0" * 32, user="ann", spec=spec, created_at=NOW, state=state, attempt=1)
    if state in HELD:
        job = replace(job, placement=Placement(cluster="local", tasks=()))
    if state is JobState.RUNNING:
        job = replace(job, started_at=NOW, running_since=NOW)
    return replace(job, **changes)


def a_report(first: TaskState, second: TaskState, server: TaskState, **of_second: Any) -> Report:
    return Report(
        tasks=(
            TaskReport(name="trainer-0", state=first, started_at=NOW, exit_code=None if first is RUNNING else 0),
            replace(TaskReport(name="trainer-1", state=second, started_at=NOW), **of_second),
            TaskReport(name="pserver-0", state=server, started_at=NOW),
        )
    )


def advance(job: Job, report: Report | None, now: datetime = NOW) -> Move | None:
    return lifecycle.advance(job, report, now, attempts_limit=3)


def sure(move: Move | None) -> Move:
    assert move is not None
    return move


def test_a_job_runs_once_all_of_its_tasks_have_started() -> None:
    job = a_job(JobState.SCHEDULE)
    assert advance(job, None) is None
    assert advance(job, a_report(RUNNING, TaskState.STARTING, RUNNING)) is None
    assert sure(advance(job, a_report(RUNNING, RUNNING, RUNNING))).to is JobState.RUNNING


def test_a_job_that_failed_between_two_looks_still_shows_running_first() -> None:
    report = a_report(SUCCEEDED, FAILED, SUCCEEDED, exit_code=3)
    move = sure(advance(a_job(JobState.SCHEDULE), report))
    assert move.to is JobState.RUNNING
    running = lifecycle.apply(a_job(JobState.SCHEDULE), move)
    assert sure(advance(running, report)).to is JobState.FAILED


def _building(first: TaskReport) -> Report:
    """A job of which two tasks are still being built for."""
    reason = "building packages: requirements.txt, with uv"
    others = (TaskReport(name=name, state=TaskState.STARTING, reason=reason) for name in ("trainer-1", "pserver-0"))
    return Report(tasks=(first, *others))


def test_a_job_whose_packages_are_built_stays_in_schedule_whatever_its_limits() -> None:
    job = a_job(JobState.SCHEDULE, queue_reason="building packages: requirements.txt, with uv")
    report = _building(TaskReport(name="trainer-0", state=RUNNING, started_at=NOW))
    assert report.building == job.building == job.queue_reason
    assert advance(job, report, NOW + timedelta(hours=1)) is None
    assert lifecycle.overdue(job, NOW + timedelta(days=9), schedule_limit=timedelta(days=7)) is None
    assert job.seen.state is JobState.SCHEDULE
    assert a_job(JobState.SCHEDULE, queue_reason="Priority").seen.state is JobState.QUEUE


def test_a_build_that_fails_ends_the_job_without_its_having_run() -> None:
    failed = TaskReport(name="trainer-0", state=FAILED, reason="its environment could not be built", ended_at=NOW)
    job = a_job(JobState.SCHEDULE)
    move = sure(advance(job, _building(failed)))
    assert (move.to, move.stop) == (JobState.KILLING, StopReason.TASK_FAILED)
    assert move.error == "trainer-0 failed first: its environment could not be built"
    killing = lifecycle.apply(job, move)
    stopped = [replace(task, state=FAILED, ended_at=NOW) for task in _building(failed).tasks]
    ended = lifecycle.apply(killing, sure(advance(killing, Report(tasks=tuple(stopped)))))
    assert (ended.state, ended.error, ended.started_at) == (JobState.FAILED, move.error, None)
    assert sure(advance(job, Report(tasks=tuple(stopped)))).to is JobState.FAILED


def test_the_job_ends_with_its_trainers_and_the_pservers_are_stopped() -> None:
    job = a_job(JobState.RUNNING)
    move = sure(advance(job, a_report(SUCCEEDED, SUCCEEDED, RUNNING)))
    assert (move.to, move.stop) == (JobState.KILLING, StopReason.DONE)
    killing = lifecycle.apply(job, move)
    assert advance(killing, a_report(SUCCEEDED, SUCCEEDED, RUNNING)) is None
    assert sure(advance(killing, a_report(SUCCEEDED, SUCCEEDED, FAILED, signal=15))).to is JobState.SUCCESS


def test_one_failed_task_stops_the_others_and_the_record_names_the_first() -> None:
    earlier = NOW + timedelta(seconds=1)
    report = Report(
        tasks=(
            TaskReport(name="trainer-0", state=FAILED, exit_code=1, ended_at=NOW + timedelta(seconds=2)),
            TaskReport(name="trainer-1", state=FAILED, signal=11, ended_at=earlier),
            TaskReport(name="pserver-0", state=RUNNING),
        )
    )
    move = sure(advance(a_job(JobState.RUNNING), report))
    assert (move.to, move.stop) == (JobState.KILLING, StopReason.TASK_FAILED)
    assert move.error == "trainer-1 failed first: killed by SIGSEGV (segmentation fault)"


def test_a_gone_job_gets_its_next_attempt_until_there_are_no_more() -> None:
    assert sure(advance(a_job(JobState.RUNNING), None)).to is JobState.QUEUE
    last = sure(advance(a_job(JobState.RUNNING, attempt=3, retries={"node_lost": 2}), None))
    assert (last.to, last.stop) == (JobState.FAILED, StopReason.NODE_LOST)
    assert last.error.endswith("is gone from its cluster, after 2 of 2 retries")
    held = sure(advance(a_job(JobState.RUNNING), a_report(RUNNING, LOST, RUNNING)))
    assert (held.to, held.stop) == (JobState.KILLING, StopReason.NODE_LOST)


def test_what_its_cluster_ended_before_it_began_has_never_run() -> None:
    report = Report(
        tasks=(TaskReport(name="trainer-0", state=TaskState.FAILED),), stop=StopReason.ASKED, why="cancelled in Slurm"
    )
    move = sure(advance(a_job(JobState.SCHEDULE), report))
    assert (move.to, move.stop, move.error) == (JobState.KILLING, StopReason.ASKED, "cancelled in Slurm")
    ended = lifecycle.apply(a_job(JobState.SCHEDULE), move)
    assert ended.started_at is None
    assert sure(advance(ended, report)).to is JobState.KILLED


@pytest.mark.parametrize(
    ("stop", "to"),
    [
        (StopReason.WALL_TIME, JobState.TIMEOUT),
        (StopReason.ASKED, JobState.KILLED),
        (StopReason.PREEMPTED, JobState.QUEUE),
        (StopReason.NODE_LOST, JobState.QUEUE),
    ],
)
def test_what_its_cluster_ended_ends_as_the_cluster_says_unless_its_trainers_were_done(
    stop: StopReason, to: JobState
) -> None:
    def after(trainers: TaskState) -> JobState:
        report = replace(a_report(trainers, trainers, FAILED), stop=stop, why="as Slurm says")
        job = a_job(JobState.RUNNING)
        job = lifecycle.apply(job, sure(advance(job, report)))
        return lifecycle.apply(job, sure(advance(job, report))).state if job.state is JobState.KILLING else job.state

    assert after(FAILED) is to
    assert after(SUCCEEDED) is JobState.SUCCESS


def ends_of(retry: Retry, *exit_codes: int) -> list[tuple[JobState, str]]:
    """Where each attempt ends whose second trainer ends with one of these codes."""
    job, found = a_job(JobState.RUNNING, attempt=0), []
    job = replace(job, spec=replace(job.spec, retry=retry))
    for number, code in enumerate(exit_codes, start=1):
        job = replace(job, state=JobState.RUNNING, attempt=number, running_since=NOW)
        job = lifecycle.apply(job, sure(advance(job, a_report(RUNNING, FAILED, RUNNING, exit_code=code))))
        assert job.state is JobState.KILLING
        move = sure(advance(job, a_report(FAILED, FAILED, FAILED, exit_code=code)))
        job = lifecycle.apply(job, move)
        found.append((job.state, move.why))
    return found


def test_a_job_whose_code_fails_is_started_again_only_where_that_was_asked_for() -> None:
    assert ends_of(Retry(), 1) == [(JobState.FAILED, "trainer-1 failed first: exit code 1")]
    assert ends_of(Retry(user_error=2), 1, 2, 3) == [
        (JobState.QUEUE, "trainer-1 failed first: exit code 1; attempt 2 follows (retry 1 of 2)"),
        (JobState.QUEUE, "trainer-1 failed first: exit code 2; attempt 3 follows (retry 2 of 2)"),
        (JobState.FAILED, "trainer-1 failed first: exit code 3, after 2 of 2 retries"),
    ]


def test_exit_code_101_asks_for_another_attempt_and_is_counted_by_itself() -> None:
    asked = "trainer-1 asked to be started again: exit code 101"
    assert ends_of(Retry(), 101, 101, 101) == [
        (JobState.QUEUE, f"{asked}; attempt 2 follows (retry 1 of 2)"),
        (JobState.QUEUE, f"{asked}; attempt 3 follows (retry 2 of 2)"),
        (JobState.FAILED, f"{asked}, after 2 of 2 retries"),
    ]
    assert [state for state, _ in ends_of(Retry(user_error=1, restart_me=1), 1, 101, 1)] == [
        JobState.QUEUE,
        JobState.QUEUE,
        JobState.FAILED,
    ]
    assert [state for state, _ in ends_of(Retry(restart_me=0), 101)] == [JobState.FAILED]


def test_a_kill_ends_a_job_that_would_be_started_again() -> None:
    job = a_job(JobState.RUNNING)
    job = replace(job, spec=replace(job.spec, retry=Retry(user_error=5)))
    killing = lifecycle.apply(job, sure(lifecycle.kill(job, NOW, by="ann")))
    assert sure(advance(killing, a_report(FAILED, FAILED, FAILED, exit_code=1))).to is JobState.KILLED


def test_a_job_that_goes_back_to_the_queue_has_its_whole_waiting_time_again() -> None:
    late = NOW + timedelta(days=9)
    job = lifecycle.apply(a_job(JobState.RUNNING), sure(advance(a_job(JobState.RUNNING), None, late)))
    assert (job.state, job.waits_since) == (JobState.QUEUE, late)
    assert lifecycle.overdue(job, late, schedule_limit=timedelta(days=7)) is None


def test_wall_time_counts_from_when_this_attempt_ran() -> None:
    job, report = a_job(JobState.RUNNING), a_report(RUNNING, RUNNING, RUNNING)
    assert advance(job, report, NOW + timedelta(seconds=599)) is None
    over = sure(advance(job, report, NOW + timedelta(seconds=600)))
    assert (over.to, over.stop) == (JobState.KILLING, StopReason.WALL_TIME)
    ended = sure(advance(lifecycle.apply(job, over), a_report(FAILED, FAILED, FAILED)))
    assert ended.to is JobState.TIMEOUT


def test_an_attempt_that_had_less_of_the_day_left_than_its_wall_time_ends_with_that_and_says_so() -> None:
    short = Placement(cluster="local", tasks=(), wall_time_seconds=120)
    job, report = a_job(JobState.RUNNING, placement=short), a_report(RUNNING, RUNNING, RUNNING)
    assert advance(job, report, NOW + timedelta(seconds=119)) is None
    over = sure(advance(job, report, NOW + timedelta(seconds=120)))
    assert (over.to, over.stop) == (JobState.KILLING, StopReason.WALL_TIME)
    assert over.error == "ran out of the day's minutes: when it started, 00:02:00 of its wall_time 00:10:00 were left"
    again = lifecycle.apply(job, Move(to=JobState.QUEUE, at=NOW, why="its node was lost"))
    assert again.wall_time_seconds == 600


def test_a_job_that_ended_at_its_wall_time_keeps_its_own_end() -> None:
    late = NOW + timedelta(hours=1)
    assert (
        sure(advance(a_job(JobState.RUNNING), a_report(SUCCEEDED, SUCCEEDED, SUCCEEDED), late)).to is JobState.SUCCESS
    )


@pytest.mark.parametrize("state", [JobState.SUBMIT, JobState.QUEUE])
def test_a_job_that_waits_too_long_times_out(state: JobState) -> None:
    limit = timedelta(hours=1)
    assert lifecycle.overdue(a_job(state), NOW + timedelta(minutes=59), schedule_limit=limit) is None
    assert sure(lifecycle.overdue(a_job(state), NOW + limit, schedule_limit=limit)).to is JobState.SCHEDULE_TIMEOUT


def test_a_job_that_waited_too_long_says_for_what() -> None:
    limit = timedelta(hours=1)
    waits = a_job(JobState.QUEUE, queue_reason="needs 8 CPUs; free on cce: 2 CPUs of 4 CPUs")
    move = sure(lifecycle.overdue(waits, NOW + limit, schedule_limit=limit))
    assert move.error == move.why == "not placed within 60 min: needs 8 CPUs; free on cce: 2 CPUs of 4 CPUs"
    silent = sure(lifecycle.overdue(a_job(JobState.SUBMIT), NOW + limit, schedule_limit=limit))
    assert silent.error == "not placed within 60 min"


def test_a_job_that_was_stopped_has_ended_when_its_last_task_did() -> None:
    job = a_job(JobState.KILLING, stop=StopReason.WALL_TIME, error="ran longer")
    late = NOW + timedelta(hours=9)
    ended = a_report(SUCCEEDED, FAILED, FAILED)
    ends = [replace(task, ended_at=NOW + timedelta(seconds=20 * at)) for at, task in enumerate(ended.tasks)]
    assert sure(advance(job, Report(tasks=tuple(ends)), late)).at == NOW + timedelta(seconds=40)
    for unknown in (None, ended, Report(tasks=(*ends[:-1], ended.tasks[-1]))):
        assert sure(advance(job, unknown, late)).at == late


@pytest.mark.parametrize(
    ("state", "to"),
    [
        (JobState.SUBMIT, JobState.KILLED),
        (JobState.QUEUE, JobState.KILLED),
        (JobState.SCHEDULE, JobState.KILLING),
        (JobState.RUNNING, JobState.KILLING),
    ],
)
def test_a_kill_ends_a_waiting_job_at_once_and_stops_a_placed_one(state: JobState, to: JobState) -> None:
    assert sure(lifecycle.kill(a_job(state), NOW, by="ann")).to is to


def test_a_second_kill_changes_nothing_and_one_after_the_end_is_refused() -> None:
    assert lifecycle.kill(a_job(JobState.KILLING), NOW, by="ann") is None
    with pytest.raises(ConflictError, match="has ended already"):
        lifecycle.kill(a_job(JobState.SUCCESS), NOW, by="ann")


def test_every_reason_ends_in_a_state_that_killing_may_reach() -> None:
    assert set(ENDS) == set(StopReason)
    assert set(ENDS.values()) <= MOVES[JobState.KILLING]


reports = st.one_of(
    st.none(),
    st.builds(
        lambda report, stop: replace(report, stop=stop, why="as its cluster says" if stop else ""),
        st.builds(a_report, *[st.sampled_from(TaskState)] * 3, signal=st.sampled_from([None, 9])),
        st.sampled_from([None, None, StopReason.WALL_TIME, StopReason.PREEMPTED, StopReason.ASKED]),
    ),
)
steps = st.lists(st.tuples(st.sampled_from(["look", "place", "kill"]), reports, st.integers(0, 900)), max_size=25)


retries = st.builds(
    Retry, user_error=st.integers(0, 2), by_cause=st.booleans(), endless=st.booleans(), after_success=st.booleans()
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(steps, retries, st.booleans())
def test_no_walk_leaves_the_table_and_an_end_is_an_end(
    walk: list[tuple[str, Report | None, int]], retry: Retry, first_role_ends: bool
) -> None:
    job, now = a_job(JobState.SUBMIT, attempt=0), NOW
    job = replace(job, spec=replace(job.spec, retry=retry, first_role_ends=first_role_ends))
    for what, report, seconds in walk:
        now += timedelta(seconds=seconds)
        move = lifecycle.overdue(job, now, schedule_limit=timedelta(hours=1)) or advance(job, report, now)
        if what == "kill" and not job.state.final:
            move = lifecycle.kill(job, now, by="ann")
        if what == "place" and job.state.waiting and move is None:
            move = Move(to=JobState.SCHEDULE, at=now, why="", placement=Placement(cluster="local", tasks=()))
        if job.state.final:
            assert move is None
        if move is not None:
            assert move.to in MOVES[job.state]
            if move.to in FINAL and job.state in HELD:
                assert report is None or report.ended, "something still runs"
            job = lifecycle.apply(job, move)
            assert (job.finished_at is not None) == job.state.final
            assert not job.state.held or job.placement is not None
