"""What a job's own tasks may send from other machines, by a token that is good for one attempt of one job alone.

The token is a signature of the server's, so it needs no record, and it ends with the attempt.
"""

from __future__ import annotations

import hmac

from paddlecloud.files.arriving import ArrivingLogs
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError, UnauthenticatedError
from paddlecloud.model.job import Job
from paddlecloud.model.log import LogLength
from paddlecloud.server.jobs import task_names
from paddlecloud.store.jobs import Jobs
from paddlecloud.store.secrets import Cipher

TOKEN_PREFIX = "pcj_"
_PURPOSE = "tasks"


class Shipping:
    def __init__(self, *, jobs: Jobs, logs: ArrivingLogs, cipher: Cipher) -> None:
        self._jobs = jobs
        self._logs = logs
        self._cipher = cipher

    def token(self, job: Job) -> str:
        """What the tasks of this attempt identify themselves with."""
        return TOKEN_PREFIX + self._cipher.sign(job.handle, _PURPOSE)

    def identify(self, job_id: str, authorization: str) -> Job:
        """The job whose running attempt this is the token of."""
        scheme, _, token = authorization.strip().partition(" ")
        try:
            job = self._jobs.get(job_id)
        except NotFoundError:
            job = None
        if scheme.lower() != "bearer" or job is None or not _equal(token.strip(), self.token(job)):
            raise UnauthenticatedError(f"this is not the token of the tasks of {job_id!r}, in its last attempt")
        if not job.state.held:
            raise ConflictError(f"{job.id} is in {job.state.label}: its logs are closed")
        return job

    def append_log(self, job: Job, task: str, offset: int, piece: bytes) -> LogLength:
        if task not in task_names(job):
            raise NotFoundError(f"{job.id} has no task {task!r}", field="task")
        if not 0 <= offset < 2**63:
            raise InvalidError("offset must be the byte where the piece begins, 0 or above", field="offset")
        return LogLength(length=self._logs.append(job, task, offset, piece))


def _equal(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
