"""What users may have and have on this server: limits from the settings and the admins, use from the records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from paddlecloud.model.accounts import QuotaUse, Use
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import DEFAULT, Job
from paddlecloud.model.state import HELD
from paddlecloud.model.user import ALL_CLUSTERS, NO_LIMITS, Quota
from paddlecloud.scheduler.day import day_of
from paddlecloud.scheduler.ledger import Ledger, Standing, Tally
from paddlecloud.scheduler.quota import Policy, Quotas, of_groups
from paddlecloud.server.cluster_settings import FREE
from paddlecloud.server.settings import Settings
from paddlecloud.store.db import Database
from paddlecloud.store.groups import Groups, Membership
from paddlecloud.store.jobs import PAGE_LIMIT, Jobs
from paddlecloud.store.quotas import Given
from paddlecloud.store.use import UseOfDay, UseRecords
from paddlecloud.store.users import Users

_OWN, _OF_CLUSTER, _OF_SERVER = "own", "cluster", "server"


class QuotaService:
    def __init__(
        self,
        *,
        settings: Settings,
        users: Users,
        groups: Groups,
        jobs: Jobs,
        database: Database,
        clock: Callable[[], datetime],
        kept: Callable[[str], int],  # what a user keeps in the PFS
    ) -> None:
        self._users = users
        self._groups = groups
        self._jobs = jobs
        self._use = UseRecords(database)
        self._use_of_day = UseOfDay(database, self._use)
        self._kept = kept
        self._space_limit = settings.pfs.space
        self._clock = clock
        self._zone = settings.zone
        self._default = settings.default_clusters
        self._overall = settings.overall_quota
        self._policies = {
            name: Policy(quota=settings.quota(name), free=settings.policy(name) == FREE) for name in settings.clusters
        }

    def quotas(self, now: datetime, users: Collection[str]) -> Quotas:
        """All that limits these users, and what those whose minutes are limited used today."""
        if not users:
            return self._limited({})
        given = self._given(users)
        found = self._limited(given)
        everybodys = (self._overall, *(policy.quota for policy in self._policies.values()))
        counted = users if _counts_minutes(everybodys) else given
        counted = [user for user in counted if _counts_minutes(limit.quota for limit in found.limits_anywhere(user))]
        if not counted:
            return found
        day = day_of(now, self._zone)
        return self._limited(given, self._use_of_day.seconds(counted, day.start, day.end))

    def standings(self, user: str, clusters: Iterable[str]) -> Mapping[str, Standing]:
        """What a user has on each of these clusters of what limits them there."""
        now = self._clock()
        quotas = self.quotas(now, [user])
        limits = quotas.limits_anywhere(user)
        held = self._held(user) if _counts_minutes(limit.quota for limit in limits) else ()
        waits = any(limit.quota.waiting_jobs is not None for limit in limits)
        ledger = Ledger(quotas, held, now, waiting=self._waiting(user) if waits else None)
        return {cluster: ledger.standing(user, cluster) for cluster in clusters}

    def use(self, user: str) -> QuotaUse:
        """What a user may have and has, everywhere."""
        now = self._clock()
        day = day_of(now, self._zone)
        own, given = self._users.quotas([user]).get(user, {}), self._given([user])
        own_space = own.get(ALL_CLUSTERS, NO_LIMITS).space_bytes
        group_space, space_groups = space_of_groups(self._groups.membership(), user)
        used = self._use.seconds([user], day.start, day.end)
        quotas = self._limited(given, used)
        ledger = Ledger(quotas, self._held(user), now, waiting=self._waiting(user))

        def of(cluster: str) -> Use:
            return _use(ledger.tally(quotas.limit(user, cluster)), self._source(user, cluster, own))

        return QuotaUse(
            user=user,
            timezone=str(self._zone),
            resets_at=day.end,
            overall=of(ALL_CLUSTERS),
            clusters={cluster: of(cluster) for cluster in self._policies},
            space_bytes=self._kept(user),
            space_limit_bytes=next(
                (limit for limit in (own_space, group_space, self._space_limit) if limit is not None), None
            ),
            space_source=_OWN if own_space is not None else _groups_said(space_groups),
        )

    def check_clusters(self, changed: Mapping[str, Quota | None], given: Mapping[str, Quota]) -> None:
        """Refuse a quota on a cluster that there is not; one from when there was may be taken away."""
        for cluster, quota in changed.items():
            if cluster not in self._policies and (quota is not None or cluster not in given):
                raise InvalidError(
                    f"cluster {cluster!r} is not configured on this server; it has {', '.join(self._policies)}",
                    field=f"quotas.{cluster}",
                )

    def _limited(self, given: Given, used: Mapping[str, Mapping[str, float]] | None = None) -> Quotas:
        return Quotas(zone=self._zone, policies=self._policies, overall=self._overall, given=given, used=used or {})

    def _given(self, users: Collection[str]) -> Given:
        """The limits of these users: their own and, on clusters where they have none, those of their groups."""
        own, known = self._users.quotas(users), self._groups.membership()
        if not known.quotas:
            return own
        found = {user: {**of_groups(_of_user(known, user)), **own.get(user, {})} for user in users}
        return {user: given for user, given in found.items() if given}

    def _source(self, user: str, cluster: str, own: Mapping[str, Quota]) -> str:
        """Who set what limits a user there."""
        if cluster in own:
            return _OWN
        by_group = _of_user(self._groups.membership(), user)
        if names := [name for name, given in by_group.items() if cluster in given]:
            return _groups_said(names)
        if cluster == ALL_CLUSTERS:
            return "" if self._overall == NO_LIMITS else _OF_SERVER
        return "" if self._policies[cluster].quota == NO_LIMITS else _OF_CLUSTER

    def _held(self, user: str) -> Iterator[Job]:
        cursor: str | None = None
        while True:
            page = self._jobs.list(user=user, states=HELD, hidden=True, cursor=cursor, limit=PAGE_LIMIT)
            yield from page.items
            cursor = page.next_cursor
            if cursor is None:
                return

    def _waiting(self, user: str) -> Mapping[str, int]:
        """By cluster, how many jobs of the user may go there."""
        asked = self._use.waiting(user)
        by_cluster = {
            cluster: asked.get(cluster, 0) + (asked.get(DEFAULT, 0) if cluster in self._default else 0)
            for cluster in self._policies
        }
        return by_cluster | {ALL_CLUSTERS: sum(asked.values())}


def _counts_minutes(quotas: Iterable[Quota]) -> bool:
    return any(quota.minutes_a_day is not None for quota in quotas)


def space_of_groups(known: Membership, user: str) -> tuple[int | None, Sequence[str]]:
    """The most that a user may keep in the PFS by their groups, and which those are; None: they say nothing of it."""
    found = {
        name: limit
        for name, given in _of_user(known, user).items()
        if (limit := given.get(ALL_CLUSTERS, NO_LIMITS).space_bytes) is not None
    }
    most = max(found.values(), default=None)
    return most, [name for name, limit in found.items() if limit == most]


def _of_user(known: Membership, user: str) -> Mapping[str, Mapping[str, Quota]]:
    """The limits of a user's groups, by group."""
    return {name: known.quotas[name] for name in known.of_user.get(user, ()) if name in known.quotas}


def _groups_said(names: Sequence[str]) -> str:
    return f"group{'s' if len(names) > 1 else ''} {', '.join(names)}" if names else ""


def _use(tally: Tally, source: str) -> Use:
    return Use(
        source=source,
        quota=tally.limit.quota,
        running_jobs=len(tally.ends),
        waiting_jobs=tally.waiting,
        minutes_today=round(tally.used / 60, 2),
    )
