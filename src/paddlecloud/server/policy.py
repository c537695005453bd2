"""What the server and each cluster give each user, a line each: an operator must not have to guess why a job waits."""

from __future__ import annotations

from collections.abc import Iterator

from paddlecloud.model.units import describe_duration
from paddlecloud.model.user import NO_LIMITS, Quota
from paddlecloud.server.cluster_settings import FREE, OPEN
from paddlecloud.server.settings import Settings


def policy_lines(settings: Settings) -> Iterator[str]:
    """The server's, and of each cluster that has limits of its own."""
    yield policy_line(settings)
    for name in settings.clusters:
        if settings.quota(name) != NO_LIMITS:
            yield cluster_line(settings, name)


def policy_line(settings: Settings) -> str:
    policy = settings.server.policy
    limits = ", ".join(_limits(settings.overall_quota)) or "no limits"
    other, does = (OPEN, "lifts it") if policy == FREE else (FREE, "gives the manual's limits")
    return f'{policy} policy: {limits} for each user on all clusters together; server.policy = "{other}" {does}'


def cluster_line(settings: Settings, cluster: str) -> str:
    limits = ", ".join(_limits(settings.quota(cluster))) or "no limits of its own"
    lifted = f'; clusters.{cluster}.policy = "{OPEN}" lifts it' if settings.clusters[cluster].policy == FREE else ""
    return f"cluster {cluster}: {limits} for each user{lifted}"


def _limits(quota: Quota) -> list[str]:
    """The limits that there are, for each user."""
    wall_time = quota.wall_time_seconds
    said = {
        _counted(quota.running_jobs, "running job"): quota.running_jobs,
        _counted(quota.waiting_jobs, "waiting job"): quota.waiting_jobs,
        f"{quota.minutes_a_day} minutes a day": quota.minutes_a_day,
        f"{describe_duration(wall_time or 0)} for a job": wall_time,
        f"{_counted(quota.instances, 'instance')} for a job": quota.instances,
    }
    return [text for text, limit in said.items() if limit is not None]


def _counted(number: int | None, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
