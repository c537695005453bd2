"""Who is placed next: pure. `order` is the turn, `plan` walks it, and no job holds up one that would not delay it.

The first job of a cluster that does not fit gets a reservation: the time by which enough will have ended. Later jobs
may pass it if they end before that time or fit beside it, so small jobs fill the gaps and the large one never starves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paddlecloud.model.job import Job, Placement, Resources, TaskPlacement, total
from paddlecloud.model.units import format_size
from paddlecloud.model.user import Quota
from paddlecloud.model.views import Forecast
from paddlecloud.scheduler import places, quota

_UNLIMITED = timedelta(days=1)
_OVERRUN = timedelta(minutes=1)
_FORECASTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a decision is made from. `clusters` holds those that answer; None: it keeps its own queue."""

    now: datetime
    waiting: Sequence[Job]
    placed: Sequence[Job]
    clusters: Mapping[str, Resources | None]
    default: Sequence[str] = ()
    quotas: Mapping[str, Quota] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    placements: Sequence[tuple[Job, Placement]]
    reasons: Mapping[str, str]  # by job id: why it waits


def order(jobs: Iterable[Job]) -> list[Job]:
    """The turn: priority, then time of submission."""
    return sorted(jobs, key=lambda job: (-job.spec.priority, job.created_at, job.id))


def plan(snapshot: Snapshot) -> Plan:
    room = _Room(snapshot)
    placements: list[tuple[Job, Placement]] = []
    reasons: dict[str, str] = {}
    for job in order(snapshot.waiting):
        limits = snapshot.quotas.get(job.user, Quota())
        outcome = quota.why_not_now(job.user, limits, room.running(job.user)) or room.take(job)
        if isinstance(outcome, Placement):
            placements.append((job, outcome))
        else:
            reasons[job.id] = outcome
    return Plan(placements=placements, reasons=reasons)


def forecast(snapshot: Snapshot) -> dict[str, Forecast]:
    """How far each waiting job is from the front and, if every job takes all its wall time, about when it starts."""
    lines = {name: _Line(snapshot, name) for name in snapshot.clusters}
    found: dict[str, Forecast] = {}
    for position, job in enumerate(order(snapshot.waiting), start=1):
        names = [name for name in candidates(job, snapshot.default) if name in lines]
        abouts = [lines[name].next_start(job) for name in names[:1] if position <= _FORECASTS]
        found[job.id] = Forecast(position=position, about_at=next(iter(abouts), None))
    return found


def candidates(job: Job, default: Sequence[str]) -> Sequence[str]:
    """The clusters that a job may go to, in the order to try."""
    return default if job.spec.cluster == "default" else (job.spec.cluster,)


def free(snapshot: Snapshot, cluster: str) -> Resources | None:
    """What is left of a cluster."""
    capacity = snapshot.clusters[cluster]
    if capacity is None:
        return None
    return capacity - total(placement.resources for placement in _on(snapshot.placed, cluster))


