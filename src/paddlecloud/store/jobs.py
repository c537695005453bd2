"""Records jobs and their state changes.

Invariant: a job's state changes only here. The check against the table of moves, the compare-and-set on `version`, the
history row and the attempt row are one transaction, so a job's history is always complete. Nothing else calls `apply`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, case, false, func, insert, not_, or_, select, true, update
from sqlalchemy.exc import IntegrityError

from paddlecloud.model import lifecycle
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.job import Job, Moved
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import WAITING, JobState
from paddlecloud.model.task import BUILDING, Report, TaskReport
from paddlecloud.model.views import JobPage
from paddlecloud.store import attempts, buckets, configs, cursors, history, records
from paddlecloud.store.attempts import Held, Span
from paddlecloud.store.batches import batches
from paddlecloud.store.configs import Written
from paddlecloud.store.db import Database
from paddlecloud.store.live import LiveJobs
from paddlecloud.store.schema import attempts as attempt_table
from paddlecloud.store.schema import history as history_table
from paddlecloud.store.schema import idempotency as idempotency_table
from paddlecloud.store.schema import jobs as job_table

PAGE_LIMIT = 1000

# Statements are built once: building one takes longer than executing it.
_GET = select(job_table).where(job_table.c.id == bindparam("sought"))
_VERSIONS = (
    select(job_table.c.id, job_table.c.version)
    .where(job_table.c.id.in_(bindparam("ids", expanding=True)))
    .with_for_update()
)
_SUBMITTED = select(idempotency_table.c.body_hash, idempotency_table.c.job).where(
    idempotency_table.c.user == bindparam("submitter"), idempotency_table.c.key == bindparam("sought")
)
_ADD_JOB = insert(job_table)
_ADD_HISTORY = insert(history_table)
_ADD_ATTEMPT = insert(attempt_table)
_ADD_IDEMPOTENCY = insert(idempotency_table)
_SET_STATE = update(job_table).where(
    job_table.c.id == bindparam("moved_id"), job_table.c.version == bindparam("moved_version")
)
_SET_REASON = (
    update(job_table)
    .where(job_table.c.id == bindparam("waiting_id"), or_(*(job_table.c.state == state.value for state in WAITING)))
    .values(queue_reason=bindparam("reason"))
)
_SET_CLUSTER_REASON = (
    update(job_table)
    .where(job_table.c.id == bindparam("waiting_id"), job_table.c.state == JobState.SCHEDULE.value)
    .values(queue_reason=bindparam("reason"))
)
_SEEN_STATE = case(
    (
        and_(
            job_table.c.state == JobState.SCHEDULE.value,
            job_table.c.queue_reason != "",
            not_(job_table.c.queue_reason.startswith(BUILDING)),
        ),
        JobState.QUEUE.value,
    ),
    else_=job_table.c.state,
)
_HIDE = update(job_table).where(job_table.c.id == bindparam("hidden_id")).values(hidden=true())


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """The submitter's key for a submission: however often it is sent, it creates one job."""

    key: str
    body_hash: str


