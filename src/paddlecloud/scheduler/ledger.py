"""What users have: pure, from limits, use and what runs, to the reason why a job waits or the time that it may run.

Of a day's minutes, those that running jobs may still take are kept for them, so that no day's limit is passed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.job import Job, JobSpec, Resources
from paddlecloud.model.state import JobState
from paddlecloud.model.user import ALL_CLUSTERS
from paddlecloud.scheduler.day import Day, day_of
from paddlecloud.scheduler.quota import Limit, Policy, Quotas, refusal
from paddlecloud.scheduler.spans import UNKNOWN, ends_at, expected, is_known

LEAST_SECONDS = 60  # with fewer left of the day a job waits for the next one, unless it asks for less itself


@dataclass(slots=True, kw_only=True)
class Tally:
    """What a user has of what a limit counts; it goes on counting while jobs are placed.

    `ends` are those of the jobs that run, `used` the seconds of today that the user's jobs ran, `kept` the seconds of
    today that those which run may still take.
    """

    limit: Limit
    day: Day
    ends: list[datetime] = field(default_factory=list)
    used: float = 0.0
    kept: float = 0.0
    waiting: int = 0
    in_line: bool = False  # a job of theirs waits already for one of these ends

    @property
    def unused(self) -> float:
        minutes = self.limit.quota.minutes_a_day
        return math.inf if minutes is None else minutes * 60 - self.used

    @property
    def left(self) -> float:
        """Seconds of today that one more job may be given."""
        return self.unused - self.kept

    def count(self, job: Job, now: datetime) -> None:
        """Take a placed job into account. One that is being stopped still runs, but has no time of its own left."""
        self.ends.append(ends_at(job, now, UNKNOWN))
        began = job.running_since or now
        self.used += self.day.seconds(began, now)
        if job.state is not JobState.KILLING:
            self.kept += self.day.seconds(now, began + expected(job))

    def start(self, at: datetime, span: timedelta) -> None:
        self.ends.append(at + span)
        self.kept += self.day.seconds(at, at + span)

    def why_not_today(self, spec: JobSpec) -> str | None:
        """That the day's minutes are used up; None: there are some, though they may be kept for what runs."""
        if self.unused >= least_seconds(spec):
            return None
        return self._used_said() + (", and less than one is left" if self.unused > 0 else "")

    def why_not_now(self, spec: JobSpec, now: datetime) -> str | None:
        """What a job has to wait for; None: for nothing that this limit counts."""
        if self._full:
            return self._too_many(now)
        if self.left >= least_seconds(spec):
            return None
        midnight = f"after midnight, at {self.day.next_begins}"
        if why := self.why_not_today(spec):
            return f"{why}; it starts {midnight}"
        kept = f"{math.ceil(self.kept / 60)} kept for what runs"
        return f"{self._used_said()}, and {kept}; it starts when a job ends early, or {midnight}"

    def free_at(self, spec: JobSpec, now: datetime) -> datetime | None:
        """When the limit lets a job start if all that runs takes its time; None: nothing tells."""
        at = now
        if self._full:
            if not self.limit.quota.running_jobs:
                return None
            at = sorted(self.ends)[len(self.ends) - self.limit.quota.running_jobs]
        return at if self.left >= least_seconds(spec) else max(at, self.day.end)

    def line_up(self) -> None:
        """A job of theirs waits for what this limit counts."""
        self.in_line = self._full

    @property
    def _full(self) -> bool:
        most = self.limit.quota.running_jobs
        return most is not None and len(self.ends) >= most

    def _used_said(self) -> str:
        minutes = self.limit.quota.minutes_a_day or 0
        used = min(minutes, int(self.used / 60))
        return f"quota: {used} of {minutes} minutes used today ({self.day.zone}) by {self.limit.whose}"

    def _too_many(self, now: datetime) -> str:
        most = self.limit.quota.running_jobs or 0
        words = f"quota: {len(self.ends)} of {most} jobs running for {self.limit.whose}"
        if most == 0:
            return f"{words}: ask an admin for more"
        if self.in_line:
            return f"{words}; others of theirs are before it"
        over = len(self.ends) - most
        at = sorted(self.ends)[over]
        # In whole minutes: a reason that changes is written to the records.
        about = f" (about {math.ceil((at - now).total_seconds() / 60)} min)" if is_known(at, now) else ""
        return f"{words}; it starts when {f'{over + 1} end' if over else 'one ends'}{about}"


