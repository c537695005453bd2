"""What may be done with jobs and by whom: submit, get, list, kill. Another user's job is as good as none."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection
from datetime import datetime

from paddlecloud.model import lifecycle, paths, wire
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from paddlecloud.model.job import Job, JobSpec
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport
from paddlecloud.model.user import User
from paddlecloud.model.views import JobDetail, JobPage
from paddlecloud.scheduler.plan import Snapshot, forecast
from paddlecloud.server import submission
from paddlecloud.server.clusters import Clusters
from paddlecloud.store.jobs import Idempotency, Jobs

_KILL_TRIES = 20


class JobService:
    def __init__(
        self,
        *,
        jobs: Jobs,
        clusters: Clusters,
        limits: submission.Limits,
        check_tree: Callable[[str, str], object],  # user, tree id; NotFoundError
        snapshot: Callable[[], Snapshot],
        clock: Callable[[], datetime],
        on_change: Callable[[], None],
    ) -> None:
        self._jobs = jobs
        self._clusters = clusters
        self._limits = limits
        self._check_tree = check_tree
        self._snapshot = snapshot
        self._clock = clock
        self._on_change = on_change

    def check(self, user: User, spec: JobSpec) -> JobSpec:
        """The job as it would be recorded; raise what is wrong with it."""
        submission.check_shape(spec, self._limits)
        accepted = submission.accept(spec, self._clusters.offers(spec.cluster), user.quota, self._limits)
        if spec.tree is not None:
            self._require_tree(user, spec.tree)
        return accepted

    def submit(self, user: User, spec: JobSpec, *, idempotency_key: str | None = None) -> Job:
        idempotency = _idempotency(spec, idempotency_key)
        if idempotency is not None and (earlier := self._jobs.submitted(user.name, idempotency)) is not None:
            return earlier
        accepted = self.check(user, spec)
        job = Job(id=paths.job_id(secrets.token_bytes(16)), user=user.name, spec=accepted, created_at=self._clock())
        recorded = self._jobs.add(job, group=group(user.name, spec), idempotency=idempotency)
        self._on_change()
        return recorded

    def get(self, user: User, job_id: str, *, everyone: bool = False) -> Job:
        """`everyone`: the caller may see the jobs of all users."""
        try:
            job = self._jobs.get(job_id)
        except NotFoundError:
            raise _no_such_job(job_id) from None
        if not everyone and job.user != user.name:
            raise _no_such_job(job_id)
        return job

    def detail(self, user: User, job_id: str, *, everyone: bool = False) -> JobDetail:
        job = self.get(user, job_id, everyone=everyone)
        return JobDetail(
            job=job,
            tasks=tuple(self._jobs.tasks(job_id)),
            history=tuple(self._jobs.history(job_id)),
            forecast=forecast(self._snapshot()).get(job_id) if job.state.waiting else None,
            log_tasks=tuple(task_names(job)) if job.attempt else (),
        )

    def tasks(self, user: User, job_id: str, *, everyone: bool = False) -> list[TaskReport]:
        return self._jobs.tasks(self.get(user, job_id, everyone=everyone).id)

    def list(
        self,
        user: User,
        *,
        of: str | None = None,
        everyone: bool = False,
        all_users: bool = False,
        states: Collection[JobState] | None = None,
        name: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """The caller's own jobs; `of` another user or of `all_users` if they may see everyone's."""
        if (all_users or of not in (None, user.name)) and not everyone:
            raise ForbiddenError(f"{user.name} may list only their own jobs: those of others are for an admin")
        return self._jobs.list(
            user=None if all_users and of is None else of or user.name,
            states=states,
            name=name,
            cursor=cursor,
            limit=limit,
        )

    def kill(self, user: User, job_id: str, *, everyone: bool = False) -> Job:
        """Ask for the job's end. The scheduler may move it at the same time, so a lost race is run again."""
        for _ in range(_KILL_TRIES):
            job = self.get(user, job_id, everyone=everyone)
            move = lifecycle.kill(job, self._clock(), by=user.name)
            if move is None:
                return job
            try:
                killed = self._jobs.move(job, move)
            except ConflictError:
                continue
            self._on_change()
            return killed
        raise ConflictError(f"{job_id} changes too quickly to be killed now: try again")

    def _require_tree(self, user: User, tree: str) -> None:
        try:
            self._check_tree(user.name, tree)
        except NotFoundError:
            raise InvalidError(
                f"tree {tree!r} has not been uploaded by {user.name}: post its manifest and chunks first", field="tree"
            ) from None


def task_names(job: Job) -> list[str]:
    return [paths.task_name(role.name, index) for role in job.spec.roles for index in range(role.count)]


def group(user: str, spec: JobSpec) -> str:
    """Names jobs that are likely to behave alike: the same user, commands and folder, whatever was edited in it."""
    parts = [user, *(f"{role.name}={role.command}" for role in spec.roles), spec.folder]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _no_such_job(job_id: str) -> NotFoundError:
    return NotFoundError(f"no job {job_id!r} of yours; `paddlecloud ls` lists them")


def _idempotency(spec: JobSpec, key: str | None) -> Idempotency | None:
    if key is None:
        return None
    if not 0 < len(key) <= 200 or not key.isprintable() or not key.isascii():
        raise InvalidError("Idempotency-Key must be 1 to 200 printable ASCII characters", field="Idempotency-Key")
    return Idempotency(key=key, body_hash=hashlib.sha256(wire.encode(spec)).hexdigest())
