"""Jobs, attempts, tasks and events as OpenPAI's clients read them: pure.

A field that a client reads is never left out: null stands for what is not known. Times are milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from paddlecloud.model import lifecycle
from paddlecloud.model.job import Job, Moved, RoleSpec, TaskPlacement
from paddlecloud.model.paths import task_name
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.model.views import JobDetail
from paddlecloud.server.dialects.openpai import exits, states
from paddlecloud.server.dialects.openpai.filters import priority_word
from paddlecloud.server.dialects.openpai.states import milliseconds
from paddlecloud.store.attempts import Span
from paddlecloud.store.listing import Listed

_KNOWN_NAME = re.compile(r"[A-Za-z0-9._~-]+")
_SIGNALLED = 128
_OF_USER = (StopReason.TASK_FAILED.value, StopReason.RESTART_ME.value)
_OF_RESOURCES = StopReason.PREEMPTED.value


def shown_name(name: str, job_id: str, *, found: bool = True) -> str:
    """What clients call a job by: its name, or its id where its name finds another job or would break an address."""
    return name if found and _KNOWN_NAME.fullmatch(name) else job_id


def item(job: Listed, tags: Sequence[str] = ()) -> dict[str, Any]:
    """A job in a list."""
    return {
        "debugId": job.id,
        "name": shown_name(job.name, job.id, found=job.found),
        "username": job.user,
        "state": states.state(job),
        "subState": states.sub_state(job),
        "executionType": states.execution_type(job),
        "tags": list(tags),
        **_retries(job.attempt, job.retries),
        "submissionTime": milliseconds(job.created_at),
        "createdTime": milliseconds(job.created_at),
        "launchedTime": milliseconds(job.started_at),
        "completedTime": milliseconds(job.finished_at),
        "appExitCode": _exit_code(job.state, job.exit_code),
        "virtualCluster": job.pool,
        "totalGpuNumber": job.gpus,
        "totalTaskNumber": job.tasks,
        "totalTaskRoleNumber": job.roles,
        "jobPriority": priority_word(job.priority),
    }


def detail(found: JobDetail, name: str, span: Span | None, tags: Sequence[str] = ()) -> dict[str, Any]:
    """A job as `getJob` has it, in the attempt that it is in, or in the one that `span` is of."""
    job = found.job
    return {
        "debugId": job.id,
        "name": name,
        "tags": list(tags),
        "jobPriority": priority_word(job.spec.priority),
        "jobStatus": _status(found, span),
        "taskRoles": {
            role.name: {
                "taskRoleStatus": {"name": role.name},
                "taskStatuses": [_task(found, name, role, index, span) for index in range(role.count)],
            }
            for role in job.spec.roles
        },
    }


def _status(found: JobDetail, span: Span | None) -> dict[str, Any]:
    job = found.job
    latest = span is None or span.attempt == job.attempt
    failed = first_failed(found)
    ended = job.state.final or not latest
    code = _exit_code(job.state, code_of(failed)) if latest else code_of(failed)
    spec = exits.job_spec(found, failed, code) if ended else None
    return {
        "username": job.user,
        "state": states.state(job),
        "subState": states.sub_state(job),
        "executionType": states.execution_type(job),
        **_retries(job.attempt, job.retries),
        "submissionTime": milliseconds(job.created_at),
        "createdTime": milliseconds(job.created_at),
        "launchedTime": milliseconds(job.started_at),
        "completedTime": milliseconds(job.finished_at),
        "attemptId": attempt_number(job, span),
        "attemptState": states.state(job) if latest else attempt_state(span, job),
        "appId": job.handle if span is None else span.handle,
        "appProgress": 1 if ended else 0,
        "appTrackingUrl": "",
        "appCreatedTime": milliseconds(job.created_at),
        "appLaunchedTime": milliseconds(span.running_at if span else job.running_since),
        "appCompletedTime": milliseconds(span.stopped_at if span and not latest else job.finished_at),
        "appExitCode": code,
        "appExitSpec": spec,
        "appExitDiagnostics": job.error or None,
        "appExitMessages": _messages(job, failed) if ended else None,
        "appExitTriggerMessage": job.error or None if ended else None,
        "appExitTriggerTaskRoleName": None if failed is None else failed.name.rpartition("-")[0],
        "appExitTriggerTaskIndex": None if failed is None else int(failed.name.rpartition("-")[2]),
        "appExitType": exits.exit_type(spec),
        "virtualCluster": pool(job),
        "timeLimitSeconds": job.wall_time_seconds,  # ours; None: it may run as long as it takes
    }


def pool(job: Job) -> str:
    return job.spec.queue or job.spec.cluster


def _messages(job: Job, failed: TaskReport | None) -> dict[str, Any]:
    return {
        "container": failed.tail if failed is not None and failed.tail else None,
        "runtime": None if failed is None else failed.outcome,
        "launcher": job.error or None,
    }


def _task(found: JobDetail, name: str, role: RoleSpec, index: int, span: Span | None) -> dict[str, Any]:
    job = found.job
    latest = span is None or span.attempt == job.attempt
    task = report(found, role, index)
    put = placed(job, role, index) if latest else None
    word = states.task_state(task, job.state)
    ended = task.state.ended
    code = task_code(task, job.state) if ended else None
    attempt = attempt_number(job, span)
    return {
        "taskIndex": index,
        "taskUid": f"{job.id}-{attempt}-{task.name}",
        "taskState": word,
        "containerId": None if not job.attempt else f"{job.handle if span is None else span.handle}-{task.name}",
        "containerIp": None if put is None else put.address,
        "containerNodeName": node_name(job, put),
        "containerPorts": {} if put is None else ports(role, put),
        "containerGpus": None if put is None or not put.gpus else gpu_mask(put.gpus),
        "containerLog": log_address(job.user, name, attempt, role.name, index, task.restarts),
        "containerExitCode": code,
        "containerExitSpec": exits.task_spec(task, found, code) if ended else None,
        "containerExitDiagnostics": task.outcome if ended else None,
        "retries": task.restarts,
        "accountableRetries": task.restarts,
        "createdTime": milliseconds(job.created_at),
        "launchedTime": milliseconds(task.started_at),
        "completedTime": milliseconds(task.ended_at),
        "attemptId": task.restarts,
        "attemptState": word,
        "currentAttemptCreatedTime": milliseconds(job.created_at),
        "currentAttemptLaunchedTime": milliseconds(task.started_at),
        "currentAttemptCompletedTime": milliseconds(task.ended_at),
    }


def task_attempts(found: JobDetail, name: str, role: RoleSpec, index: int, span: Span | None) -> dict[str, Any]:
    """One task, with what is known of its runs: of those that it was started again after only the newest is."""
    one = _task(found, name, role, index, span)
    passed_on = (
        "taskUid",
        "taskState",
        "retries",
        "accountableRetries",
        "createdTime",
        "launchedTime",
        "completedTime",
    )
    return {
        "username": found.job.user,
        "jobName": name,
        "jobAttemptId": attempt_number(found.job, span),
        "taskRoleName": role.name,
        "taskIndex": index,
        **{field: one[field] for field in passed_on},
        "attempts": [one],
    }


def job_attempt(found: JobDetail, name: str, span: Span | None) -> dict[str, Any]:
    """One attempt, as the history of a job has it."""
    whole = detail(found, name, span)
    job, status = found.job, whole["jobStatus"]
    spec = status["appExitSpec"] or {}
    return {
        "jobName": name,
        "frameworkName": f"{job.user}~{name}",
        "uid": job.handle if span is None else span.handle,
        "userName": job.user,
        "state": status["attemptState"],
        "originState": status["subState"],
        "attemptIndex": status["attemptId"],
        "jobStartedTime": status["createdTime"],
        "attemptStartedTime": status["appLaunchedTime"],
        "attemptCompletedTime": status["appCompletedTime"],
        "exitCode": status["appExitCode"],
        "exitPhrase": spec.get("phrase"),
        "exitType": status["appExitType"],
        "exitDiagnostics": status["appExitDiagnostics"],
        **{field: value for field, value in status.items() if field.startswith("appExit")},
        "totalGpuNumber": sum(role.count * role.resources.gpus for role in job.spec.roles if role.resources),
        "totalTaskNumber": job.spec.tasks,
        "totalTaskRoleNumber": len(job.spec.roles),
        "taskRoles": whole["taskRoles"],
        "isLatest": span is None or span.attempt == job.attempt,
    }


def attempt_number(job: Job, span: Span | None) -> int:
    """OpenPAI counts from 0, we from 1."""
    return max(0, (job.attempt if span is None else span.attempt) - 1)


def attempt_state(span: Span | None, job: Job) -> str:
    """An attempt that another followed has failed, whatever for."""
    return states.FAILED if span is not None and span.attempt < job.attempt else states.state(job)


def first_failed(found: JobDetail) -> TaskReport | None:
    if found.job.state in (JobState.SUCCESS, JobState.KILLED):
        return None
    return lifecycle.first_failed(Report(tasks=found.tasks))


def code_of(task: TaskReport | None) -> int | None:
    if task is None:
        return None
    return _SIGNALLED + task.signal if task.signal is not None else task.exit_code


def task_code(task: TaskReport, job_state: JobState) -> int | None:
    if states.was_stopped(task, job_state):
        return states.STOPPED_BY_USER if job_state is JobState.KILLED else states.STOPPED_AT_THE_END
    if task.state is TaskState.SUCCEEDED:
        return 0
    found = code_of(task)
    return exits.NOBODY_KNOWS if found is None else found


def _exit_code(state: JobState, failed: int | None) -> int | None:
    """What the job ended with: 0, -210 where its user has stopped it, else what its first failed task ended with."""
    if not state.final:
        return None
    known = {JobState.SUCCESS: 0, JobState.KILLED: states.STOPPED_BY_USER, JobState.TIMEOUT: exits.TIMED_OUT}
    if state in known:
        return known[state]
    return exits.NOBODY_KNOWS if failed is None else failed


def _retries(attempt: int, retries: Mapping[str, int]) -> dict[str, Any]:
    user = sum(retries.get(reason, 0) for reason in _OF_USER) if retries else 0
    resource = retries.get(_OF_RESOURCES, 0)
    total = max(0, attempt - 1)
    return {
        "retries": total,
        "retryDetails": {"user": user, "platform": max(0, total - user - resource), "resource": resource},
        "retryDelayTime": None,
    }


def report(found: JobDetail, role: RoleSpec, index: int) -> TaskReport:
    name = task_name(role.name, index)
    waiting = TaskReport(name=name, state=TaskState.STARTING)
    return next((task for task in found.tasks if task.name == name), waiting)


def placed(job: Job, role: RoleSpec, index: int) -> TaskPlacement | None:
    tasks = () if job.placement is None else job.placement.tasks
    return next((task for task in tasks if task.role == role.name and task.index == index), None)


def node_name(job: Job, placed: TaskPlacement | None) -> str | None:
    if job.placement is None or placed is None:
        return None
    return placed.address or job.placement.cluster


def ports(role: RoleSpec, placed: TaskPlacement) -> dict[str, str]:
    """By label, those that every task has among them."""
    return {
        label: ",".join(str(placed.ports[place]) for place in places)
        for label, places in role.labels.items()
        if all(place < len(placed.ports) for place in places)
    }


def gpu_mask(gpus: Sequence[int]) -> int:
    """Which GPUs, a bit for each; those that JavaScript cannot count are left out."""
    return sum(1 << gpu for gpu in gpus if gpu < 52)


def log_address(user: str, name: str, attempt: int, role: str, index: int, run: int) -> str:
    return f"/api/v2/jobs/{user}~{name}/attempts/{attempt}/taskRoles/{role}/taskIndex/{index}/attempts/{run}/logs"


_REASONS = {
    JobState.SUBMIT: "Submitted",
    JobState.QUEUE: "FailedScheduling",
    JobState.SCHEDULE: "Scheduled",
    JobState.RUNNING: "Started",
    JobState.KILLING: "Killing",
    JobState.SUCCESS: "Completed",
    JobState.FAILED: "Failed",
    JobState.TIMEOUT: "Timeout",
    JobState.SCHEDULE_TIMEOUT: "FailedScheduling",
    JobState.KILLED: "Killed",
}
_WARNINGS = (JobState.QUEUE, JobState.FAILED, JobState.TIMEOUT, JobState.SCHEDULE_TIMEOUT)


def events(found: JobDetail, name: str, now: datetime) -> list[dict[str, Any]]:
    """What happened to a job, oldest first; while it waits, the last one says what for."""
    listed = [_event(found.job, name, moved) for moved in found.history]
    why = waits_for(found)
    if why:
        since = found.job.waits_since
        listed.append(
            _told(found.job, name, f"{found.job.id}-waits", "FailedScheduling", why, since, now, warning=True)
        )
    return listed


def waits_for(found: JobDetail) -> str:
    """Why a job waits, with its place; "" if it does not."""
    job = found.job
    if not (job.state.waiting or job.waits_there):
        return ""
    place = found.forecast
    words = (
        [] if place is None else ["first in the queue" if place.position == 1 else f"{place.position - 1} before it"]
    )
    if place is not None and place.about_at is not None:
        words[-1] += f", starts by {place.about_at:%Y-%m-%d %H:%M} UTC"
    return "; ".join([*words, *([job.queue_reason] if job.queue_reason else [])]) or "it has just come in"


def _event(job: Job, name: str, moved: Moved) -> dict[str, Any]:
    warning = moved.to_state in _WARNINGS
    reason, uid = _REASONS[moved.to_state], f"{job.id}-{moved.seq}"
    return _told(job, name, uid, reason, moved.why or moved.to_state.label, moved.at, moved.at, warning=warning)


def _told(
    job: Job, name: str, uid: str, reason: str, message: str, first: datetime, last: datetime, *, warning: bool
) -> dict[str, Any]:
    return {
        "uid": uid,
        "frameworkName": f"{job.user}~{name}",
        "podUid": None,
        "taskroleName": None,
        "taskName": None,
        "taskIndex": None,
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message,
        "firstTimestamp": milliseconds(first),
        "lastTimestamp": milliseconds(last),
        "count": 1,
        "sourceComponent": "paddlecloud",
        "sourceHost": None,
    }
