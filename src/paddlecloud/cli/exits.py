"""The exit codes, which scripts rely on: they never change their meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddlecloud.model.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    RateError,
    UnauthenticatedError,
    UnreachableError,
)
from paddlecloud.model.state import JobState

if TYPE_CHECKING:
    from paddlecloud.model.views import JobDetail

OTHER = 1
USAGE = 2
NOT_ALLOWED = 3
UNREACHABLE = 4
JOB_FAILED = 100
NOT_FINISHED = 101
NOT_FOUND = 102
KILLED = 103
TIMED_OUT = 104

_OF_ERRORS = (
    (InvalidError, USAGE),
    (UnauthenticatedError, NOT_ALLOWED),
    (ForbiddenError, NOT_ALLOWED),
    (RateError, NOT_ALLOWED),
    (UnreachableError, UNREACHABLE),
    (NotFoundError, NOT_FOUND),
)

_OF_STATES = {
    JobState.SUCCESS: 0,
    JobState.FAILED: JOB_FAILED,
    JobState.KILLED: KILLED,
    JobState.TIMEOUT: TIMED_OUT,
    JobState.SCHEDULE_TIMEOUT: TIMED_OUT,
}


def exit_code(error: PaddleCloudError) -> int:
    return next((code for kind, code in _OF_ERRORS if isinstance(error, kind)), OTHER)


def job_exit_code(detail: JobDetail, *, own: bool = False) -> int:
    """How a job ended; with `own` the exit code of the task that failed first, as a shell would give it."""
    if own:
        from paddlecloud.cli.explain import first_failed

        failed = first_failed(detail)
        if failed is not None and failed.signal is not None:
            return 128 + failed.signal
        if failed is not None and failed.exit_code:
            return failed.exit_code
    return _OF_STATES.get(detail.job.state, NOT_FINISHED)
