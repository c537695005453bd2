"""What a cluster gives each user, in one line: an operator must not have to guess why a job waits."""

from __future__ import annotations

from paddlecloud.model.units import describe_duration
from paddlecloud.model.user import Quota
from paddlecloud.server.cluster_settings import OPEN
from paddlecloud.server.settings import Settings


def policy_line(settings: Settings, cluster: str) -> str:
    policy = settings.policy(cluster)
    limits = ", ".join(_limits(settings.quota(cluster))) or "no limits"
    lifted = f'; clusters.{cluster}.policy = "{OPEN}" lifts it' if policy != OPEN else ""
    return f"cluster {cluster}: {policy} policy: {limits}{lifted}"


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
