"""The limits of users as rows: over all clusters together, and on single ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.user import Quota
from paddlecloud.store.schema import quotas

OVERALL = ""  # stands for all clusters together where a cluster's name is asked for


def of_all(connection: Connection) -> dict[str, dict[str, Quota]]:
    """By user, then by cluster, every limit that there is."""
    found: dict[str, dict[str, Quota]] = {}
    for row in connection.execute(select(quotas)):
        found.setdefault(row.user, {})[row.cluster] = _quota(row)
    return found


def of(connection: Connection, user: str) -> dict[str, Quota]:
    """By cluster, the limits of one user."""
    rows = connection.execute(select(quotas).where(quotas.c.user == user).order_by(quotas.c.cluster))
    return {row.cluster: _quota(row) for row in rows}


def put(connection: Connection, user: str, changed: Mapping[str, Quota | None]) -> None:
    """Replace the limits on these clusters; None takes them away, so that the cluster's own count."""
    for cluster, quota in changed.items():
        connection.execute(delete(quotas).where(quotas.c.user == user, quotas.c.cluster == cluster))
        if quota is not None:
            connection.execute(insert(quotas), {"user": user, "cluster": cluster} | asdict(quota))


def check(quota: Quota) -> None:
    for field in fields(quota):
        limit = getattr(quota, field.name)
        if limit is not None and not 0 <= limit < 2**31:
            raise InvalidError(f"quota {field.name} {limit} is not a limit: give 0 or more, or none", field=field.name)


def _quota(row: Row[Any]) -> Quota:
    return Quota(
        running_jobs=row.running_jobs,
        instances=row.instances,
        wall_time_seconds=row.wall_time_seconds,
        minutes_a_day=row.minutes_a_day,
    )
