"""How jobs and tasks ended, in the shape of OpenPAI's exit specifications; what they say is our own table of causes."""

from __future__ import annotations

from typing import Any

from paddlecloud.model import causes
from paddlecloud.model.causes import Cause, Class
from paddlecloud.model.remedies import remedies
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport, TaskState
from paddlecloud.model.views import JobDetail
from paddlecloud.server.dialects.openpai import states

NOBODY_KNOWS = -8000  # OpenPAI's code for an end that nothing tells of
TIMED_OUT = -8001
_BEHAVIOURS = {Class.TRANSIENT: "TRANSIENT", Class.PERMANENT: "PERMANENT", Class.UNKNOWN: "UNKNOWN"}
_REACTIONS = {
    Class.TRANSIENT: "ALWAYS_RETRY",
    Class.PERMANENT: "NEVER_RETRY",
    Class.UNKNOWN: "RETRY_TO_MAX",
}
_ISSUERS = {"user": "USER_CONTAINER", "platform": "PAI_RUNTIME"}


def job_spec(found: JobDetail, failed: TaskReport | None, code: int | None) -> dict[str, Any] | None:
    """What a job's end means; None: nothing is to be said of it."""
    job = found.job
    if job.state is JobState.SUCCESS:
        return _succeeded()
    return _spec(causes.of_job(job.stop, () if failed is None else (failed,)), code, job.state, found)


def task_spec(task: TaskReport, found: JobDetail, code: int | None) -> dict[str, Any] | None:
    job_state = found.job.state
    if task.state is TaskState.SUCCEEDED:
        return _succeeded()
    if states.was_stopped(task, job_state):
        return _spec(causes.STOPPED, code, JobState.KILLED, found)
    return _spec(causes.of_task(task), code, job_state, found)


def exit_type(spec: dict[str, Any] | None) -> str | None:
    return None if spec is None else spec["type"]


def _spec(cause: Cause | None, code: int | None, state: JobState, found: JobDetail) -> dict[str, Any] | None:
    if cause is None:
        return None
    return {
        "code": NOBODY_KNOWS if code is None else code,
        "phrase": "".join(word.capitalize() for word in cause.name.split("_")),
        "issuer": _ISSUERS.get(cause.by, "UNKNOWN"),
        "causer": cause.by.upper(),
        "type": "USER_STOP" if state is JobState.KILLED else f"{cause.by.upper()}_FAILURE",
        "stage": "RUNNING",
        "behavior": _BEHAVIOURS[cause.class_],
        "reaction": _REACTIONS[cause.class_],
        "reason": cause.what,
        "repro": [],
        "solution": list(remedies(cause, found.job, found.longest_seconds)),
    }


def _succeeded() -> dict[str, Any]:
    return {
        "code": 0,
        "phrase": "Succeeded",
        "issuer": "USER_CONTAINER",
        "causer": "USER",
        "type": "USER_SUCCESS",
        "stage": "RUNNING",
        "behavior": "SUCCEEDED",
        "reaction": "NEVER_RETRY",
        "reason": "it succeeded",
        "repro": [],
        "solution": [],
    }
