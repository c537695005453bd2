"""Who is placed next: pure. `order` is the turn, `plan` walks it, and no job holds up one that would not delay it.

The first job of a cluster that does not fit gets a reservation: the time by which enough will have ended. Later jobs
may pass it if they end before that time or fit beside it, so small jobs fill the gaps and the large one never starves.
A job that its user's limits hold back reserves nothing, nor does one that its queue's cap does, but in its queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from msgspec.structs import replace

from paddlecloud.model.job import DEFAULT, NOTHING, Job, JobSpec, Placement, Resources, TaskPlacement, total
from paddlecloud.model.units import format_size
from paddlecloud.model.views import Forecast
from paddlecloud.scheduler import places
from paddlecloud.scheduler.caps import Caps, counted
from paddlecloud.scheduler.ledger import Ledger, Standing
from paddlecloud.scheduler.queues import Queues, priority_of, why_closed
from paddlecloud.scheduler.quota import Quotas
from paddlecloud.scheduler.reservations import Ends, Reservation, reserve
from paddlecloud.scheduler.spans import UNKNOWN, ends_at, expected, is_known

_FORECASTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All that a decision is made from. `clusters` holds those that answer; None: it keeps its own queue."""

    now: datetime
    waiting: Sequence[Job]
    placed: Sequence[Job]
    clusters: Mapping[str, Resources | None]
    default: Sequence[str] = ()
    queues: Queues = field(default_factory=dict)
    quotas: Quotas = field(default_factory=Quotas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    placements: Sequence[tuple[Job, Placement]]
    reasons: Mapping[str, str]  # by job id: why it waits


def order(jobs: Iterable[Job], queues: Queues) -> list[Job]:
    """The turn: priority, its queue's included, then time of submission."""
    return sorted(jobs, key=lambda job: (-priority_of(job.spec, queues), job.created_at, job.id))


def plan(snapshot: Snapshot) -> Plan:
    room = _Room(snapshot)
    placements: list[tuple[Job, Placement]] = []
    reasons: dict[str, str] = {}
    for job in order(snapshot.waiting, snapshot.queues):
        outcome = room.take(job)
        if isinstance(outcome, Placement):
            placements.append((job, outcome))
        else:
            reasons[job.id] = outcome
    return Plan(placements=placements, reasons=reasons)


def forecast(snapshot: Snapshot) -> dict[str, Forecast]:
    """How far each waiting job is from the front, and when it starts if every job takes all its wall time. Behind a job
    without a limit nothing tells that."""
    ahead = _Ahead(snapshot)
    return {
        job.id: Forecast(position=position, about_at=ahead.next_start(job) if position <= _FORECASTS else None)
        for position, job in enumerate(order(snapshot.waiting, snapshot.queues), start=1)
    }


def candidates(job: Job, default: Sequence[str]) -> Sequence[str]:
    """The clusters that a job may go to, in the order to try; one that it has passed by only if it has all."""
    if job.spec.cluster != DEFAULT:
        return (job.spec.cluster,)
    return [name for name in default if name not in job.passed] or default


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
        self.reservations: dict[str, Reservation] = {}
        self.ledger = Ledger(snapshot.quotas, snapshot.placed, snapshot.now)
        self.caps = Caps(snapshot.queues, snapshot.placed, snapshot.now)
        self.needs = _Needs()
        self._said: dict[tuple[str, Resources], str] = {}

    def take(self, job: Job) -> Placement | str:
        """A placement, taken out of what is left; or the reason why there is none now."""
        if closed := why_closed(job.spec, self.snapshot.queues):
            return closed
        reasons: list[str] = []
        refusals: list[str] = []
        held_back: list[Standing] = []
        for name in candidates(job, self.snapshot.default):
            if name not in self.snapshot.clusters:
                reasons.append(f"cluster {name} does not answer")
                continue
            standing = self.ledger.standing(job.user, name)
            if refusal := standing.refusal(job.spec, self.snapshot.clusters[name]):
                refusals.append(refusal.message)
            elif why := standing.why_not_now(job.spec):
                reasons.append(why)
                held_back.append(standing)
            else:
                outcome = self._take_on(name, job, standing)
                if isinstance(outcome, Placement):
                    return outcome
                reasons.append(outcome)
        for standing in held_back:
            standing.line_up()
        return "; ".join(dict.fromkeys(reasons or refusals))  # clusters that share a limit say the same

    def _take_on(self, name: str, job: Job, standing: Standing) -> Placement | str:
        capacity, left = self.snapshot.clusters[name], self.free[name]
        need = NOTHING if capacity is None else self.needs.of(job.spec, name, capacity)
        capped = self.needs.counted(job.spec, name, capacity) if job.spec.queue in self.caps else None
        if capped is not None and (full := self.caps.why_full(job, capped)):
            return full
        if capacity is not None and left is not None and not need.fits(left):
            if name not in self.reservations and need.fits(capacity):
                self.reservations[name] = reserve(job, need, left, self.ends[name])
            return self._no_room(name, need, left, capacity)
        clip = standing.clip(job.spec)
        span = expected(job) if clip is None else timedelta(seconds=clip)
        if (kept := self.reservations.get(name)) and not kept.lets_pass(need, self.snapshot.now + span):
            return f"the room it needs on {name} is kept for {kept.job}, which is before it"
        if capped is not None and (why := self.caps.why_kept(job, capped, self.snapshot.now + span)):
            return why
        try:
            placement = self._hold(name, job, need, self.snapshot.now + span)
        except places.NoPortsError as error:
            return f"{name}: {error}"
        if capped is not None:
            self.caps.take(job, capped, self.snapshot.now + span)
        standing.start(self.snapshot.now, expected(job, UNKNOWN) if clip is None else span)
        return replace(placement, wall_time_seconds=clip)

    def _hold(self, name: str, job: Job, need: Resources, end: datetime) -> Placement:
        capacity, left = self.snapshot.clusters[name], self.free[name]
        tasks = places.requests(job.spec, capacity)
        if capacity is None or left is None:
            return places.leave_open(job, name, tasks)
        placement = places.place(job, name, tasks, self.held, capacity.gpus)
        self.held.append(placement)
        self.ends[name].append((end, need))
        self.free[name] = left - need
        self._said.clear()
        return placement

    def _no_room(self, name: str, need: Resources, left: Resources, capacity: Resources) -> str:
        """Many jobs of a long queue need the same, and are told the same until another one is placed."""
        if (name, need) not in self._said:
            words = f"needs {describe(need)}; free on {name}: {describe(left)} of {describe(capacity)}"
            self._said[name, need] = words
        return self._said[name, need]


class _Needs:
    """What all tasks of a job ask for together. Jobs of one shape ask for the same, and a long queue has few shapes."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Resources] = {}

    def of(self, spec: JobSpec, cluster: str, capacity: Resources) -> Resources:
        return self._of(spec, cluster, capacity, lambda tasks: total(task.resources for task in tasks))

    def counted(self, spec: JobSpec, cluster: str, capacity: Resources | None) -> Resources:
        """The same as the caps of queues count it."""
        return self._of(spec, f"cap of {cluster}", capacity, counted)

    def _of(
        self,
        spec: JobSpec,
        where: str,
        capacity: Resources | None,
        summed: Callable[[Sequence[TaskPlacement]], Resources],
    ) -> Resources:
        shape = (where, spec.job_type, *[(role.name, role.count, role.resources) for role in spec.roles])
        known = self._known.get(shape)
        if known is None:
            known = self._known[shape] = summed(places.requests(spec, capacity))
        return known


class _Ahead:
    """Every cluster's queue played forward, and what users have while it goes on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.lines = {
            name: _Line(capacity, free(snapshot, name), _ends(snapshot, name, UNKNOWN), snapshot.now)
            for name, capacity in snapshot.clusters.items()
        }
        self.ledger = Ledger(snapshot.quotas, snapshot.placed, snapshot.now)
        self.caps = Caps(snapshot.queues, snapshot.placed, snapshot.now, UNKNOWN)
        self.of_queues: dict[str, _Line] = {}

    def next_start(self, job: Job) -> datetime | None:
        """About when the job starts; None: nothing tells.

        Of its list that is on the first cluster where its user's limits let it start soonest. Only a job that nothing
        but room holds back takes a place in the line there: the others are passed.
        """
        if why_closed(job.spec, self.snapshot.queues):
            return None
        standings = {
            name: self.ledger.standing(job.user, name)
            for name in candidates(job, self.snapshot.default)
            if name in self.lines
        }
        free_at = {
            name: at
            for name, standing in standings.items()
            if not standing.refusal(job.spec, self.snapshot.clusters[name])
            if (at := standing.free_at(job.spec)) is not None
        }
        if not free_at:
            return None
        name = min(free_at, key=lambda one: free_at[one])
        line, earliest = self.lines[name], free_at[name]
        of_queue = self._of_queue(job)
        counts_for = counted(places.requests(job.spec, line.capacity)) if of_queue else NOTHING
        if of_queue is not None:
            fits_at = of_queue.free_at(counts_for)
            if fits_at is None:
                return None
            earliest = max(earliest, fits_at)
        at = line.next_start(job) if earliest <= line.at else earliest
        if at is not None:
            standings[name].start(at, expected(job, UNKNOWN))
            if of_queue is not None:
                of_queue.take(at, counts_for, at + expected(job, UNKNOWN))
        return at if at is None or is_known(at, self.snapshot.now) else None

    def _of_queue(self, job: Job) -> _Line | None:
        """What is left of what the jobs of a queue may use; None: as much as there is."""
        name = job.spec.queue
        if name in self.caps and name not in self.of_queues:
            cap, left, ends = self.caps.left(name)
            self.of_queues[name] = _Line(cap.room, left, ends, self.snapshot.now)
        return self.of_queues.get(name)


