"""What users may have and have on this server: limits from the settings and the admins, use from the records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime

from paddlecloud.model.accounts import QuotaUse, Use
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import DEFAULT, Job
from paddlecloud.model.state import HELD
from paddlecloud.model.user import ALL_CLUSTERS, NO_LIMITS, Quota
from paddlecloud.scheduler.day import day_of
from paddlecloud.scheduler.ledger import Ledger, Standing, Tally
from paddlecloud.scheduler.quota import Policy, Quotas
from paddlecloud.server.settings import FREE, Settings
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import PAGE_LIMIT, Jobs
from paddlecloud.store.use import UseOfDay, UseRecords
from paddlecloud.store.users import Users


class QuotaService:
    def __init__(
        self,
        *,
        settings: Settings,
        users: Users,
        jobs: Jobs,
        database: Database,
        clock: Callable[[], datetime],
        kept: Callable[[str], int],  # what a user keeps in the PFS
    ) -> None:
        self._users = users
        self._jobs = jobs
        self._use = UseRecords(database)
        self._use_of_day = UseOfDay(database, self._use)
        self._kept = kept
        self._space_limit = settings.pfs.space
        self._clock = clock
        self._zone = settings.zone
        self._default = settings.default_clusters
        self._policies = {
            name: Policy(quota=settings.quota(name), free=settings.policy(name) == FREE) for name in settings.clusters
        }

    def quotas(self, now: datetime, users: Collection[str]) -> Quotas:
        """All that limits these users, and what those whose minutes are limited used today."""
        if not users:
            return Quotas(zone=self._zone, policies=self._policies)
        given = self._users.quotas(users)
        found = Quotas(zone=self._zone, policies=self._policies, given=given)
        counted = users if _counts_minutes(policy.quota for policy in self._policies.values()) else given
        counted = [user for user in counted if _counts_minutes(limit.quota for limit in found.limits_anywhere(user))]
        if not counted:
            return found
        day = day_of(now, self._zone)
        used = self._use_of_day.seconds(counted, day.start, day.end)
        return Quotas(zone=self._zone, policies=self._policies, given=given, used=used)

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
        given = self._users.quotas([user])
        own_space = given.get(user, {}).get(ALL_CLUSTERS, NO_LIMITS).space_bytes
        used = self._use.seconds([user], day.start, day.end)
        quotas = Quotas(zone=self._zone, policies=self._policies, given=given, used=used)
        ledger = Ledger(quotas, self._held(user), now, waiting=self._waiting(user))

        def of(cluster: str) -> Use:
            return _use(ledger.tally(quotas.limit(user, cluster)))

        return QuotaUse(
            user=user,
            timezone=str(self._zone),
            resets_at=day.end,
            overall=of(ALL_CLUSTERS),
            clusters={cluster: of(cluster) for cluster in self._policies},
            space_bytes=self._kept(user),
            space_limit_bytes=self._space_limit if own_space is None else own_space,
        )

    def check_clusters(self, changed: Mapping[str, Quota | None], given: Mapping[str, Quota]) -> None:
        """Refuse a quota on a cluster that there is not; one from when there was may be taken away."""
        for cluster, quota in changed.items():
            if cluster not in self._policies and (quota is not None or cluster not in given):
                raise InvalidError(
                    f"cluster {cluster!r} is not configured on this server; it has {', '.join(self._policies)}",
                    field=f"quotas.{cluster}",
                )

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


def _use(tally: Tally) -> Use:
    return Use(
        quota=tally.limit.quota,
        running_jobs=len(tally.ends),
        waiting_jobs=tally.waiting,
        minutes_today=round(tally.used / 60, 2),
    )
