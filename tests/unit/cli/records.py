"""Records for tests of how they look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from paddlecloud.model.job import Job, JobSpec, Placement, Resources, RoleSpec, TaskPlacement
from paddlecloud.model.state import JobState

CREATED = datetime(2020, 5, 17, 10, 15, 28, tzinfo=UTC)
ID = "job-0650470e621f3688812ceda2079805f8"


def a_job(**changes: Any) -> Job:
    """Seed 000's job, as it ended."""
    task = TaskPlacement(role="trainer", index=0, resources=Resources(cpus=1.0))
    spec = JobSpec(
        roles=(RoleSpec(name="trainer", count=1, command="sh run.sh"),), job_type="gpu", wall_time_seconds=1800
    )
    job = Job(
        id=ID,
        user="zhangsan",
        spec=spec,
        created_at=CREATED,
        state=JobState.SUCCESS,
        attempt=1,
        placement=Placement(cluster="local", tasks=(task,)),
        started_at=CREATED + timedelta(seconds=19),
        finished_at=CREATED + timedelta(seconds=343),
    )
    return replace(job, **changes)
