"""How long jobs take at most, and when those that are placed end: pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from paddlecloud.model.job import Job
from paddlecloud.model.state import JobState

_UNLIMITED = timedelta(days=1)
UNKNOWN = timedelta(days=366)  # what a job without a limit takes where a time is told: nobody knows, so none is
_SOON = timedelta(minutes=1)


def expected(job: Job, unlimited: timedelta = _UNLIMITED) -> timedelta:
    """How long a job may take; one without a limit is taken for a day."""
    limit = job.wall_time_seconds
    return unlimited if limit is None else timedelta(seconds=limit)


def is_known(at: datetime, now: datetime) -> bool:
    """Whether a time depends on no job without a limit."""
    return at - now < UNKNOWN / 2


def ends_at(job: Job, now: datetime, unlimited: timedelta = _UNLIMITED) -> datetime:
    """When a placed job has ended at the latest; one that is over its time or is being stopped does so soon."""
    if job.state is JobState.KILLING:
        return now + _SOON
    return max((job.running_since or now) + expected(job, unlimited), now + _SOON)
