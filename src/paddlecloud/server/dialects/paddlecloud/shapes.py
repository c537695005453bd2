"""Jobs, workers and quotas as the Go client of PaddlePaddle Cloud reads them: objects of Kubernetes, pure.

The client panics where a field is not what it expects, so every worker has one container status, every quota its GPUs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from paddlecloud.model.job import PSERVER, Job, Resources, RoleSpec
from paddlecloud.model.paddlepaddle import worker_name
from paddlecloud.model.paths import task_name
from paddlecloud.model.registry import OLD_PREFIX
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport, TaskState

_PHASES = {
    TaskState.STARTING: "Pending",
    TaskState.RUNNING: "Running",
    TaskState.SUCCEEDED: "Succeeded",
    TaskState.FAILED: "Failed",
    TaskState.LOST: "Failed",
}
# What the old runtime left as the last words of a trainer.
_LAST_WORDS = {
    1: "General Error",
    134: "Program Abort",
    136: "Error Arithmetic Operation(Floating Point Exception)",
    139: "Segmentation Fault",
}
_SIGNALLED = 128


def items(found: Iterable[Mapping[str, Any]], kind: str) -> dict[str, Any]:
    return {
        "api_version": "v1",
        "items": list(found),
        "kind": kind,
        "metadata": {"resource_version": None, "self_link": None},
    }


def trainers(job: Job, tasks: Sequence[TaskReport]) -> dict[str, Any]:
    """A job as `get jobs` shows it; what is 0 is null, as in Kubernetes."""
    of_trainers = [task for task in tasks if not _is_pserver(task.name)]
    active = sum(not task.state.ended for task in of_trainers)
    if not job.state.final and not of_trainers:
        active = job.spec.trainers if job.state.held else 0
    return _item(
        f"{job.spec.name}-trainer",
        job.created_at,
        status={
            "active": active or None,
            "completion_time": _time(job.finished_at) if job.state is JobState.SUCCESS else None,
            "conditions": None,
            "failed": sum(task.state in (TaskState.FAILED, TaskState.LOST) for task in of_trainers) or None,
            "start_time": _time(job.started_at),
            "succeeded": sum(task.state is TaskState.SUCCEEDED for task in of_trainers) or None,
        },
    )


def pservers(job: Job, tasks: Sequence[TaskReport]) -> dict[str, Any] | None:
    """The parameter servers of a job; None: it has none."""
    role = next((role for role in job.spec.roles if role.name == PSERVER), None)
    if role is None:
        return None
    ready = sum(_is_pserver(task.name) and task.state is TaskState.RUNNING for task in tasks)
    return _item(f"{job.spec.name}-pserver", job.created_at, status={"ready_replicas": ready, "replicas": role.count})


def workers(job: Job, tasks: Sequence[TaskReport], *, all_roles: bool = False) -> list[dict[str, Any]]:
    """A job's trainers as `get workers` shows them; before they have a place they are Pending."""
    reports = {task.name: task for task in tasks}
    roles = [role for role in job.spec.roles if all_roles or role.name != PSERVER]
    return [_worker(job, role, index, reports) for role in roles for index in range(role.count)]


def quota(cluster: str, capacity: Resources | None, instances: int | None, created_at: datetime) -> dict[str, Any]:
    """What a user may have of a cluster; every value is a text, or the first clients panic."""
    has = capacity or Resources()
    hard = {
        "alpha.kubernetes.io/nvidia-gpu": str(has.gpus),
        "pods": "unlimited" if instances is None else str(instances),
        "requests.cpu": f"{has.cpus:g}" if capacity else "unknown",
        "requests.memory": _binary(has.memory_bytes) if capacity else "unknown",
    }
    return _item(cluster, created_at, status={"hard": hard, "used": {}}) | {"spec": {"hard": hard}}


def registry(name: str, created_at: datetime) -> dict[str, Any]:
    return _item(f"{OLD_PREFIX}{name}", created_at, status=None)


def _worker(job: Job, role: RoleSpec, index: int, reports: Mapping[str, TaskReport]) -> dict[str, Any]:
    name = task_name(role.name, index)
    report = reports.get(name) or _unreported(job, name)
    status = {
        "container_statuses": [{"name": role.name, "state": _container_state(job, report)}],
        "phase": _PHASES[report.state],
        "start_time": _time(report.started_at),
    }
    return _item(worker_name(job, name), job.created_at, status=status)


def _unreported(job: Job, task: str) -> TaskReport:
    """A task without a report waits for its place or, in a job that has ended, was stopped before it had one."""
    if job.state.final:
        return TaskReport(name=task, state=TaskState.FAILED, reason=job.error or "stopped before it started")
    return TaskReport(name=task, state=TaskState.STARTING)


def _container_state(job: Job, report: TaskReport) -> dict[str, Any]:
    state: dict[str, Any] = {"running": None, "terminated": None, "waiting": None}
    if report.state is TaskState.STARTING:
        state["waiting"] = {"message": None, "reason": job.queue_reason or "ContainerCreating"}
    elif report.state is TaskState.RUNNING:
        state["running"] = {"started_at": _time(report.started_at)}
    else:
        state["terminated"] = {
            "exit_code": _exit_code(report),
            "finished_at": _time(report.ended_at),
            "message": _last_words(report),
            "started_at": _time(report.started_at),
        }
    return state


def _exit_code(report: TaskReport) -> int:
    if report.exit_code is not None:
        return report.exit_code
    return _SIGNALLED + report.signal if report.signal is not None else 1


def _last_words(report: TaskReport) -> str | None:
    """In one line, or the client's table breaks."""
    if report.state is TaskState.SUCCEEDED:
        return None
    words = report.reason or _LAST_WORDS.get(_exit_code(report)) or report.outcome
    return " ".join(words.split())


def _item(name: str, created_at: datetime, *, status: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "api_version": None,
        "kind": None,
        "metadata": {"creation_timestamp": _time(created_at), "labels": None, "name": name, "uid": None},
        "spec": None,
        "status": status,
    }


def _binary(size: int) -> str:
    """A size as Kubernetes writes it: 32Gi, or 1500Mi."""
    return f"{size >> 30}Gi" if size and size % 2**30 == 0 else f"{size >> 20}Mi"


def _is_pserver(task: str) -> bool:
    return task.rpartition("-")[0] == PSERVER


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
