"""Converts a job's record to a database row and back."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Row

from paddlecloud.model.job import Job, JobSpec, Placement
from paddlecloud.model.state import JobState, StopReason

# Lenient, unlike the wire format: a record may contain fields of an earlier version that this one does not know.
_SPEC = msgspec.json.Decoder(JobSpec)
_PLACEMENT = msgspec.json.Decoder(Placement)

_RETRIES = msgspec.json.Decoder(dict[str, int])
_PASSED = msgspec.json.Decoder(dict[str, str])

Values = dict[str, Any]


def new_row(job: Job, group: str) -> Values:
    """All columns of a newly submitted job."""
    fixed = {
        "id": job.id,
        "user": job.user,
        "name": job.spec.name,
        "priority": job.spec.priority,
        "group_hash": group,
        "created_at": job.created_at,
        "tree": job.spec.tree,
        "spec": msgspec.json.encode(job.spec).decode(),
        "pool": job.spec.queue or job.spec.cluster,
        "roles": len(job.spec.roles),
        "tasks": job.spec.tasks,
        "gpus": sum(role.count * role.resources.gpus for role in job.spec.roles if role.resources is not None),
    }
    return fixed | changing(job)


def changing(job: Job) -> Values:
    """The columns that a move may change."""
    placement = job.placement
    return {
        "state": job.state.value,
        "version": job.version,
        "attempt": job.attempt,
        "retries": msgspec.json.encode(job.retries).decode(),
        "cluster": cluster(job),
        "placement": None if placement is None else msgspec.json.encode(placement).decode(),
        "stop": None if job.stop is None else job.stop.value,
        "queued_at": job.queued_at,
        "queue_reason": job.queue_reason,
        "error": job.error,
        "started_at": job.started_at,
        "running_since": job.running_since,
        "finished_at": job.finished_at,
        "quiet_since": job.quiet_since,
        "passed": msgspec.json.encode(job.passed).decode(),
        "duration_seconds": duration_seconds(job),
    }


def cluster(job: Job) -> str:
    """The cluster the job is on, or requests while it waits."""
    return job.spec.cluster if job.placement is None else job.placement.cluster


def duration_seconds(job: Job) -> float | None:
    """How long the last attempt of an ended job ran, for predictions; None if it never ran."""
    if job.finished_at is None or job.running_since is None:
        return None
    return max(0.0, (job.finished_at - job.running_since).total_seconds())


def job(row: Row[Any], spec: JobSpec | None = None) -> Job:
    """Decode a full row; pass `spec` if it was decoded before, since it never changes."""
    return Job(
        id=row.id,
        user=row.user,
        spec=spec or _SPEC.decode(row.spec),
        created_at=row.created_at,
        state=JobState(row.state),
        version=row.version,
        attempt=row.attempt,
        retries=_RETRIES.decode(row.retries),
        placement=None if row.placement is None else _PLACEMENT.decode(row.placement),
        stop=None if row.stop is None else StopReason(row.stop),
        queued_at=row.queued_at,
        queue_reason=row.queue_reason,
        error=row.error,
        started_at=row.started_at,
        running_since=row.running_since,
        finished_at=row.finished_at,
        quiet_since=row.quiet_since,
        passed=_PASSED.decode(row.passed),
    )
