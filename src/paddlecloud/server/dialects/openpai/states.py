"""States of jobs and tasks in OpenPAI's words, and which of ours each of its words means: pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from paddlecloud.model.job import Job
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.store.listing import Listed

WAITING, RUNNING, STOPPING = "WAITING", "RUNNING", "STOPPING"
SUCCEEDED, STOPPED, FAILED, UNKNOWN = "SUCCEEDED", "STOPPED", "FAILED", "UNKNOWN"

STOPPED_BY_USER = -210
STOPPED_AT_THE_END = -220  # of tasks that the job did not need any more

_STATES = {
    JobState.SUBMIT: WAITING,
    JobState.QUEUE: WAITING,
    JobState.SCHEDULE: WAITING,
    JobState.RUNNING: RUNNING,
    JobState.SUCCESS: SUCCEEDED,
    JobState.FAILED: FAILED,
    JobState.TIMEOUT: FAILED,
    JobState.SCHEDULE_TIMEOUT: FAILED,
    JobState.KILLED: STOPPED,
}
_SUB_STATES = {
    JobState.SUBMIT: "AttemptCreationPending",
    JobState.QUEUE: "AttemptCreationPending",
    JobState.SCHEDULE: "AttemptPreparing",
    JobState.RUNNING: "AttemptRunning",
    JobState.KILLING: "AttemptDeleting",
}
_TASK_STATES = {
    TaskState.STARTING: WAITING,
    TaskState.RUNNING: RUNNING,
    TaskState.SUCCEEDED: SUCCEEDED,
    TaskState.FAILED: FAILED,
    TaskState.LOST: FAILED,
}
# What is sorted by `state` is sorted by the words above.
RANKS: Mapping[JobState, int] = {
    state: sorted({*_STATES.values(), STOPPING}).index(_STATES.get(state, STOPPING)) for state in JobState
}


def word(state: JobState) -> str:
    """What a state is called where nothing else is known of the job."""
    return _STATES.get(state, STOPPING)


def state(job: Job | Listed) -> str:
    """A job that is being stopped runs on, unless its user has asked for it."""
    if job.state is JobState.KILLING:
        return STOPPING if job.stop is StopReason.ASKED else RUNNING
    return _STATES[job.state]


def sub_state(job: Job | Listed) -> str:
    return _SUB_STATES.get(job.state, "Completed")


def task_state(task: TaskReport, job_state: JobState) -> str:
    """What was ended with a job is stopped, not failed."""
    return STOPPED if was_stopped(task, job_state) else _TASK_STATES[task.state]


def was_stopped(task: TaskReport, job_state: JobState) -> bool:
    return (
        job_state in (JobState.KILLED, JobState.SUCCESS, JobState.KILLING)
        and task.state in (TaskState.FAILED, TaskState.LOST)
        and not task.reason
    )


def execution_type(job: Job | Listed) -> str:
    return "STOP" if job.stop is StopReason.ASKED or job.state is JobState.KILLED else "START"


def meant(words: frozenset[str]) -> tuple[frozenset[JobState], frozenset[StopReason]]:
    """Our states that these words of OpenPAI's mean; and of those being stopped, for which reasons they are."""
    plain = frozenset(ours for ours, word in _STATES.items() if word in words)
    asked = frozenset({StopReason.ASKED}) if STOPPING in words else frozenset()
    others = frozenset(StopReason) - {StopReason.ASKED} if RUNNING in words else frozenset()
    return plain, asked | others


def milliseconds(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)
