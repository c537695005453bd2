"""One round: look at records and backends, advance jobs, place waiting ones, then make the backends match.

Every decision is recorded before anything acts on it, and every act may be repeated: a round after a crash is a round
like any other, so there is no recovery code.
"""

from __future__ import annotations

import errno
import itertools
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from paddlecloud.backends.base import Backend, BusyError, InputAt, Launch, Mount, RefusedError
from paddlecloud.model import lifecycle
from paddlecloud.model.clock import STEADY, Jumps
from paddlecloud.model.errors import NotFoundError, PaddleCloudError, UnreachableError
from paddlecloud.model.job import DEFAULT, Job, Placement, Resources
from paddlecloud.model.lifecycle import Move
from paddlecloud.model.state import JobState, StopReason
from paddlecloud.model.task import BUILDING, Report
from paddlecloud.scheduler.launch import launch
from paddlecloud.scheduler.plan import Snapshot, plan
from paddlecloud.scheduler.queues import Queues
from paddlecloud.scheduler.quota import Quotas
from paddlecloud.store.jobs import Jobs

log = logging.getLogger(__name__)

_REASONS_KEPT_FRESH = 100
_LONGEST_PAUSE_POWER = 8  # of two: about four minutes
_AGAIN = timedelta(seconds=1)
# What keeps a job from its start for a while: too many open files, a full or a failing disk, no memory.
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ENOMEM, errno.EAGAIN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    schedule: timedelta
    attempts: int
    start_within: Mapping[str, timedelta] = field(default_factory=dict)  # by cluster: how late a start it may expect


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a job's bytes are: its uploaded tree, the folder its results are kept in, and what it finds below /pfs."""

    tree: Callable[[str, str], Path]  # user, tree id
    results: Callable[[Job], Path]
    mounts: Callable[[Job], Sequence[Mount]] = lambda _: ()
    brought: Callable[[Job], Path | None] = lambda _: None  # the files of a job that come from its user's bucket
    inputs: Callable[[Job], Sequence[InputAt]] = lambda _: ()
    pfs: Path | None = None  # where the PFS is for a task without mounts of its own
    uid: Callable[[Job], int | None] = lambda _: None  # the account that its tasks run as; None: the server's own
    secrets: Callable[[Job], Mapping[str, Any]] = lambda _: {}  # what its commands are filled with, if they ask for any

    def tree_of(self, job: Job) -> Path | None:
        """The files that a job was submitted with."""
        if job.spec.storage_key:
            return self.brought(job)
        return self.tree(job.user, job.spec.tree) if job.spec.tree else None


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen at the start of a round. `capacities` and `reports` are of the clusters that answered; `live` are
    the jobs that are not final, by id, as this round has moved them since."""

    now: datetime
    jumps: Jumps
    live: dict[str, Job]
    capacities: Mapping[str, Resources | None]
    reports: Mapping[str, Report]

    def moved(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if job.state.final:
                self.live.pop(job.id, None)
            else:
                self.live[job.id] = job

    def held(self) -> list[Job]:
        return [job for job in self.live.values() if job.state.held]


class Round:
    def __init__(
        self,
        *,
        jobs: Jobs,
        quotas: Callable[[datetime, Collection[str]], Quotas],  # of these users, as of this time
        clusters: Mapping[str, Backend],
        default: Sequence[str],
        folders: Folders,
        limits: Limits,
        queues: Queues | None = None,
        ready: Callable[[Job], str] = lambda _: "",  # why a waiting job cannot be placed yet
        jumps: Callable[[datetime], Jumps] = lambda _: STEADY,  # of the clock that the rounds are given
    ) -> None:
        self._jobs = jobs
        self._ready = ready
        self._jumps = jumps
        self._quotas = quotas
        self._clusters = clusters
        self._default = default
        self._queues = queues or {}
        self._folders = folders
        self._limits = limits
        self._recorded: dict[str, Report] = {}
        self._untidy = True  # an attempt may be over that is not cleaned yet
        self.idle = False  # at the last look no job was live
        self._paused: dict[str, datetime] = {}  # by job id: not placed again before
        self._asked: dict[str, datetime] = {}  # by handle: when its backend was asked to start it
        self._known_jumps = STEADY

    def run(self, now: datetime) -> bool:
        """Whether anything moved."""
        look = self._look(now)
        advanced = self._advance(look)
        placed = self._place(look)
        acted = self._act(look)
        return advanced or placed or acted

    def snapshot(self, now: datetime) -> Snapshot:
        """The records and capacities that a plan is made from, now."""
        capacities = {name: capacity for name in self._clusters for capacity in self._capacity(name)}
        live = self._jobs.live()
        unready = self._unready(live)
        return self._snapshot(now, [job for job in live if job.id not in unready], capacities)

    def _look(self, now: datetime) -> _Look:
        capacities: dict[str, Resources | None] = {}
        reports: dict[str, Report] = {}
        if (jumps := self._jumps(now)) != self._known_jumps:
            self._known_jumps = jumps
            self._paused, self._asked = {}, {}  # by the clock as it was
        look = _Look(now, jumps, {job.id: job for job in self._jobs.live()}, capacities, reports)
        self.idle = not look.live
        for name, backend in self._clusters.items():
            handles = [job.handle for job in look.held() if _on(job, name)]
            try:
                answer = backend.report(handles) if handles else {}
                capacities[name] = backend.capacity()
                reports.update(answer)
            except (PaddleCloudError, OSError) as error:
                log.warning("cluster %s does not answer: %s", name, error)
        return look

    def _advance(self, look: _Look) -> bool:
        changed = {handle: report for handle, report in look.reports.items() if self._recorded.get(handle) != report}
        moved = self._jobs.advance(self._due(look), partial(self._next_move, look), changed)
        self._recorded = dict(look.reports)
        self._untidy = self._untidy or any(not job.state.held for job in moved)
        for job in moved:
            ended = sum(job.retries.get(stop, 0) for stop in (StopReason.TASK_FAILED, StopReason.DONE))
            ended += max(0, job.retries.get(StopReason.NODE_LOST, 0) - 1)  # a full disk may take a while to pass
            if ended and job.state is JobState.QUEUE:
                self._pause(job, look.now, ended - 1)
        look.moved(moved)
        return bool(moved)

    def _due(self, look: _Look) -> list[Job]:
        """The jobs that may have a move to make: a queue is long, and time alone moves what waits.

        A cluster that does not answer changes nothing, except that a waiting job may have waited too long.
        """
        since = look.now - self._limits.schedule
        late = [job for job in look.live.values() if job.waits_since <= since and job.state.waiting]
        return late + [job for job in look.held() if job.placement and job.placement.cluster in look.capacities]

    def _next_move(self, look: _Look, job: Job) -> Move | None:
        report, jumps = look.reports.get(job.handle), look.jumps
        return (
            lifecycle.overdue(job, look.now, schedule_limit=self._limits.schedule, jumps=jumps)
            or lifecycle.advance(job, report, look.now, attempts_limit=self._limits.attempts, jumps=jumps)
            or self._move_on(look, job, report)
        )

    def _move_on(self, look: _Look, job: Job, report: Report | None) -> Move | None:
        """Leave the queue of a cluster for the next of the list that answers."""
        if job.state is not JobState.SCHEDULE or job.placement is None or report is None:
            return None
        cluster = job.placement.cluster
        within = self._limits.start_within.get(cluster)
        if within is None or not any(name in look.capacities for name in self._others(job, cluster)):
            return None
        return lifecycle.move_on(job, report, look.now, within=within)

    def _place(self, look: _Look) -> bool:
        self._paused = {job: until for job, until in self._paused.items() if until > look.now}
        live = [job for job in look.live.values() if job.id not in self._paused]
        unready = self._unready(live)
        placeable = [job for job in live if job.id not in unready]
        decided = plan(self._snapshot(look.now, placeable, look.capacities))
        reasons = {**unready, **decided.reasons}
        moves = [
            (job, Move(to=JobState.SCHEDULE, at=look.now, why=f"placed on {placement.cluster}", placement=placement))
            for job, placement in decided.placements
        ]
        moves += _to_queue(live, reasons, look.now)
        self._jobs.say_why(_changed_reasons(look.live, reasons))
        self._jobs.say_why(_waits_there(look), there=True)
        moved = self._jobs.move_all(moves)
        look.moved(moved)
        return bool(moved)

    def _unready(self, live: Iterable[Job]) -> dict[str, str]:
        """Why jobs cannot be placed whatever room there is, by id. They hold nobody up."""
        own = (job for job in live if job.spec.carried and job.state.waiting)
        return {job.id: why for job in own if (why := self._ready(job))}

    def _act(self, look: _Look) -> bool:
        self._jobs.confirm()
        moves = [(job, move) for job in self._unstarted(look) if (move := self._start(job, look))]
        for job in look.held():
            if job.state is JobState.KILLING and job.placement is not None:
                self._stop(job.placement.cluster, job.handle)
        if self._untidy:
            self._untidy = not self._clean(look.live)
        moved = self._jobs.move_all(moves)
        self._untidy = self._untidy or bool(moved)
        return bool(moved)

    def _unstarted(self, look: _Look) -> list[Job]:
        """Placed jobs that their backends are to start: not in every round until they run, but again after a while,
        since a backend may have lost what it was about to do."""
        placed = {job.handle: job for job in look.held() if job.state is JobState.SCHEDULE}
        since = look.now - _AGAIN
        self._asked = {handle: at for handle, at in self._asked.items() if handle in placed and at > since}
        return [job for handle, job in placed.items() if handle not in self._asked]

    def _start(self, job: Job, look: _Look) -> Move | None:
        """Start a placed job; the move it makes if its backend will not have it."""
        if job.placement is None:
            return None
        if (report := look.reports.get(job.handle)) is not None and (report.waits or report.building):
            return None  # the cluster has it in its own queue, or its packages are built
        try:
            tree = self._folders.tree_of(job)
            backend = self._clusters[job.placement.cluster]
            backend.start(self._launch(job, job.placement, tree))
            self._asked[job.handle] = look.now
        except UnreachableError as error:
            log.warning("%s waits to be started: %s", job.handle, error)
        except BusyError as error:
            self._pause(job, look.now, job.attempt)
            return Move(to=JobState.QUEUE, at=look.now, why=error.message)
        except RefusedError as error:
            return self._refused(job, job.placement.cluster, error, look.now)
        except (NotFoundError, KeyError, OSError) as error:
            if isinstance(error, OSError) and error.errno in _PASSING:
                self._pause(job, look.now, job.attempt)
                log.warning("%s waits to be started: %s", job.handle, _described(error))
                return Move(to=JobState.QUEUE, at=look.now, why=f"cannot be started yet: {_described(error)}")
            why = f"could not be started: {error}"
            log.error("%s %s", job.handle, why)
            return Move(to=JobState.FAILED, at=look.now, why=why, error=why)
        return None

    def _refused(self, job: Job, cluster: str, error: RefusedError, now: datetime) -> Move:
        """A job of the default list tries the next cluster; one that has no other fails."""
        log.error("%s could not be started: %s", job.handle, error)
        if self._others(job, cluster):
            return Move(to=JobState.QUEUE, at=now, why=f"{cluster}: {error}", passes=cluster)
        why = f"could not be started: {error}"
        return Move(to=JobState.FAILED, at=now, why=why, error=why)

    def _others(self, job: Job, cluster: str) -> list[str]:
        """The clusters that a job may still go to instead of this one."""
        left = [name for name in self._default if name not in job.passed and name != cluster]
        return left if job.spec.cluster == DEFAULT else []

    def _pause(self, job: Job, now: datetime, power: int) -> None:
        """Not to be placed for a while: what was just tried in vain is tried less and less often."""
        self._paused[job.id] = now + timedelta(seconds=2 ** min(power, _LONGEST_PAUSE_POWER))

    def _launch(self, job: Job, placement: Placement, tree: Path | None) -> Launch:
        return launch(
            job,
            placement,
            tree=tree,
            results=self._folders.results(job),
            mounts=self._folders.mounts(job),
            cwd=job.spec.package or None,
            inputs=self._folders.inputs(job) if job.spec.inputs else (),
            pfs=self._folders.pfs,
            uid=self._folders.uid(job),
            queues=self._queues,
            secrets=self._folders.secrets(job),
        )

    def _stop(self, cluster: str, handle: str) -> None:
        try:
            self._clusters[cluster].stop(handle)
        except (PaddleCloudError, KeyError) as error:
            log.warning("%s is not stopped yet: %s", handle, error)

    def _clean(self, live: Mapping[str, Job]) -> bool:
        """Take away what backends still have of attempts that are over; whether that was all of it."""
        over = [held for held in self._jobs.held() if not _current(live.get(held.job), held.handle)]
        cleaned: list[str] = []
        for name in {held.cluster for held in over if held.cluster in self._clusters}:
            backend = self._clusters[name]
            handles = [held.handle for held in over if held.cluster == name]
            try:
                running = {handle for handle, report in backend.report(handles).items() if not report.ended}
                for handle in running:
                    backend.stop(handle)
                ended = [handle for handle in handles if handle not in running]
                backend.clean(ended)
                cleaned += ended
            except UnreachableError as error:
                log.warning("cluster %s does not answer: %s", name, error)
        if cleaned:
            self._jobs.cleaned(cleaned)
        return len(cleaned) == len(over)

    def _snapshot(self, now: datetime, live: Sequence[Job], capacities: Mapping[str, Resources | None]) -> Snapshot:
        waiting = [job for job in live if job.state.waiting]
        return Snapshot(
            now=now,
            waiting=waiting,
            placed=[job for job in live if job.state.held],
            clusters=capacities,
            default=self._default,
            queues=self._queues,
            quotas=self._quotas(now, {job.user for job in waiting}),
        )

    def _capacity(self, name: str) -> list[Resources | None]:
        """The capacity in a list, which is empty while the cluster does not answer."""
        try:
            return [self._clusters[name].capacity()]
        except UnreachableError:
            return []


def _to_queue(live: Iterable[Job], reasons: Mapping[str, str], now: datetime) -> list[tuple[Job, Move]]:
    return [
        (job, Move(to=JobState.QUEUE, at=now, why=reasons[job.id]))
        for job in live
        if job.state is JobState.SUBMIT and job.id in reasons
    ]


def _changed_reasons(live: Mapping[str, Job], reasons: Mapping[str, str]) -> dict[str, str]:
    """Reasons that differ from what the records say. They change with all that starts and ends, so only the front of a
    long queue is kept up to date; those behind have theirs from when they came."""
    front = itertools.islice(reasons.items(), _REASONS_KEPT_FRESH)
    return {job: why for job, why in front if live[job].state is JobState.QUEUE and live[job].queue_reason != why}


def _waits_there(look: _Look) -> dict[str, str]:
    """Why placed jobs do not run yet: what clusters with queues of their own say, or that packages are built. Of each
    at first, then of some again."""
    found = {
        job.id: _in_words(report)
        for job in look.live.values()
        if job.state is JobState.SCHEDULE
        and (report := look.reports.get(job.handle)) is not None
        and (report.waits or report.building)
    }
    new = {job: why for job, why in found.items() if _is_new(look.live[job].queue_reason, why)}
    front = itertools.islice(found.items(), _REASONS_KEPT_FRESH)
    return {**new, **{job: why for job, why in front if look.live[job].queue_reason != why}}


def _is_new(known: str, why: str) -> bool:
    return not known or (why.startswith(BUILDING) and not known.startswith(BUILDING))


def _in_words(report: Report) -> str:
    if report.building:
        return report.building
    if report.about_at is None:
        return report.waits
    return f"{report.waits}; it is expected to start at about {report.about_at:%Y-%m-%d %H:%M} UTC"


def _described(error: OSError) -> str:
    return f"{error.strerror} ({error.filename})" if error.filename else str(error.strerror)


def _on(job: Job, cluster: str) -> bool:
    return job.state.held and job.placement is not None and job.placement.cluster == cluster


def _current(job: Job | None, handle: str) -> bool:
    return job is not None and job.state.held and job.handle == handle
