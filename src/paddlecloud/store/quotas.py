"""Records the limits that admins gave to users and groups, for all clusters together and for single ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import asdict, fields
from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.user import ALL_CLUSTERS, Quota
from paddlecloud.store.batches import batches
from paddlecloud.store.schema import group_quotas, quotas

_SPACE = "space_bytes"

# By user, then by cluster; ALL_CLUSTERS stands for all clusters together.
Given = Mapping[str, Mapping[str, Quota]]

_OF = select(quotas).where(quotas.c.user.in_(bindparam("users", expanding=True)))


def of_all(connection: Connection) -> Given:
    return _by_user(connection.execute(select(quotas)).all())


def of(connection: Connection, users: Collection[str]) -> Given:
    """The limits of these users; users without limits are left out."""
    rows = [row for some in batches(sorted(users)) for row in connection.execute(_OF, {"users": some})]
    return _by_user(rows)


def put(connection: Connection, user: str, changed: Mapping[str, Quota | None]) -> None:
    """Replace a user's limits on these clusters; None removes them, so that the cluster's own limits apply."""
    for cluster, quota in changed.items():
        connection.execute(delete(quotas).where(quotas.c.user == user, quotas.c.cluster == cluster))
        if quota is not None and not (cluster == ALL_CLUSTERS and quota == Quota()):
            connection.execute(insert(quotas), {"user": user, "cluster": cluster} | asdict(quota))


def of_groups(connection: Connection) -> Given:
    """Limits by group, then by cluster; groups without limits are left out."""
    found: dict[str, dict[str, Quota]] = {}
    for row in connection.execute(select(group_quotas)):
        found.setdefault(row.group, {})[row.cluster] = _quota(row)
    return found


def put_of_group(connection: Connection, group: str, changed: Mapping[str, Quota | None]) -> None:
    """Replace the limits of a group's members on these clusters; None removes them."""
    for cluster, quota in changed.items():
        ours = (group_quotas.c.group == group, group_quotas.c.cluster == cluster)
        connection.execute(delete(group_quotas).where(*ours))
        if quota is not None and not (cluster == ALL_CLUSTERS and quota == Quota()):
            connection.execute(insert(group_quotas), {"group": group, "cluster": cluster} | asdict(quota))


def check(cluster: str, quota: Quota) -> None:
    for field in fields(quota):
        limit = getattr(quota, field.name)
        if limit is not None and not 0 <= limit < 2 ** (63 if field.name == _SPACE else 31):
            raise InvalidError(f"invalid quota {field.name} {limit}: use 0 or more, or none", field=field.name)
    if cluster != ALL_CLUSTERS and quota.space_bytes is not None:
        raise InvalidError(
            f"quota {_SPACE} cannot be set for cluster {cluster}: files belong to no cluster; set it for all clusters",
            field=_SPACE,
        )


def _by_user(rows: Collection[Row[Any]]) -> Given:
    found: dict[str, dict[str, Quota]] = {}
    for row in rows:
        found.setdefault(row.user, {})[row.cluster] = _quota(row)
    return found


def _quota(row: Row[Any]) -> Quota:
    return Quota(
        running_jobs=row.running_jobs,
        waiting_jobs=row.waiting_jobs,
        instances=row.instances,
        wall_time_seconds=row.wall_time_seconds,
        minutes_a_day=row.minutes_a_day,
        space_bytes=row.space_bytes,
    )
