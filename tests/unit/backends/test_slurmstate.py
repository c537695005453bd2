"""Slurm's words for a job, each with what it means to us; what is in doubt is not said."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from paddlecloud.backends import slurmstate
from paddlecloud.backends.slurmstate import ENDED, FORGOTTEN, WAITING, Seen, by_id, combine, word
from paddlecloud.model.state import StopReason
from paddlecloud.model.task import TaskReport, TaskState

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
RUNNING = ("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "WHATEVER")


def seen(state: str, **more: Any) -> Seen:
    return Seen(**{"id": 7, "name": "job-1-1", "state": state, **more})


def task(state: TaskState = TaskState.RUNNING, **more: Any) -> TaskReport:
    ended_at = NOW if state.ended else None
    return TaskReport(**{"name": "trainer-0", "state": state, "ended_at": ended_at, **more})


def after(state: str, *tasks: TaskReport, stopped: bool = False, said: str = "", told: tuple[str, ...] = ()) -> Any:
    return slurmstate.ended(seen(state), tasks or (task(),), NOW, stopped=stopped, said=said, told=told)


@pytest.mark.parametrize("state", sorted(ENDED))
def test_who_has_said_that_it_succeeded_has(state: str) -> None:
    report = after(state, task(TaskState.SUCCEEDED, exit_code=0))
    assert (report.tasks[0].state, report.stop) == (TaskState.SUCCEEDED, None)


@pytest.mark.parametrize(
    ("state", "found", "stop", "reason"),
    [
        ("COMPLETED", TaskState.LOST, StopReason.NODE_LOST, "job 7 ended in Slurm as COMPLETED: sh: no python"),
        ("FAILED", TaskState.LOST, StopReason.NODE_LOST, "job 7 ended in Slurm as FAILED: sh: no python"),
        ("TIMEOUT", TaskState.FAILED, StopReason.WALL_TIME, "ran out of Slurm's time"),
        ("DEADLINE", TaskState.FAILED, StopReason.WALL_TIME, "DEADLINE"),
        ("PREEMPTED", TaskState.LOST, StopReason.PREEMPTED, "PREEMPTED"),
        ("NODE_FAIL", TaskState.LOST, StopReason.NODE_LOST, "NODE_FAIL"),
        ("BOOT_FAIL", TaskState.LOST, StopReason.NODE_LOST, "BOOT_FAIL"),
        ("OUT_OF_MEMORY", TaskState.FAILED, None, "out of memory (Slurm job 7)"),
        ("CANCELLED", TaskState.FAILED, StopReason.ASKED, "was cancelled in Slurm"),
        ("REVOKED", TaskState.LOST, None, "REVOKED"),
        ("SPECIAL_EXIT", TaskState.FAILED, None, "SPECIAL_EXIT"),
        ("LAUNCH_FAILED", TaskState.FAILED, None, "LAUNCH_FAILED"),
        (FORGOTTEN, TaskState.LOST, None, "FORGOTTEN"),
    ],
)
def test_a_task_that_has_left_no_word_ended_as_slurm_says(
    state: str, found: TaskState, stop: StopReason | None, reason: str
) -> None:
    report = after(state, said="sh: no python")
    assert (report.tasks[0].state, report.stop) == (found, stop)
    assert reason in report.tasks[0].reason
    assert report.tasks[0].ended_at == NOW
    assert bool(report.why) == (stop is not None)
    ours = after(state, stopped=True)
    assert ours.stop is None, "what we stop ourselves needs no reason of Slurm's"
    if state in ("COMPLETED", "FAILED"):
        assert ours.tasks[0].state is TaskState.FAILED, "it was killed by our stop, and is not lost"


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED"])
def test_a_task_that_never_began_and_left_no_word_has_failed(state: str) -> None:
    report = after(state, task(TaskState.STARTING), said="sh: no python")
    assert (report.tasks[0].state, report.stop) == (TaskState.FAILED, None)


@pytest.mark.parametrize(
    ("others", "stop"),
    [
        ({"signal": signal.SIGTERM}, StopReason.NODE_LOST),
        ({"exit_code": 137}, StopReason.NODE_LOST),
        ({"exit_code": 1}, None),
    ],
)
def test_a_gang_of_which_one_vanished_is_lost_unless_another_failed_by_itself(
    others: dict[str, int], stop: StopReason | None
) -> None:
    report = after("FAILED", task(name="trainer-1"), task(TaskState.FAILED, **others))
    assert report.stop is stop
    assert report.tasks[0].state is TaskState.LOST
    if stop:
        assert report.why == "trainer-1 vanished (job 7: FAILED)"


def test_the_table_has_every_state_that_ends_a_job() -> None:
    assert {"COMPLETED", "FAILED", "TIMEOUT", "DEADLINE", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"} <= ENDED
    assert not ENDED & WAITING
    assert not ENDED & set(RUNNING)


@pytest.mark.parametrize("how", [{"signal": signal.SIGKILL}, {"exit_code": 137}])
def test_who_was_killed_for_memory_is_told_so(how: dict[str, int]) -> None:
    assert "out of memory" in after("OUT_OF_MEMORY", task(TaskState.FAILED, **how)).tasks[0].outcome
    assert after("OUT_OF_MEMORY", task(TaskState.FAILED, exit_code=3)).tasks[0].outcome == "exit code 3"


@pytest.mark.parametrize("state", ["TIMEOUT", "PREEMPTED", "CANCELLED", "NODE_FAIL"])
def test_who_ends_well_because_slurm_told_it_to_stop_has_not_succeeded(state: str) -> None:
    good = task(TaskState.SUCCEEDED, exit_code=0)
    report = after(state, good, told=("trainer-0",))
    assert (report.tasks[0].state, report.stop is None) == (TaskState.FAILED, False)
    assert f"told to stop by Slurm ({state})" in report.tasks[0].outcome
    assert after(state, good, told=("trainer-0",), stopped=True).tasks[0].state is TaskState.SUCCEEDED
    assert after("COMPLETED", good, told=("trainer-0",)).tasks[0].state is TaskState.SUCCEEDED


@pytest.mark.parametrize("state", RUNNING)
def test_while_it_runs_the_tasks_speak_for_themselves(state: str) -> None:
    for said in (task(TaskState.STARTING), task(), task(TaskState.FAILED, exit_code=3), task(TaskState.SUCCEEDED)):
        assert slurmstate.running(seen(state), [said], NOW).tasks == (said,)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (task(TaskState.FAILED, signal=signal.SIGTERM), False),
        (task(TaskState.FAILED, signal=signal.SIGKILL), False),
        (task(TaskState.FAILED, exit_code=143), False),
        (task(TaskState.FAILED, exit_code=137), False),
        (task(TaskState.FAILED, exit_code=3), True),
        (task(TaskState.SUCCEEDED, exit_code=0), True),
    ],
)
def test_who_was_killed_or_told_is_in_doubt_until_slurm_says_why_or_some_time_has_passed(
    said: TaskReport, told: bool
) -> None:
    names = ("trainer-0",) if told else ()

    def at(now: datetime, **more: Any) -> TaskState:
        return slurmstate.running(seen("RUNNING", **more), [said], now, told=names).tasks[0].state

    assert at(NOW) is TaskState.RUNNING
    assert at(NOW + timedelta(seconds=4)) is TaskState.RUNNING
    assert at(NOW + timedelta(seconds=6)) is said.state
    assert at(NOW + timedelta(seconds=60), end_at=NOW) is TaskState.RUNNING, (
        "its time is over: Slurm is about to say so"
    )


TERMINATED = task(TaskState.FAILED, name="trainer-1", signal=signal.SIGTERM)


@pytest.mark.parametrize("minutes", [0, 1, 9])
def test_while_a_stubborn_task_is_given_time_by_slurm_those_that_ended_at_once_are_in_doubt(minutes: int) -> None:
    """Slurm says COMPLETING for KillWait, or RUNNING for GraceTime, and only then why."""
    later = NOW + timedelta(minutes=minutes)
    for state, told in (("COMPLETING", ()), ("COMPLETING", ("trainer-1",)), ("RUNNING", ("trainer-1",))):
        report = slurmstate.running(seen(state), [task(), TERMINATED], later, told=told)
        assert [one.state for one in report.tasks] == [TaskState.RUNNING] * 2


def test_who_was_told_by_hand_while_the_others_run_on_has_ended_at_last() -> None:
    report = slurmstate.running(seen("RUNNING"), [task(), TERMINATED], NOW + timedelta(minutes=11), told=("trainer-1",))
    assert [one.state for one in report.tasks] == [TaskState.RUNNING, TaskState.FAILED]


def test_while_ends_are_on_their_way_no_task_that_slurm_may_have_ended_has() -> None:
    own = task(TaskState.FAILED, name="trainer-2", exit_code=3)
    good = task(TaskState.SUCCEEDED, name="trainer-3", exit_code=0)
    report = slurmstate.ending([task(), TERMINATED, own, good], NOW + timedelta(hours=1))
    assert [one.state for one in report.tasks] == [TaskState.RUNNING, TaskState.RUNNING, own.state, good.state]
    told = slurmstate.ending([own, good], NOW, told=("trainer-2", "trainer-3"))
    assert [one.state for one in told.tasks] == [TaskState.RUNNING] * 2


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT])
def test_what_dies_of_itself_is_not_in_doubt(number: int) -> None:
    died = task(TaskState.FAILED, signal=number)
    assert slurmstate.running(seen("RUNNING"), [died], NOW).tasks == (died,)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "not enough is free (Resources)"),
        ("Priority", "others are before it (Priority)"),
        ("ReqNodeNotAvail, UnavailableNodes:n1", "is not available (ReqNodeNotAvail, UnavailableNodes:n1)"),
        ("SomethingNew", "job 7: SomethingNew"),
        ("None", "job 7"),
        ("", "job 7"),
    ],
)
def test_who_waits_is_told_why_in_words_and_in_slurms(reason: str, words: str) -> None:
    at = NOW + timedelta(hours=1)
    report = slurmstate.waiting(seen("PENDING", reason=reason, start_at=at), [task(TaskState.STARTING)], "hpc")
    assert report.waits.startswith("in the queue of Slurm on hpc, job 7")
    assert report.waits.endswith(words)
    assert report.about_at == at


def test_who_is_put_back_is_another_attempt() -> None:
    report = slurmstate.put_back(seen("PENDING"), [task(), task(TaskState.FAILED, exit_code=1)], NOW)
    assert [one.state for one in report.tasks] == [TaskState.LOST, TaskState.FAILED]
    assert report.stop is StopReason.PREEMPTED


@pytest.mark.parametrize(
    ("text", "state"),
    [("CANCELLED by 1000", "CANCELLED"), ("CANCELLED+", "CANCELLED"), ("RUNNING", "RUNNING"), ("", "")],
)
def test_a_state_is_one_word(text: str, state: str) -> None:
    assert word(text) == state


@pytest.mark.parametrize(
    ("states", "found"),
    [
        (("RUNNING", "RUNNING"), "RUNNING"),
        (("RUNNING", "PENDING"), "PENDING"),
        (("COMPLETED", "RUNNING"), "RUNNING"),
        (("FAILED", "COMPLETING"), "COMPLETING"),
        (("COMPLETED", "COMPLETED"), "COMPLETED"),
        (("COMPLETED", "TIMEOUT"), "TIMEOUT"),
        (("NODE_FAIL", "COMPLETED"), "NODE_FAIL"),
    ],
)
def test_parts_are_one_job_which_ends_when_all_have(states: tuple[str, ...], found: str) -> None:
    assert combine([seen(state) for state in states]).state == found
    assert by_id([*(seen(state) for state in states), None, seen("PENDING", id=9)])[7].state == found
