"""What users may have: pure. What a cluster gives everybody, what single users were given, and what is too much.

A user's own quota on a cluster takes the place of what the cluster gives everybody, and so does, where they have
none, the most generous of their groups'. The quota on all clusters together counts beside it: a limit that neither the
user nor a group was given there is the server's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from msgspec.structs import asdict

from paddlecloud.model import manual, paddlepaddle
from paddlecloud.model.errors import InvalidError, PaddleCloudError, QuotaError
from paddlecloud.model.job import Job, JobSpec, Resources
from paddlecloud.model.openpai import submitted as openpai
from paddlecloud.model.units import format_duration
from paddlecloud.model.user import ALL_CLUSTERS, NO_LIMITS, Quota

NO_CPU_JOBS_ON = ("cce", "default")  # the manual: job_type cpu cannot be asked for there, as they are for GPU jobs

# How a job asks for instances and for time, by the face that it came by.
_ASKS = {
    manual.FACE: ("--instance_count={}", "--wall_time={}"),
    paddlepaddle.FACE: ("-parallelism {}", "--time-limit {}"),
    openpai.FACE: ("instances: {} (taskNumber in JSON)", "extras: {{paddlecloud: {{time_limit: {}}}}}"),
}
_OURS = ("--nodes {}", "--time-limit {}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What a cluster gives every user, and whether the manual's free policy holds there."""

    quota: Quota = NO_LIMITS
    free: bool = False


OPEN = Policy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A quota with whose jobs it counts, and where: on one cluster, or on ALL_CLUSTERS together."""

    user: str
    cluster: str
    quota: Quota

    @property
    def whose(self) -> str:
        return f"{self.user} on {self.cluster or 'all clusters'}"

    def counts(self, job: Job) -> bool:
        on = None if job.placement is None else job.placement.cluster
        return job.user == self.user and self.cluster in (ALL_CLUSTERS, on)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """All that limits users. `given` and `used` are by user, then by cluster.

    `used` are the seconds of today that attempts ran which are over; of users whose minutes nothing limits it may be
    silent.
    """

    zone: tzinfo = UTC
    policies: Mapping[str, Policy] = field(default_factory=dict)
    overall: Quota = NO_LIMITS  # what the server gives every user on all clusters together
    given: Mapping[str, Mapping[str, Quota]] = field(default_factory=dict)
    used: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def policy(self, cluster: str) -> Policy:
        return self.policies.get(cluster, OPEN)

    def limit(self, user: str, cluster: str) -> Limit:
        """What a user may have on a cluster, or on ALL_CLUSTERS together."""
        given = self.given.get(user, {}).get(cluster)
        if cluster == ALL_CLUSTERS:
            quota = self.overall if given is None else _filled(given, self.overall)
        else:
            quota = self.policy(cluster).quota if given is None else given
        return Limit(user=user, cluster=cluster, quota=quota)

    def limits(self, user: str, cluster: str) -> list[Limit]:
        """All that limits a job of a user on a cluster."""
        both = (self.limit(user, cluster), self.limit(user, ALL_CLUSTERS))
        return [limit for limit in both if limit.quota != NO_LIMITS]

    def limits_anywhere(self, user: str) -> list[Limit]:
        places = {ALL_CLUSTERS, *self.policies, *self.given.get(user, {})}
        return [limit for place in places if (limit := self.limit(user, place)).quota != NO_LIMITS]


def _filled(given: Quota, default: Quota) -> Quota:
    return Quota(**{**asdict(default), **{name: limit for name, limit in asdict(given).items() if limit is not None}})


def of_groups(given: Mapping[str, Mapping[str, Quota]]) -> dict[str, Quota]:
    """What groups, by name, then by cluster, give who is in all of them: by cluster, of each limit the most generous.

    On a cluster no limit is the most generous. On all clusters together a group that says nothing of a limit is not
    counted for it: else one that gives more space would lift everything.
    """
    places = {cluster for by_cluster in given.values() for cluster in by_cluster}
    return {place: _most_generous(place, [one[place] for one in given.values() if place in one]) for place in places}


def _most_generous(cluster: str, quotas: Iterable[Quota]) -> Quota:
    limits: dict[str, int | None] = {}
    for name in Quota.__struct_fields__:
        found = [getattr(quota, name) for quota in quotas]
        said = [limit for limit in found if limit is not None]
        limits[name] = max(said) if said and (cluster == ALL_CLUSTERS or len(said) == len(found)) else None
    return Quota(**limits)


def refusal(
    spec: JobSpec, policy: Policy, capacity: Resources | None, limits: Iterable[Limit]
) -> PaddleCloudError | None:
    """Why a job could not run on a cluster even if its user had nothing else; None: it could."""
    may_have_gpus = capacity is None or capacity.gpus > 0
    if policy.free and may_have_gpus and spec.job_type == "cpu" and spec.cluster in NO_CPU_JOBS_ON:
        return InvalidError(
            f"job_type cpu is not possible with cluster {spec.cluster}: choose another cluster, or gpu",
            field="job_type",
        )
    for limit in limits:
        if error := _too_much(spec, limit):
            return error
    return None


def _too_much(spec: JobSpec, limit: Limit) -> QuotaError | None:
    quota, asked = limit.quota, spec.wall_time_seconds
    instances, time = _ASKS.get(spec.face, _OURS)
    if quota.instances is not None and spec.trainers > quota.instances:
        return QuotaError(
            f"quota: instance_count {spec.trainers} asked for, {quota.instances} allowed for one job of "
            f"{limit.whose}: {_advice(instances, quota.instances)}",
            field="roles",
        )
    pservers = spec.tasks - spec.trainers
    if quota.instances is not None and pservers > quota.instances:
        return QuotaError(
            f"quota: {pservers} pservers asked for, {quota.instances} allowed for one job of {limit.whose}: "
            f"as many as it may have instances; ask for {quota.instances}",
            field="roles",
        )
    if quota.wall_time_seconds is not None and (asked or 1) > quota.wall_time_seconds:
        most = format_duration(quota.wall_time_seconds)
        words = "wall_time" if asked is None else f"wall_time {format_duration(asked)} asked for,"
        return QuotaError(
            f"quota: {words} {most} allowed for one job of {limit.whose}: "
            f"{_advice(time, most if quota.wall_time_seconds else 0)}",
            field="wall_time_seconds",
        )
    if quota.minutes_a_day == 0:
        return QuotaError(f"quota: no minutes of any day are given to {limit.whose}: ask an admin for some")
    return None


def _advice(flag: str, most: int | str) -> str:
    """What would be accepted, in the words of the face; of nothing, nobody is told to ask for it."""
    return f"ask for {flag.format(most)}" if most else "ask an admin for more"