class Standing:
    """What a user has of all that limits a job of theirs on one cluster."""

    def __init__(self, policy: Policy, tallies: Sequence[Tally], now: datetime) -> None:
        self.tallies = tuple(tallies)
        self._policy = policy
        self._limits = [tally.limit for tally in tallies]
        self._now = now

    def refusal(self, spec: JobSpec, capacity: Resources | None) -> PaddleCloudError | None:
        """Why a job can never run there; None: it can."""
        return refusal(spec, self._policy, capacity, self._limits)

    def why_not_now(self, spec: JobSpec) -> str | None:
        """What a job has to wait for; None: for nothing of its user's."""
        for tally in self.tallies:
            if why := tally.why_not_now(spec, self._now):
                return why
        return None

    def line_up(self) -> None:
        """A job waits for what is counted here: later ones of its user are behind it."""
        for tally in self.tallies:
            tally.line_up()

    def free_at(self, spec: JobSpec) -> datetime | None:
        """When a job may start if all that runs takes its time; None: nothing tells."""
        latest = self._now
        for tally in self.tallies:
            at = tally.free_at(spec, self._now)
            if at is None:
                return None
            latest = max(latest, at)
        return latest

    def clip(self, spec: JobSpec) -> int | None:
        """The seconds that are left of the day, where a job asks for more."""
        left, asked = math.inf, spec.wall_time_seconds
        for tally in self.tallies:
            left = min(left, tally.left)
        return None if left == math.inf or (asked is not None and asked <= left) else int(left)

    def start(self, at: datetime, span: timedelta) -> None:
        for tally in self.tallies:
            tally.start(at, span)


class Ledger:
    """What all users have, each counted when it is asked for, since most have no limits.

    `waiting` is how many jobs wait for each cluster, where there is but one user.
    """

    def __init__(
        self, quotas: Quotas, held: Iterable[Job], now: datetime, *, waiting: Mapping[str, int] | None = None
    ) -> None:
        self.day = day_of(now, quotas.zone)
        self._quotas = quotas
        self._now = now
        self._waiting = waiting or {}
        self._held: dict[str, list[Job]] = {}
        for job in held:
            self._held.setdefault(job.user, []).append(job)
        self._tallies: dict[tuple[str, str], Tally] = {}
        self._standings: dict[tuple[str, str], Standing] = {}

    def standing(self, user: str, cluster: str) -> Standing:
        found = self._standings.get((user, cluster))
        if found is None:
            tallies = [self.tally(limit) for limit in self._quotas.limits(user, cluster)]
            found = Standing(self._quotas.policy(cluster), tallies, self._now)
            self._standings[user, cluster] = found
        return found

    def tally(self, limit: Limit) -> Tally:
        """What counts for a limit: one tally, also where several clusters share it."""
        key = (limit.user, limit.cluster)
        if key not in self._tallies:
            self._tallies[key] = self._counted(limit)
        return self._tallies[key]

    def _counted(self, limit: Limit) -> Tally:
        used = self._quotas.used.get(limit.user, {})
        seconds = sum(used.values()) if limit.cluster == ALL_CLUSTERS else used.get(limit.cluster, 0.0)
        tally = Tally(limit=limit, day=self.day, used=seconds, waiting=self._waiting.get(limit.cluster, 0))
        for job in self._held.get(limit.user, ()):
            if limit.counts(job):
                tally.count(job, self._now)
        return tally


def least_seconds(spec: JobSpec) -> int:
    """What must be left of the day for a job to begin."""
    return LEAST_SECONDS if spec.wall_time_seconds is None else min(LEAST_SECONDS, spec.wall_time_seconds)
