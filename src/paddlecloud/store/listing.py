"""Lists jobs with filtering, sorting, counting and paging done by the database.

Rows contain only what listings show; specs and error texts are not read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, Select, and_, case, exists, false, func, or_, select

from paddlecloud.model.state import FINAL, LIVE, JobState, StopReason
from paddlecloud.model.task import BUILDING
from paddlecloud.store.attempts import exit_codes
from paddlecloud.store.db import Database
from paddlecloud.store.schema import job_tags, jobs

_RETRIES = msgspec.json.Decoder(dict[str, int])
_LIVE = [state.value for state in LIVE]
_FINAL = [state.value for state in FINAL]


class Field(StrEnum):
    """Sort keys of a listing."""

    SUBMITTED = "submitted"
    NAME = "name"
    USER = "user"
    POOL = "pool"
    ATTEMPT = "attempt"
    TASKS = "tasks"
    GPUS = "gpus"
    STATE = "state"
    FINISHED = "finished"
    PRIORITY = "priority"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Filters; None matches everything. A job that is being stopped can also be matched by its stop reason."""

    users: Collection[str] | None = None
    pools: Collection[str] | None = None
    states: Collection[JobState] | None = None
    stopping: Collection[StopReason] = ()  # matches `killing` jobs by reason; `states` then omits `killing`
    priorities: Collection[tuple[int | None, int | None]] | None = None  # (from, to); None is unbounded
    text: str = ""  # substring of the name of the job, its user or its pool
    name: str | None = None
    tags: Collection[str] | None = None  # with at least one of these
    without_tags: Collection[str] = ()  # without any of these


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    order: Field = Field.SUBMITTED
    ascending: bool = False
    state_order: Mapping[JobState, int] | None = None  # sort rank of each state
    offset: int = 0
    limit: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A job in a listing. `found` says that `JobListing.find` returns this job for its name."""

    id: str
    user: str
    name: str
    state: JobState
    stop: StopReason | None
    attempt: int
    retries: Mapping[str, int]
    pool: str
    priority: int
    roles: int
    tasks: int
    gpus: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    waits_there: bool
    found: bool
    exit_code: int | None = None


class JobListing:
    def __init__(self, db: Database) -> None:
        self._db = db

    def list(self, wanted: Wanted, page: Page) -> list[Listed]:
        query = _where(select(*_COLUMNS, _FOUND.label("found")), wanted)
        query = query.order_by(*_order(page)).offset(page.offset).limit(page.limit)
        with self._db.read() as connection:
            rows = connection.execute(query).all()
            failed = [row.id for row in rows if row.state == JobState.FAILED.value]
            codes = exit_codes(connection, failed)
        return [_listed(row, codes.get(row.id)) for row in rows]

    def count(self, wanted: Wanted) -> int:
        with self._db.read() as connection:
            count: int = connection.execute(_where(select(func.count()).select_from(jobs), wanted)).scalar_one()
        return count

    def states(self, wanted: Wanted) -> dict[JobState, int]:
        """Number of matching jobs by state; states without jobs are left out."""
        query = _where(select(jobs.c.state, func.count()), wanted).group_by(jobs.c.state)
        with self._db.read() as connection:
            return {JobState(state): count for state, count in connection.execute(query)}

    def find(self, user: str, name: str) -> str | None:
        """The id of the job that a name refers to: the newest live one with the name, or else the newest."""
        query = select(jobs.c.id).where(jobs.c.user == user, jobs.c.name == name, jobs.c.hidden == false())
        live_first = case((jobs.c.state.in_(_LIVE), 0), else_=1)
        with self._db.read() as connection:
            found: str | None = connection.execute(query.order_by(live_first, jobs.c.seq.desc()).limit(1)).scalar()
        return found


_COLUMNS = [
    jobs.c[name]
    for name in (
        *("id", "user", "name", "state", "stop", "attempt", "retries", "pool", "priority", "roles", "tasks", "gpus"),
        *("created_at", "started_at", "finished_at", "queue_reason"),
    )
]
_other = jobs.alias("other")
_SAME_NAME = and_(
    _other.c.user == jobs.c.user, _other.c.name == jobs.c.name, _other.c.hidden == false(), _other.c.id != jobs.c.id
)
_BEFORE = or_(
    and_(jobs.c.state.in_(_LIVE), _other.c.state.in_(_LIVE), _other.c.seq > jobs.c.seq),
    and_(jobs.c.state.in_(_FINAL), or_(_other.c.state.in_(_LIVE), _other.c.seq > jobs.c.seq)),
)
_FOUND = ~exists(select(_other.c.seq).where(_SAME_NAME, _BEFORE))


def _where(query: Select[Any], wanted: Wanted) -> Select[Any]:
    query = query.where(jobs.c.hidden == false())
    for column, values in ((jobs.c.user, wanted.users), (jobs.c.pool, wanted.pools)):
        if values is not None:
            query = query.where(column.in_(sorted(values)))
    if wanted.states is not None:
        query = query.where(_in_states(wanted))
    if wanted.priorities is not None:
        query = query.where(or_(false(), *(_between(low, high) for low, high in wanted.priorities)))
    if wanted.name is not None:
        query = query.where(jobs.c.name == wanted.name)
    if wanted.tags is not None:
        query = query.where(_tagged(wanted.tags))
    if wanted.without_tags:
        query = query.where(~_tagged(wanted.without_tags))
    if wanted.text:
        found = (column.icontains(wanted.text, autoescape=True) for column in (jobs.c.name, jobs.c.user, jobs.c.pool))
        query = query.where(or_(*found))
    return query


def _tagged(tags: Collection[str]) -> ColumnElement[bool]:
    return exists(select(job_tags.c.job).where(job_tags.c.job == jobs.c.id, job_tags.c.tag.in_(sorted(tags))))


def _in_states(wanted: Wanted) -> ColumnElement[bool]:
    states = [state.value for state in wanted.states or ()]
    stopping = and_(
        jobs.c.state == JobState.KILLING.value, jobs.c.stop.in_([reason.value for reason in wanted.stopping])
    )
    return or_(jobs.c.state.in_(states), stopping)


def _between(low: int | None, high: int | None) -> ColumnElement[bool]:
    bounds = []
    if low is not None:
        bounds.append(jobs.c.priority >= low)
    if high is not None:
        bounds.append(jobs.c.priority <= high)
    return and_(*bounds)


def _order(page: Page) -> list[ColumnElement[Any]]:
    """Missing values sort last in ascending and first in descending order, in every database."""
    columns: dict[Field, ColumnElement[Any]] = {
        Field.SUBMITTED: jobs.c.seq,
        Field.NAME: jobs.c.name,
        Field.USER: jobs.c.user,
        Field.POOL: jobs.c.pool,
        Field.ATTEMPT: jobs.c.attempt,
        Field.TASKS: jobs.c.tasks,
        Field.GPUS: jobs.c.gpus,
        Field.STATE: _state_order(page.state_order),
        Field.FINISHED: jobs.c.finished_at,
        Field.PRIORITY: jobs.c.priority,
    }
    chosen = columns[page.order]
    sorted_by = chosen.asc().nulls_last() if page.ascending else chosen.desc().nulls_first()
    if page.order is Field.SUBMITTED:
        return [jobs.c.seq.asc() if page.ascending else jobs.c.seq.desc()]
    return [sorted_by, jobs.c.seq.desc()]


def _state_order(ranks: Mapping[JobState, int] | None) -> ColumnElement[Any]:
    if not ranks:
        return jobs.c.state
    return case({state.value: rank for state, rank in ranks.items()}, value=jobs.c.state, else_=len(ranks))


def _listed(row: Row[Any], exit_code: int | None) -> Listed:
    return Listed(
        id=row.id,
        user=row.user,
        name=row.name,
        state=JobState(row.state),
        stop=None if row.stop is None else StopReason(row.stop),
        attempt=row.attempt,
        retries=_RETRIES.decode(row.retries),
        pool=row.pool,
        priority=row.priority,
        roles=row.roles,
        tasks=row.tasks,
        gpus=row.gpus,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        waits_there=row.state == JobState.SCHEDULE.value
        and bool(row.queue_reason)
        and not row.queue_reason.startswith(BUILDING),
        found=bool(row.found),
        exit_code=exit_code,
    )