class Jobs:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._live = LiveJobs(db)

    def add(
        self, job: Job, *, group: str, idempotency: Idempotency | None = None, written: Written | None = None
    ) -> Job:
        """Record a submission with its original config; return the job, or the earlier one with the same key and
        body."""
        try:
            with self._db.write() as connection:
                connection.execute(_ADD_JOB, records.new_row(job, group))
                connection.execute(_ADD_HISTORY, history.submitted(job))
                if idempotency is not None:
                    connection.execute(_ADD_IDEMPOTENCY, _idempotency_row(job, idempotency))
                buckets.add_errand(connection, job)
                if written is not None:
                    configs.add(connection, job.id, written)
        except IntegrityError:
            earlier = self.submitted(job.user, idempotency) if idempotency else None
            if earlier is None:
                raise ConflictError(f"{job.id} exists already") from None
            return earlier
        return job

    def get(self, job_id: str) -> Job:
        with self._db.read() as connection:
            row = connection.execute(_GET, {"sought": job_id}).one_or_none()
        if row is None:
            raise NotFoundError(f"there is no job {job_id!r}")
        return records.job(row)

    def list(
        self,
        *,
        user: str | None = None,
        states: Collection[JobState] | None = None,
        seen: bool = False,
        name: str | None = None,
        hidden: bool = False,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """List jobs, newest first, by user, state and exact name. `seen` compares states as users see them; `hidden`
        includes hidden jobs."""
        if not 1 <= limit <= PAGE_LIMIT:
            raise InvalidError(f"invalid limit {limit}: use 1 to {PAGE_LIMIT}", field="limit")
        query = select(job_table).order_by(job_table.c.seq.desc()).limit(limit + 1)
        if user is not None:
            query = query.where(job_table.c.user == user)
        if states is not None:
            query = query.where((_SEEN_STATE if seen else job_table.c.state).in_([state.value for state in states]))
        if name is not None:
            query = query.where(job_table.c.name == name)
        if not hidden:
            query = query.where(job_table.c.hidden == false())
        if cursor is not None:
            query = query.where(job_table.c.seq < cursors.read(cursor))
        with self._db.read() as connection:
            rows = connection.execute(query).all()
        more = len(rows) > limit
        return JobPage(
            items=tuple(records.job(row) for row in rows[:limit]),
            next_cursor=cursors.write(rows[limit - 1].seq) if more else None,
        )

    def hide(self, job_id: str) -> None:
        """Hide a job from listings; it is otherwise unchanged."""
        with self._db.write() as connection:
            if not connection.execute(_HIDE, {"hidden_id": job_id}).rowcount:
                raise NotFoundError(f"there is no job {job_id!r}")

    def live(self) -> builtins.list[Job]:
        """All jobs that are not in a final state, oldest first: the jobs a scheduling round examines."""
        return self._live.list()

    def confirm(self) -> None:
        """Raise unless this server may still act on what it read."""
        self._db.confirm()

    def counts(self) -> dict[JobState, int]:
        """Number of jobs by state; states without jobs are left out."""
        query = select(job_table.c.state, func.count()).group_by(job_table.c.state)
        with self._db.read() as connection:
            return {JobState(state): count for state, count in connection.execute(query)}

    def move(self, job: Job, move: Move) -> Job:
        """Return the job after the move; ConflictError if the move is not allowed or the job has changed meanwhile."""
        moved = self.move_all([(job, move)])
        if not moved:
            now = self.get(job.id)
            raise ConflictError(f"{job.id} has changed meanwhile: it is now in {now.state.label}; try again")
        return moved[0]

    def move_all(self, pairs: Sequence[tuple[Job, Move]]) -> builtins.list[Job]:
        """Move several jobs in one transaction; jobs that changed meanwhile are left out of the result."""
        return self._make([_Step(job, lifecycle.apply(job, move), move) for job, move in pairs], {})

    def advance(
        self,
        jobs: Iterable[Job],
        next_move: Callable[[Job], Move | None],
        reports: Mapping[str, Report],
    ) -> builtins.list[Job]:
        """Apply moves until `next_move` returns None, and record backend reports, in one transaction.

        Returns each job after every single move; jobs that changed meanwhile are left out.
        """
        steps: builtins.list[_Step] = []
        for job in jobs:
            while (move := next_move(job)) is not None:
                steps.append(_Step(job, lifecycle.apply(job, move), move))
                job = steps[-1].after
        return self._make(steps, reports)

    def _make(self, steps: Sequence[_Step], reports: Mapping[str, Report]) -> builtins.list[Job]:
        if not steps and not reports:
            return []
        with self._db.write() as connection:
            attempts.record(connection, reports)
            versions = _versions(connection, {step.before.id for step in steps})
            made: builtins.list[_Step] = []
            for step in steps:
                if versions.get(step.before.id) == step.before.version:
                    versions[step.before.id] = step.after.version
                    made.append(step)
                else:
                    versions.pop(step.before.id, None)  # skips its later steps, which build on this one
            _write(connection, made)
        moved = [step.after for step in made]
        self._live.moved(moved)
        return moved

    def say_why(self, reasons: Mapping[str, str], *, there: bool = False) -> None:
        """Record why jobs wait, without a move; `there` if they wait in their cluster's own queue. Jobs that no longer
        wait are left unchanged."""
        if not reasons:
            return
        said = [{"waiting_id": job, "reason": why} for job, why in reasons.items()]
        with self._db.write() as connection:
            connection.execute(_SET_CLUSTER_REASON if there else _SET_REASON, said)
        self._live.told(reasons, {JobState.SCHEDULE} if there else WAITING)

    def record_tasks(self, reports: Mapping[str, Report]) -> None:
        """Record backend reports; only changes are written."""
        self._make([], reports)

    def tasks(self, job_id: str) -> builtins.list[TaskReport]:
        """The tasks of the job's newest attempt."""
        with self._db.read() as connection:
            return attempts.latest_tasks(connection, job_id)

    def tasks_of(self, handle: str) -> builtins.list[TaskReport]:
        """The tasks of one attempt, not necessarily the newest."""
        with self._db.read() as connection:
            return attempts.tasks_of(connection, handle)

    def attempts(self, job_id: str) -> builtins.list[Span]:
        """The attempts of a job, oldest first."""
        with self._db.read() as connection:
            return attempts.spans(connection, job_id)

    def held(self) -> builtins.list[Held]:
        """Attempts that a backend may still hold traces of."""
        with self._db.read() as connection:
            return attempts.held(connection)

    def cleaned(self, handles: Iterable[str]) -> None:
        """Record that backends hold no more traces of these attempts."""
        with self._db.write() as connection:
            attempts.set_cleaned(connection, handles)
            configs.forget_secrets(connection)

    def history(self, job_id: str) -> builtins.list[Moved]:
        with self._db.read() as connection:
            return history.of_job(connection, job_id)

    def events(self, *, after: int, user: str | None, limit: int = 500) -> builtins.list[Moved]:
        """Events after number `after`, oldest first, of all jobs or of one user's."""
        with self._db.read() as connection:
            return history.after(connection, after, user, limit)

    def last_event(self) -> int:
        with self._db.read() as connection:
            return history.last(connection)

    def submitted(self, user: str, idempotency: Idempotency) -> Job | None:
        """The job submitted with this key and body; ConflictError if the key was used with another body."""
        with self._db.read() as connection:
            found = connection.execute(_SUBMITTED, {"submitter": user, "sought": idempotency.key}).one_or_none()
        if found is None:
            return None
        if found.body_hash != idempotency.body_hash:
            raise ConflictError(
                f"Idempotency-Key {idempotency.key!r} was used for another submission, {found.job}: "
                "use a new key for a new job",
                field="Idempotency-Key",
            )
        return self.get(found.job)


_RUNNING = (JobState.RUNNING, JobState.KILLING)


class _Step(NamedTuple):
    """One move of one job. Moving a job several times at once makes a chain of steps."""

    before: Job
    after: Job
    move: Move


def _versions(connection: Connection, ids: Collection[str]) -> dict[str, int]:
    """The versions of these jobs, locked until this transaction ends."""
    versions: dict[str, int] = {}
    for some in batches(sorted(ids)):
        versions.update((job_id, version) for job_id, version in connection.execute(_VERSIONS, {"ids": some}))
    return versions


def _write(connection: Connection, made: Sequence[_Step]) -> None:
    if not made:
        return
    chains: dict[str, builtins.list[_Step]] = {}
    for step in made:
        chains.setdefault(step.before.id, []).append(step)
    connection.execute(
        _SET_STATE,
        [
            {"moved_id": job_id, "moved_version": chain[0].before.version, **records.changing(chain[-1].after)}
            for job_id, chain in chains.items()
        ],
    )
    connection.execute(_ADD_HISTORY, [history.moved(*step) for step in made])
    placed = [attempts.row(after) for _, after, _ in made if after.state is JobState.SCHEDULE]
    if placed:
        connection.execute(_ADD_ATTEMPT, placed)
    attempts.set_running(connection, [(step.after.handle, step.move.at) for step in made if _starts_running(step)])
    attempts.set_stopped(connection, [(step.before.handle, step.move.at) for step in made if _stops_running(step)])


def _starts_running(step: _Step) -> bool:
    """True also for a job stopped while it starts: its tasks may run until stopping them is done."""
    if step.after.state is JobState.KILLING:
        return step.before.state is JobState.SCHEDULE
    return step.after.state is JobState.RUNNING and step.before.state is not JobState.RUNNING


def _stops_running(step: _Step) -> bool:
    """A job that is being stopped still runs."""
    return step.before.state in _RUNNING and step.after.state not in _RUNNING


def _idempotency_row(job: Job, idempotency: Idempotency) -> records.Values:
    return {
        "user": job.user,
        "key": idempotency.key,
        "body_hash": idempotency.body_hash,
        "job": job.id,
        "created_at": job.created_at,
    }