class _Room:
    """What is left of every cluster while a plan is being made."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.free = {name: free(snapshot, name) for name in snapshot.clusters}
        self.held = [job.placement for job in snapshot.placed if job.placement]
        self.ends = {name: _ends(snapshot, name) for name in snapshot.clusters}
        self.reservations: dict[str, _Reservation] = {}
        self._running: dict[str, int] = {}
        for job in snapshot.placed:
            self._running[job.user] = self._running.get(job.user, 0) + 1

    def running(self, user: str) -> int:
        return self._running.get(user, 0)

    def take(self, job: Job) -> Placement | str:
        """A placement, taken out of what is left; or the reason why there is none now."""
        names = candidates(job, self.snapshot.default)
        reason = f"cluster {' or '.join(names)} does not answer"
        for name in names:
            if name not in self.snapshot.clusters:
                continue
            outcome = self._take_on(name, job)
            if isinstance(outcome, Placement):
                self._running[job.user] = self.running(job.user) + 1
                return outcome
            reason = outcome
        return reason

    def _take_on(self, name: str, job: Job) -> Placement | str:
        capacity, left = self.snapshot.clusters[name], self.free[name]
        tasks = places.requests(job.spec, capacity)
        if capacity is None or left is None:
            return Placement(cluster=name, tasks=tuple(tasks))
        need = total(task.resources for task in tasks)
        if not need.fits(left):
            if name not in self.reservations and need.fits(capacity):
                self.reservations[name] = _reserve(job, need, left, self.ends[name])
            return _no_room(name, need, left, capacity)
        end = self.snapshot.now + expected(job)
        if (kept := self.reservations.get(name)) and not kept.lets_pass(need, end):
            return f"the room it needs on {name} is kept for {kept.job}, which is before it"
        return self._hold(name, job, tasks, need, end, capacity)

    def _hold(
        self, name: str, job: Job, tasks: list[TaskPlacement], need: Resources, end: datetime, capacity: Resources
    ) -> Placement:
        placement = places.place(job, name, tasks, self.held, capacity.gpus)
        self.held.append(placement)
        self.ends[name].append((end, need))
        self.free[name] = (self.free[name] or Resources()) - need
        return placement


def _no_room(name: str, need: Resources, left: Resources, capacity: Resources) -> str:
    return f"needs {describe(need)}; free on {name}: {describe(left)} of {describe(capacity)}"


@dataclass(slots=True)
class _Reservation:
    """The promise to the first job that does not fit: its room is there at `at`, with `spare` beside it."""

    job: str
    at: datetime
    spare: Resources

    def lets_pass(self, need: Resources, end: datetime) -> bool:
        if end <= self.at:
            return True
        if not need.fits(self.spare):
            return False
        self.spare = self.spare - need
        return True


def _reserve(job: Job, need: Resources, left: Resources, ends: Sequence[tuple[datetime, Resources]]) -> _Reservation:
    """The first time by which enough will have ended; what fits the whole cluster fits at the last end."""
    reservation = _Reservation(job.id, job.created_at, left - need)
    for end, freed in sorted(ends, key=lambda one: one[0]):
        reservation = _Reservation(job.id, end, reservation.spare + freed)
        if Resources().fits(reservation.spare):
            break
    return reservation


class _Line:
    """One cluster's queue played forward: nobody starts before those ahead of them."""

    def __init__(self, snapshot: Snapshot, cluster: str) -> None:
        self.capacity = snapshot.clusters[cluster]
        self.left = free(snapshot, cluster)
        self.at = snapshot.now
        self.ends = sorted(_ends(snapshot, cluster), key=lambda end: end[0])

    def next_start(self, job: Job) -> datetime | None:
        if self.capacity is None or self.left is None:
            return None
        need = total(task.resources for task in places.requests(job.spec, self.capacity))
        if not need.fits(self.capacity):
            return None
        while not need.fits(self.left) and self.ends:
            self.at, freed = self.ends.pop(0)
            self.left = self.left + freed
        self.left = self.left - need
        self.ends = sorted([*self.ends, (self.at + expected(job), need)], key=lambda end: end[0])
        return self.at


def expected(job: Job) -> timedelta:
    """How long a job may take; one without a limit is taken for a day."""
    limit = job.spec.wall_time_seconds
    return _UNLIMITED if limit is None else timedelta(seconds=limit)


def describe(amount: Resources) -> str:
    """An amount in words: "2 CPUs, 1.0 GiB and 1 GPU"."""
    words = [f"{amount.cpus:g} CPU{'' if amount.cpus == 1 else 's'}", format_size(amount.memory_bytes)]
    if amount.gpus:
        words.append(f"{amount.gpus} GPU{'' if amount.gpus == 1 else 's'}")
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _on(placed: Iterable[Job], cluster: str) -> list[Placement]:
    return [job.placement for job in placed if job.placement and job.placement.cluster == cluster]


def _ends(snapshot: Snapshot, cluster: str) -> list[tuple[datetime, Resources]]:
    """When each placed job gives back what it holds; one that is over its time does so soon."""
    ends: list[tuple[datetime, Resources]] = []
    for job in snapshot.placed:
        if job.placement and job.placement.cluster == cluster:
            end = (job.running_since or snapshot.now) + expected(job)
            ends.append((max(end, snapshot.now + _OVERRUN), job.placement.resources))
    return ends
