"""What may be done with jobs and by whom: submit, get, list, kill. Another user's job is as good as none."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import datetime
from threading import Lock

from msgspec.structs import replace

from paddlecloud.model import lifecycle, paddlepaddle, paths, wire
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from paddlecloud.model.job import Job, JobSpec
from paddlecloud.model.kept import Kept, Removed, kinds_at
from paddlecloud.model.openpai import submitted as openpai
from paddlecloud.model.state import LIVE, JobState
from paddlecloud.model.task import TaskReport
from paddlecloud.model.user import User
from paddlecloud.model.views import Forecast, JobDetail, JobPage
from paddlecloud.scheduler.plan import Snapshot, forecast
from paddlecloud.scheduler.queues import options_of
from paddlecloud.server import submission
from paddlecloud.server.audit import AuditService, Origin
from paddlecloud.server.clusters import Clusters
from paddlecloud.server.queues import Queues
from paddlecloud.server.rates import Rates
from paddlecloud.store.configs import Written
from paddlecloud.store.jobs import Idempotency, Jobs

_KILL_TRIES = 20
_NAMING = (paddlepaddle.FACE, openpai.FACE)


class JobService:
    def __init__(
        self,
        *,
        jobs: Jobs,
        clusters: Clusters,
        queues: Queues,
        limits: submission.Limits,
        in_pfs: Callable[[User, JobSpec], JobSpec],  # the job with its datacenter and its package as they are
        check_storage: Callable[[User, JobSpec], None],  # raises what is wrong with storage of the user's own
        check_inputs: Callable[[User, JobSpec], JobSpec],  # the job with its inputs as they are
        sending: Callable[[Job], str],  # what keeps its results from that storage
        notes: Callable[[Job], Sequence[str]],  # what it asks for, in another system's words, and does not get
        find_registry: Callable[[str, str], object],  # user, name of a secret; NotFoundError
        hold_tree: Callable[[str, str], AbstractContextManager[object]],  # user, tree id; NotFoundError
        removed: Callable[[str], Sequence[Removed]],  # what a job has no more
        snapshot: Callable[[], Snapshot],
        rates: Rates,
        audit: AuditService,
        clock: Callable[[], datetime],
        on_change: Callable[[], None],
    ) -> None:
        self._jobs = jobs
        self._clusters = clusters
        self._queues = queues
        self._limits = limits
        self._in_pfs = in_pfs
        self._find_registry = find_registry
        self._check_storage = check_storage
        self._check_inputs = check_inputs
        self._sending = sending
        self._notes = notes
        self._hold_tree = hold_tree
        self._removed = removed
        self._snapshot = snapshot
        self._rates = rates
        self._audit = audit
        self._clock = clock
        self._on_change = on_change
        self._naming = Lock()

    def check(self, user: User, spec: JobSpec) -> JobSpec:
        """The job as it would be recorded; raise what is wrong with it."""
        accepted = self._accepted(user, spec)
        self._check_name(user.name, accepted)
        with self._tree(user, spec):
            return accepted

    def submit(
        self,
        user: User,
        spec: JobSpec,
        *,
        origin: Origin,
        idempotency_key: str | None = None,
        written: Callable[[str], Written] | None = None,  # by its id, what the job was written as
    ) -> Job:
        idempotency = _idempotency(spec, idempotency_key)
        if idempotency is not None and (earlier := self._jobs.submitted(user.name, idempotency)) is not None:
            return earlier
        self._rates.submit(user.name, origin.address, self._clock())
        accepted = self._accepted(user, spec)
        job = Job(id=paths.job_id(secrets.token_bytes(16)), user=user.name, spec=accepted, created_at=self._clock())
        act = self._audit.beside(Action.JOB_SUBMIT, origin, user=user.name, target=job.id)
        with self._tree(user, spec), self._named(job), act:
            recorded = self._jobs.add(
                job,
                group=group(user.name, spec),
                idempotency=idempotency,
                written=None if written is None else written(job.id),
            )
        self._on_change()
        return recorded

    def kill_named(self, user: User, name: str, *, origin: Origin) -> None:
        """As PaddlePaddle Cloud does: the live job of this name is killed; one that has ended leaves the lists."""
        live = self._jobs.list(user=user.name, states=LIVE, name=name, hidden=True, limit=2).items
        if len(live) > 1:
            raise ConflictError(f"several live jobs are called {name!r}: kill one by its id, such as {live[0].id}")
        if live:
            self.kill(user, live[0].id, origin=origin)
            return
        ended = self._jobs.list(user=user.name, name=name, limit=1).items
        if not ended:
            raise NotFoundError(f"no job {name!r} of yours; `paddlecloud get jobs` lists them")
        self.hide(user, ended[0].id, origin=origin)

    def named(self, user: User, name: str) -> Job | None:
        """The live job of this name, else the newest, whether or not it was killed or taken out of the lists."""
        for states in (LIVE, None):
            found = self._jobs.list(user=user.name, states=states, name=name, hidden=True, limit=1).items
            if found:
                return found[0].seen
        return None

    def hide(self, user: User, job_id: str, *, origin: Origin, everyone: bool = False) -> None:
        """Take a job out of the lists; all that is known of it stays, by its id."""
        job = self.get(user, job_id, everyone=everyone)
        with self._audit.beside(Action.JOB_HIDE, origin, user=user.name, target=job.id):
            self._jobs.hide(job.id)

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
        removed = self._removed(job_id) if job.state.final else ()
        has_no_logs = any(one.kind is Kept.LOGS for one in removed)
        return JobDetail(
            job=job.seen,
            tasks=tuple(self._jobs.tasks(job_id)),
            history=tuple(self._jobs.history(job_id)),
            forecast=self._forecast(job),
            log_tasks=tuple(task_names(job)) if job.attempt and not has_no_logs else (),
            removed=tuple(removed),
            sending=self._sending(job),
            notes=tuple(self._notes(job)),
            longest_seconds=self._longest(job) if job.state is JobState.TIMEOUT else None,
        )

    def _longest(self, job: Job) -> int | None:
        """The longest run that a job like this one could ask for now; None: any."""
        try:
            offers = self._clusters.offers(job.spec.cluster, job.user)
        except InvalidError:  # its cluster is configured no more
            return None
        allowed = [submission.longest(offer) for offer in offers]
        of_user = None if None in allowed else max((one for one in allowed if one is not None), default=None)
        both = (of_user, self._queues.longest(job.spec.queue))
        return min((one for one in both if one is not None), default=None)

    def check_kept(self, job: Job, path: str) -> None:
        """Raise NotFoundError, with when and why, if nothing at and below a path of its results is kept any more."""
        kinds = kinds_at(paths.below_output(job.id, path))
        removed = [one for one in self._removed(job.id) if one.kind in kinds] if job.state.final else []
        if len(removed) == len(kinds):
            raise NotFoundError("; ".join(one.sentence(job.id) for one in removed))

    @contextmanager
    def telling_removed(self, job: Job, path: str) -> Iterator[None]:
        """If a file of a job is not found within, say so if it was once there."""
        try:
            yield
        except NotFoundError:
            self.check_kept(job, path)
            raise

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
        page = self._jobs.list(
            user=None if all_users and of is None else of or user.name,
            states=states,
            seen=True,
            name=name,
            cursor=cursor,
            limit=limit,
        )
        return replace(page, items=tuple(job.seen for job in page.items))

    def kill(self, user: User, job_id: str, *, origin: Origin, everyone: bool = False) -> Job:
        """Ask for the job's end. The scheduler may move it at the same time, so a lost race is run again."""
        for _ in range(_KILL_TRIES):
            job = self.get(user, job_id, everyone=everyone)
            move = lifecycle.kill(job, self._clock(), by=user.name)
            if move is None:
                return job
            try:
                with self._audit.beside(
                    Action.JOB_KILL, origin, user=user.name, target=job.id, detail=f"of {job.user}"
                ):
                    killed = self._jobs.move(job, move)
            except ConflictError:
                continue
            self._on_change()
            return killed
        raise ConflictError(f"{job_id} changes too quickly to be killed now: try again")

    def _forecast(self, job: Job) -> Forecast | None:
        """Where a job stands that waits here, or in the queue of its cluster."""
        if job.state.waiting:
            return forecast(self._snapshot()).get(job.id)
        return self._clusters.forecast(job) if job.waits_there else None

    def _accepted(self, user: User, spec: JobSpec) -> JobSpec:
        submission.check_shape(spec, self._limits)
        spec = self._in_pfs(user, self._queues.enter(user.name, spec))
        if spec.registry:
            self._find_registry(user.name, spec.registry)
        limits = self._queues.limits(spec, self._limits)
        own_nodes = options_of(spec, self._queues.terms) if spec.own_nodes else None
        accepted = submission.accept(spec, self._clusters.offers(spec.cluster, user.name, own_nodes), limits)
        self._check_storage(user, accepted)
        return self._check_inputs(user, accepted) if accepted.inputs else accepted

    @contextmanager
    def _named(self, job: Job) -> Iterator[None]:
        """Where names tell jobs apart, no other job of this one comes between looking for its name and taking it."""
        if job.spec.face not in _NAMING:
            yield
            return
        with self._naming:
            self._check_name(job.user, job.spec)
            yield

    def _check_name(self, user: str, spec: JobSpec) -> None:
        """Refuse a name that a live job has, where names tell jobs apart; of OpenPAI, one that any job has."""
        if spec.face == openpai.FACE and self._jobs.list(user=user, name=spec.name, limit=1).items:
            raise ConflictError(f"Job {user}~{spec.name} already exists.", field="name")
        if spec.face != paddlepaddle.FACE:
            return
        live = self._jobs.list(user=user, states=LIVE, name=spec.name, hidden=True, limit=1).items
        if live and live[0].state is JobState.KILLING:
            raise ConflictError(f"job {spec.name!r} already exists, and is ending: submit again when it is gone")
        if live:
            raise ConflictError(
                f"job {spec.name!r} already exists ({live[0].state.label}): kill it first "
                f"(paddlecloud kill {spec.name}), or give this one another -jobname"
            )

    @contextmanager
    def _tree(self, user: User, spec: JobSpec) -> Iterator[None]:
        """The job's uploaded folder is there, and is not taken away meanwhile."""
        with ExitStack() as held:
            try:
                if spec.tree is not None:
                    held.enter_context(self._hold_tree(user.name, spec.tree))
            except NotFoundError:
                raise InvalidError(
                    f"tree {spec.tree!r} has not been uploaded by {user.name}, or not lately: "
                    "post its manifest and chunks first",
                    field="tree",
                ) from None
            yield


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
    # Whoever repeats a submit has sent the key to their storage again too, and it has another id.
    body = wire.encode(replace(spec, storage_key=""))
    return Idempotency(key=key, body_hash=hashlib.sha256(body).hexdigest())
