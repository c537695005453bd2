"""Jobs, moves and reports to put into a store."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from paddlecloud.model import paths
from paddlecloud.model.job import Job, JobSpec, Placement, Resources, RoleSpec, TaskPlacement
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import HELD, JobState, StopReason
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.store.jobs import Jobs

NOW = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)

SPEC = JobSpec(
    name="fit-a-line",
    roles=(
        RoleSpec(name="trainer", count=2, command="sh run.sh", resources=Resources(cpus=0.5, memory_bytes=2**33)),
        RoleSpec(name="pserver", count=1, command="sh run.sh", min_failed=2, min_succeeded=0),
    ),
    env={"GREETING": '你好\0 "quoted"\n'},
    wall_time_seconds=1800,
    priority=-3,
)

PLACEMENT = Placement(
    cluster="local",
    tasks=(
        TaskPlacement(
            role="trainer",
            index=0,
            resources=Resources(cpus=0.5, memory_bytes=2**33, gpus=1),
            address="127.0.0.2",
            ports=(7164, 7165),
            gpus=(3,),
        ),
    ),
)

WAY_TO = {
    JobState.SUBMIT: (),
    JobState.QUEUE: (JobState.QUEUE,),
    JobState.SCHEDULE: (JobState.SCHEDULE,),
    JobState.RUNNING: (JobState.SCHEDULE, JobState.RUNNING),
    JobState.KILLING: (JobState.SCHEDULE, JobState.RUNNING, JobState.KILLING),
    JobState.SUCCESS: (JobState.SCHEDULE, JobState.RUNNING, JobState.SUCCESS),
    JobState.KILLED: (JobState.KILLED,),
}


def a_job(user: str = "ann", **of_spec: Any) -> Job:
    spec = replace(SPEC, **of_spec)
    return Job(id=paths.job_id(secrets.token_bytes(16)), user=user, spec=spec, created_at=NOW)


def the_job(job_id: str, user: str = "ann") -> Job:
    """A job of this id."""
    return replace(a_job(user), id=job_id)


def added(jobs: Jobs, user: str = "ann", **of_spec: Any) -> Job:
    return jobs.add(a_job(user, **of_spec), group="group")


def a_move(to: JobState, minutes: float = 0, why: str = "because") -> Move:
    return Move(
        to=to,
        at=NOW + timedelta(minutes=minutes),
        why=why,
        placement=PLACEMENT if to is JobState.SCHEDULE else None,
        stop=None if to in HELD - {JobState.KILLING} else StopReason.ASKED,
        error="" if to in HELD - {JobState.KILLING} else "an error",
    )


def brought_to(jobs: Jobs, state: JobState, user: str = "ann") -> Job:
    """A new job, moved to this state."""
    job = added(jobs, user)
    for minutes, step in enumerate(WAY_TO[state], 1):
        job = jobs.move(job, a_move(step, minutes))
    return job


def a_report(*tasks: TaskReport) -> Report:
    return Report(tasks=tasks)


def a_task(name: str = "trainer-0", state: TaskState = TaskState.RUNNING, **fields: Any) -> TaskReport:
    return TaskReport(name=name, state=state, **fields)