class _Line:
    """One cluster's queue, or those in a queue with a cap, played forward: nobody starts before those ahead of them."""

    def __init__(self, capacity: Resources | None, left: Resources | None, ends: Ends, now: datetime) -> None:
        self.capacity = capacity
        self.left = left
        self.at = now
        self.ends = sorted(ends, key=lambda end: end[0])

    def next_start(self, job: Job) -> datetime | None:
        if self.capacity is None or self.left is None:
            return None
        need = total(task.resources for task in places.requests(job.spec, self.capacity))
        at = self.free_at(need)
        if at is not None:
            self.take(at, need, at + expected(job, UNKNOWN))
        return at

    def free_at(self, need: Resources) -> datetime | None:
        """When there is room for so much; None: never, or nothing tells."""
        if self.capacity is None or self.left is None or not need.fits(self.capacity):
            return None
        while not need.fits(self.left) and self.ends:
            at, freed = self.ends.pop(0)
            self.at, self.left = max(self.at, at), self.left + freed
        return self.at

    def take(self, at: datetime, need: Resources, end: datetime) -> None:
        if self.left is not None:
            self.left = self.left - need
            self.ends = sorted([*self.ends, (end, need)], key=lambda one: one[0])
            self.at = max(self.at, at)


def describe(amount: Resources) -> str:
    """An amount in words: "2 CPUs, 1.0 GiB and 1 GPU"."""
    words = [f"{amount.cpus:g} CPU{'' if amount.cpus == 1 else 's'}", format_size(amount.memory_bytes)]
    if amount.gpus:
        words.append(f"{amount.gpus} GPU{'' if amount.gpus == 1 else 's'}")
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _on(placed: Iterable[Job], cluster: str) -> list[Placement]:
    return [job.placement for job in placed if job.placement and job.placement.cluster == cluster]


def _ends(snapshot: Snapshot, cluster: str, *unlimited: timedelta) -> list[tuple[datetime, Resources]]:
    """When each placed job gives back what it holds."""
    return [
        (ends_at(job, snapshot.now, *unlimited), job.placement.resources)
        for job in snapshot.placed
        if job.placement and job.placement.cluster == cluster
    ]
