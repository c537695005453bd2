"""The records of jobs. `Jobs.move_all` is the one place that changes a job's state, and the only caller of `apply`:
the table's check, the compare-and-set on `version`, the history row and the attempt row are one transaction, so that
nothing happens to a job that its history does not tell.
"""

from __future__ import annotations

import base64
import binascii
import builtins
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from paddlecloud.model import lifecycle
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.job import Job, Moved
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import HELD, LIVE, WAITING, JobState
from paddlecloud.model.task import Report, TaskReport
from paddlecloud.model.views import JobPage
from paddlecloud.store import attempts, history, records
from paddlecloud.store.attempts import Held
from paddlecloud.store.batches import batches
from paddlecloud.store.db import Database
from paddlecloud.store.schema import attempts as attempt_table
from paddlecloud.store.schema import history as history_table
from paddlecloud.store.schema import idempotency as idempotency_table
from paddlecloud.store.schema import jobs as job_table

PAGE_LIMIT = 1000

_CURSOR = re.compile(r"before:(\d{1,18})")
_SET_STATE = update(job_table).where(
    job_table.c.id == bindparam("moved_id"), job_table.c.version == bindparam("moved_version")
)
_SET_REASON = (
    update(job_table)
    .where(job_table.c.id == bindparam("waiting_id"), or_(*(job_table.c.state == state.value for state in WAITING)))
    .values(queue_reason=bindparam("reason"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Idempotency:
    """A submitter's own name for a submission, which makes it one job however often it is sent."""

    key: str
    body_hash: str


class Jobs:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._live: dict[str, Job] = {}

    def add(self, job: Job, *, group: str, idempotency: Idempotency | None = None) -> Job:
        """Record a submission; the job itself, or the earlier one of the same key and body."""
        try:
            with self._db.write() as connection:
                connection.execute(insert(job_table), records.new_row(job, group))
                connection.execute(insert(history_table), history.submitted(job))
                if idempotency is not None:
                    connection.execute(insert(idempotency_table), _idempotency_row(job, idempotency))
        except IntegrityError:
            earlier = self.submitted(job.user, idempotency) if idempotency else None
            if earlier is None:
                raise ConflictError(f"{job.id} exists already") from None
            return earlier
        return job

    def get(self, job_id: str) -> Job:
        with self._db.read() as connection:
            row = connection.execute(select(job_table).where(job_table.c.id == job_id)).one_or_none()
        if row is None:
            raise NotFoundError(f"there is no job {job_id!r}")
        return records.job(row)

    def list(
        self,
        *,
        user: str | None = None,
        states: Collection[JobState] | None = None,
        name: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> JobPage:
        """Jobs, newest first: those of a user, in some states, of exactly this name."""
        if not 1 <= limit <= PAGE_LIMIT:
            raise InvalidError(f"limit {limit} is not from 1 to {PAGE_LIMIT}", field="limit")
        query = select(job_table).order_by(job_table.c.seq.desc()).limit(limit + 1)
        if user is not None:
            query = query.where(job_table.c.user == user)
        if states is not None:
            query = query.where(job_table.c.state.in_([state.value for state in states]))
        if name is not None:
            query = query.where(job_table.c.name == name)
        if cursor is not None:
            query = query.where(job_table.c.seq < _read_cursor(cursor))
        with self._db.read() as connection:
            rows = connection.execute(query).all()
        more = len(rows) > limit
        return JobPage(
            items=tuple(records.job(row) for row in rows[:limit]),
            next_cursor=_write_cursor(rows[limit - 1].seq) if more else None,
        )

    def live(self) -> builtins.list[Job]:
        """Every job that is not in a final state, oldest first: what a round looks at.

        Only those that moved since the last call are read whole; of the others the reason alone can have changed.
        """
        known = self._live
        look = select(job_table.c.id, job_table.c.version, job_table.c.queue_reason)
        look = look.where(job_table.c.state.in_([state.value for state in LIVE])).order_by(job_table.c.seq)
        with self._db.read() as connection:
            seen = connection.execute(look).all()
            moved = [job_id for job_id, version, _ in seen if job_id not in known or known[job_id].version != version]
            read = _read(connection, moved, known)
        live = [
            job if job.queue_reason == reason else replace(job, queue_reason=reason)
            for job, reason in ((read.get(job_id) or known[job_id], reason) for job_id, _, reason in seen)
        ]
        self._live = {job.id: job for job in live}
        return live

    def running(self, user: str) -> int:
        """How many of the user's jobs a backend may hold."""
        query = (
            select(func.count())
            .select_from(job_table)
            .where(job_table.c.user == user, job_table.c.state.in_([state.value for state in HELD]))
        )
        with self._db.read() as connection:
            return connection.execute(query).scalar_one()

    def move(self, job: Job, move: Move) -> Job:
        """The job after the move; ConflictError if the table has no such move or the job has changed meanwhile."""
        moved = self.move_all([(job, move)])
        if not moved:
            now = self.get(job.id)
            raise ConflictError(f"{job.id} has changed meanwhile: it is in {now.state.label} now; look again")
        return moved[0]

    def move_all(self, pairs: Sequence[tuple[Job, Move]]) -> builtins.list[Job]:
        """The jobs after their moves, in one transaction; those that have changed meanwhile are left out."""
        proposed = [(job, lifecycle.apply(job, move), move) for job, move in pairs]
        if not proposed:
            return []
        with self._db.write() as connection:
            versions = _versions(connection, [job.id for job, _ in pairs])
            made: builtins.list[tuple[Job, Job, Move]] = []
            for before, after, move in proposed:
                if versions.get(before.id) == before.version:
                    versions[before.id] = after.version
                    made.append((before, after, move))
            _write_moves(connection, made)
        return [after for _, after, _ in made]

    def say_why(self, reasons: Mapping[str, str]) -> None:
        """Tell why jobs wait, without a move; what was said before, and jobs that no longer wait, are left alone."""
        if not reasons:
            return
        query = select(job_table.c.id, job_table.c.queue_reason)
        query = query.where(job_table.c.state.in_([state.value for state in WAITING]))
        with self._db.read() as connection:
            waiting = connection.execute(query).all()
        rows = [
            {"waiting_id": job_id, "reason": reasons[job_id]}
            for job_id, said in waiting
            if reasons.get(job_id, said) != said
        ]
        if rows:
            with self._db.write() as connection:
                connection.execute(_SET_REASON, rows)

    def record_tasks(self, reports: Mapping[str, Report]) -> None:
        """Keep what backends said of these handles; only what is new is written."""
        if reports:
            with self._db.write() as connection:
                attempts.record(connection, reports)

    def tasks(self, job_id: str) -> builtins.list[TaskReport]:
        """The tasks of the job's newest attempt."""
        with self._db.read() as connection:
            return attempts.latest_tasks(connection, job_id)

    def held(self) -> builtins.list[Held]:
        """The attempts that a backend may still have traces of."""
        with self._db.read() as connection:
            return attempts.held(connection)

    def cleaned(self, handles: Iterable[str]) -> None:
        """Nothing is left of these attempts on their backends."""
        with self._db.write() as connection:
            attempts.set_cleaned(connection, handles)

    def history(self, job_id: str) -> builtins.list[Moved]:
        with self._db.read() as connection:
            return history.of_job(connection, job_id)

    def events(self, *, after: int, user: str | None, limit: int = 500) -> builtins.list[Moved]:
        """What happened after event number `after`, oldest first, to all jobs or to a user's."""
        with self._db.read() as connection:
            return history.after(connection, after, user, limit)

    def last_event(self) -> int:
        with self._db.read() as connection:
            return history.last(connection)

    def submitted(self, user: str, idempotency: Idempotency) -> Job | None:
        """The job that was submitted with this key and body; ConflictError if it was another body."""
        query = select(idempotency_table.c.body_hash, idempotency_table.c.job).where(
            idempotency_table.c.user == user, idempotency_table.c.key == idempotency.key
        )
        with self._db.read() as connection:
            found = connection.execute(query).one_or_none()
        if found is None:
            return None
        if found.body_hash != idempotency.body_hash:
            raise ConflictError(
                f"Idempotency-Key {idempotency.key!r} was used for another submission, {found.job}: "
                "use a new key for a new job",
                field="Idempotency-Key",
            )
        return self.get(found.job)


def _read(connection: Connection, ids: Sequence[str], known: Mapping[str, Job]) -> dict[str, Job]:
    read: dict[str, Job] = {}
    for some in batches(ids):
        for row in connection.execute(select(job_table).where(job_table.c.id.in_(some))).all():
            before = known.get(row.id)
            read[row.id] = records.job(row, before.spec if before else None)
    return read


def _versions(connection: Connection, ids: Sequence[str]) -> dict[str, int]:
    """The versions of these jobs, which nobody else changes before this transaction ends."""
    versions: dict[str, int] = {}
    for some in batches(ids):
        query = select(job_table.c.id, job_table.c.version).where(job_table.c.id.in_(some)).with_for_update()
        versions.update((job_id, version) for job_id, version in connection.execute(query))
    return versions


def _write_moves(connection: Connection, made: Sequence[tuple[Job, Job, Move]]) -> None:
    if not made:
        return
    connection.execute(
        _SET_STATE,
        [
            {"moved_id": before.id, "moved_version": before.version} | records.changing(after)
            for before, after, _ in made
        ],
    )
    connection.execute(insert(history_table), [history.moved(before, after, move) for before, after, move in made])
    placed = [attempts.row(after) for _, after, _ in made if after.state is JobState.SCHEDULE]
    if placed:
        connection.execute(insert(attempt_table), placed)
    attempts.set_running(
        connection, [(after.handle, move.at) for _, after, move in made if after.state is JobState.RUNNING]
    )
    attempts.set_stopped(
        connection, [(before.handle, move.at) for before, _, move in made if before.state is JobState.RUNNING]
    )


def _idempotency_row(job: Job, idempotency: Idempotency) -> records.Values:
    return {
        "user": job.user,
        "key": idempotency.key,
        "body_hash": idempotency.body_hash,
        "job": job.id,
        "created_at": job.created_at,
    }


def _write_cursor(seq: int) -> str:
    return base64.urlsafe_b64encode(f"before:{seq}".encode()).decode().rstrip("=")


def _read_cursor(cursor: str) -> int:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        found = _CURSOR.fullmatch(base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii"))
    except (UnicodeError, binascii.Error):
        found = None
    if found is None:
        raise InvalidError(
            f"cursor {cursor!r} is not one this server gave: take next_cursor of the last page as it is", field="cursor"
        )
    return int(found[1])
