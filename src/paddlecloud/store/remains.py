"""Records the files that finished jobs left behind: their size, and whether they are kept, leaving or gone.

Invariant: a row says `leaving` before anything is deleted and `gone` when nothing is left, so that a deletion that was
killed is resumed, and users learn what happened to their files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, func, insert, or_, select, update

from paddlecloud.model.kept import Kept, Removed
from paddlecloud.model.retention import Going, Item
from paddlecloud.model.space import Used
from paddlecloud.model.state import FINAL
from paddlecloud.store.batches import batches
from paddlecloud.store.db import Database
from paddlecloud.store.schema import attempts, jobs, remains

PAGE = 100


class Stage(StrEnum):
    KEPT = "kept"
    LEAVING = "leaving"
    GONE = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A finished job of which no backend holds traces."""

    job: str
    user: str
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """A job that has a folder. `measured` says that its files were counted; `busy`, that more files may come, since it
    is live or a backend may hold traces of it."""

    user: str
    started_at: datetime | None
    measured: bool
    busy: bool
    ended_at: datetime | None = None


class Remains:
    def __init__(self, db: Database) -> None:
        self._db = db

    def unmeasured(self, limit: int = PAGE) -> list[Ended]:
        """Finished jobs whose files are not measured yet, except those a backend may still hold traces of."""
        measured = select(remains.c.job).where(remains.c.job == jobs.c.id).exists()
        held = select(attempts.c.job).where(attempts.c.job == jobs.c.id, attempts.c.cleaned == false()).exists()
        query = select(jobs.c.id, jobs.c.user, jobs.c.finished_at).where(
            jobs.c.state.in_([state.value for state in FINAL]), ~measured, ~held
        )
        with self._db.read() as connection:
            return [
                Ended(job=row.id, user=row.user, ended_at=row.finished_at)
                for row in connection.execute(query.order_by(jobs.c.seq).limit(limit))
            ]

    def owned(self, folders: Collection[str]) -> dict[str, Owned]:
        """The jobs of these folders; folders without a job record are left out."""
        measured = select(remains.c.job).where(remains.c.job == jobs.c.id).exists().label("measured")
        held = select(attempts.c.job).where(attempts.c.job == jobs.c.id, attempts.c.cleaned == false()).exists()
        busy = or_(jobs.c.state.not_in([state.value for state in FINAL]), held).label("busy")
        query = select(jobs.c.id, jobs.c.user, jobs.c.started_at, jobs.c.finished_at, measured, busy)
        found: dict[str, Owned] = {}
        with self._db.read() as connection:
            for some in batches(list(folders)):
                for row in connection.execute(query.where(jobs.c.id.in_(some))):
                    found[row.id] = Owned(
                        user=row.user,
                        started_at=row.started_at,
                        measured=bool(row.measured),
                        busy=bool(row.busy),
                        ended_at=row.finished_at,
                    )
        return found

    def measure(self, found: Sequence[tuple[Ended, Mapping[Kept, Used]]]) -> None:
        """Record the size of these jobs' files; jobs measured meanwhile are left unchanged."""
        rows = [
            {
                "job": ended.job,
                "kind": kind.value,
                "user": ended.user,
                "ended_at": ended.ended_at,
                "stage": Stage.KEPT.value,
                "size_bytes": used.size_bytes,
                "files": used.files,
                "removed_at": None,
                "removed_by": "",
            }
            for ended, left in found
            for kind, used in left.items()
        ]
        if not rows:
            return
        with self._db.write() as connection:
            known: set[str] = set()
            for some in batches([ended.job for ended, _ in found]):
                known |= set(connection.execute(select(remains.c.job).where(remains.c.job.in_(some))).scalars())
            if new := [row for row in rows if row["job"] not in known]:
                connection.execute(insert(remains), new)

    def kept(self, kind: Kept) -> Iterator[Item]:
        """Kept files of a kind, by end of their jobs, oldest first; pages are read as needed."""
        query = select(remains).where(remains.c.kind == kind.value, remains.c.stage == Stage.KEPT.value)
        return self._pages(query)

    def jobs(self) -> Iterator[Item]:
        """Finished jobs, oldest end first, each with the total size of its remaining files."""
        every = remains.alias()
        not_gone = and_(every.c.job == remains.c.job, every.c.stage != Stage.GONE.value)
        query = select(
            remains.c.job,
            remains.c.user,
            remains.c.ended_at,
            func.coalesce(select(func.sum(every.c.size_bytes)).where(not_gone).scalar_subquery(), 0).label(
                "size_bytes"
            ),
            func.coalesce(select(func.sum(every.c.files)).where(not_gone).scalar_subquery(), 0).label("files"),
        )
        return self._pages(query.where(remains.c.kind == Kept.LOGS.value))

    def total_bytes(self, kind: Kept) -> int:
        query = select(func.coalesce(func.sum(remains.c.size_bytes), 0))
        query = query.where(remains.c.kind == kind.value, remains.c.stage == Stage.KEPT.value)
        with self._db.read() as connection:
            return int(connection.execute(query).scalar_one())

    def leave(self, kind: Kept, going: Sequence[Going], now: datetime) -> None:
        """Mark files that are about to be deleted; users see them as deleted from now on, with reason and time."""
        with self._db.write() as connection:
            for why in {one.why for one in going}:
                names = [one.item.name for one in going if one.why == why]
                for some in batches(names):
                    connection.execute(
                        update(remains)
                        .where(remains.c.kind == kind.value, remains.c.job.in_(some))
                        .where(remains.c.stage == Stage.KEPT.value)
                        .values(stage=Stage.LEAVING.value, removed_at=now, removed_by=why)
                    )

    def leaving(self, kind: Kept) -> dict[str, str]:
        """Jobs with their users whose files of this kind are to be deleted, or were being deleted when the server
        died."""
        query = select(remains.c.job, remains.c.user)
        query = query.where(remains.c.kind == kind.value, remains.c.stage == Stage.LEAVING.value)
        with self._db.read() as connection:
            return {row.job: row.user for row in connection.execute(query)}

    def gone(self, kind: Kept, names: Sequence[str]) -> None:
        """Record that the files of these jobs are deleted."""
        with self._db.write() as connection:
            for some in batches(names):
                connection.execute(
                    update(remains)
                    .where(remains.c.kind == kind.value, remains.c.job.in_(some))
                    .values(stage=Stage.GONE.value)
                )

    def removed(self, job: str) -> list[Removed]:
        """What was deleted of a job; kinds that never had a file are left out."""
        query = select(remains).where(remains.c.job == job, remains.c.stage != Stage.KEPT.value, remains.c.files > 0)
        with self._db.read() as connection:
            return [
                Removed(kind=Kept(row.kind), at=row.removed_at, by=row.removed_by)
                for row in connection.execute(query.order_by(remains.c.kind.desc()))
            ]

    def used(self) -> dict[tuple[str, Kept], tuple[Used, datetime]]:
        """Size of the remaining files by user and kind, and when the first of their jobs ended."""
        query = (
            select(
                remains.c.user,
                remains.c.kind,
                func.sum(remains.c.size_bytes).label("size_bytes"),
                func.sum(remains.c.files).label("files"),
                func.min(remains.c.ended_at).label("oldest_at"),
            )
            .where(remains.c.stage != Stage.GONE.value)
            .group_by(remains.c.user, remains.c.kind)
        )
        with self._db.read() as connection:
            return {
                (row.user, Kept(row.kind)): (Used(size_bytes=int(row.size_bytes), files=int(row.files)), row.oldest_at)
                for row in connection.execute(query)
            }

    def _pages(self, query: Select[Any]) -> Iterator[Item]:
        """No transaction stays open between pages: what was read may be deleted meanwhile."""
        page = query.order_by(remains.c.ended_at, remains.c.job).limit(PAGE)
        last: Item | None = None
        while True:
            with self._db.read() as connection:
                rows = connection.execute(page if last is None else page.where(_after(last))).all()
            for row in rows:
                last = Item(
                    name=row.job,
                    user=row.user,
                    since=row.ended_at,
                    size_bytes=int(row.size_bytes),
                    files=int(row.files),
                )
                yield last
            if len(rows) < PAGE:
                return


def _after(last: Item) -> ColumnElement[bool]:
    return or_(remains.c.ended_at > last.since, and_(remains.c.ended_at == last.since, remains.c.job > last.name))
