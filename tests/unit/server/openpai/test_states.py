"""States, filters and pages in OpenPAI's words, one line each."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from paddlecloud.model.job import Job, JobSpec, RoleSpec
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.server.dialects.openpai import filters, shapes, states
from paddlecloud.server.dialects.openpai.refusals import Refusal
from paddlecloud.store.listing import Field

NOW = datetime(2026, 11, 17, 1, 2, 3, 456789, tzinfo=UTC)


def a_job(state: JobState, stop: StopReason | None = None) -> Job:
    spec = JobSpec(roles=(RoleSpec(name="trainer", count=1, command="true"),))
    return Job(id="job-1", user="ann", spec=spec, created_at=NOW, state=state, stop=stop)


@pytest.mark.parametrize(
    ("state", "stop", "word", "sub", "execution"),
    [
        (JobState.SUBMIT, None, "WAITING", "AttemptCreationPending", "START"),
        (JobState.QUEUE, None, "WAITING", "AttemptCreationPending", "START"),
        (JobState.SCHEDULE, None, "WAITING", "AttemptPreparing", "START"),
        (JobState.RUNNING, None, "RUNNING", "AttemptRunning", "START"),
        (JobState.KILLING, StopReason.ASKED, "STOPPING", "AttemptDeleting", "STOP"),
        (JobState.KILLING, StopReason.DONE, "RUNNING", "AttemptDeleting", "START"),
        (JobState.KILLING, StopReason.TASK_FAILED, "RUNNING", "AttemptDeleting", "START"),
        (JobState.SUCCESS, StopReason.DONE, "SUCCEEDED", "Completed", "START"),
        (JobState.FAILED, StopReason.TASK_FAILED, "FAILED", "Completed", "START"),
        (JobState.TIMEOUT, StopReason.WALL_TIME, "FAILED", "Completed", "START"),
        (JobState.SCHEDULE_TIMEOUT, StopReason.QUEUE_TIME, "FAILED", "Completed", "START"),
        (JobState.KILLED, StopReason.ASKED, "STOPPED", "Completed", "STOP"),
    ],
)
def test_a_state_has_one_word(state: JobState, stop: StopReason | None, word: str, sub: str, execution: str) -> None:
    job = a_job(state, stop)
    assert (states.state(job), states.sub_state(job), states.execution_type(job)) == (word, sub, execution)
    plain, stopping = states.meant(frozenset({word}))
    assert stop in stopping if state is JobState.KILLING else state in plain


def test_every_state_is_sorted_somewhere() -> None:
    assert set(states.RANKS) == set(JobState)
    assert states.RANKS[JobState.FAILED] == states.RANKS[JobState.TIMEOUT] < states.RANKS[JobState.SUCCESS]


@pytest.mark.parametrize(
    ("task", "state", "word", "code"),
    [
        ({"state": TaskState.SUCCEEDED, "exit_code": 0}, JobState.SUCCESS, "SUCCEEDED", 0),
        ({"state": TaskState.FAILED, "exit_code": 3}, JobState.FAILED, "FAILED", 3),
        ({"state": TaskState.FAILED, "signal": 11}, JobState.FAILED, "FAILED", 139),
        ({"state": TaskState.FAILED, "signal": 15}, JobState.KILLED, "STOPPED", -210),
        ({"state": TaskState.FAILED, "signal": 15}, JobState.SUCCESS, "STOPPED", -220),
        ({"state": TaskState.LOST}, JobState.FAILED, "FAILED", -8000),
        ({"state": TaskState.FAILED, "exit_code": 1, "reason": "out of memory"}, JobState.KILLED, "FAILED", 1),
    ],
)
def test_a_task_ends_with_a_word_and_a_code(task: dict[str, object], state: JobState, word: str, code: int) -> None:
    report = TaskReport(name="trainer-0", **task)  # type: ignore[arg-type]
    assert (states.task_state(report, state), shapes.task_code(report, state)) == (word, code)


def test_times_are_milliseconds() -> None:
    assert states.milliseconds(NOW) == int(NOW.timestamp() * 1000)
    assert states.milliseconds(None) is None


@pytest.mark.parametrize(
    ("order", "field", "ascending"),
    [
        ("", Field.SUBMITTED, False),
        ("jobName,ASC", Field.NAME, True),
        ("completionTime,DESC", Field.FINISHED, False),
        ("totalGpuNumber,ASC", Field.GPUS, True),
        ("retries,DESC", Field.ATTEMPT, False),
        ("vc,ASC", Field.POOL, True),
        ("jobName", Field.SUBMITTED, False),
        ("jobName,UP", Field.SUBMITTED, False),
        ("shoes,ASC", Field.SUBMITTED, False),
        ("jobName,ASC,DESC", Field.SUBMITTED, False),
    ],
)
def test_an_order_is_understood_or_passed_over(order: str, field: Field, ascending: bool) -> None:
    page = filters.page({"order": order})
    assert (page.order, page.ascending, page.limit, page.offset) == (field, ascending, 5000, 0)


def test_what_is_asked_for_is_cut_to_what_may_be_seen() -> None:
    assert filters.wanted({}, only=None).users is None
    assert filters.wanted({}, only="ann").users == {"ann"}
    assert filters.wanted({"username": "ann,bob"}, only="ann").users == {"ann"}
    assert filters.wanted({"username": "bob"}, only="ann").users == frozenset()
    assert filters.wanted({"username": ","}, only=None).users is None


def test_a_list_of_names_has_an_end() -> None:
    with pytest.raises(Refusal, match="200 is the most"):
        filters.wanted({"username": ",".join(map(str, range(201)))}, only=None)


@pytest.mark.parametrize(("number", "word"), [(-100, "oppo"), (0, "default"), (100, "prod"), (200, "crit")])
def test_a_priority_has_a_word(number: int, word: str) -> None:
    assert filters.priority_word(number) == word


@pytest.mark.parametrize(
    ("name", "found", "shown"),
    [("train_1.a-b", True, "train_1.a-b"), ("train", False, "job-1"), ("a b", True, "job-1"), ("ü", True, "job-1")],
)
def test_a_job_is_called_by_what_finds_it(name: str, found: bool, shown: str) -> None:
    assert shapes.shown_name(name, "job-1", found=found) == shown
