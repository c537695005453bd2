"""The clusters that jobs may name: what the config says of them and what their backends have."""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.backends.base import Backend
from paddlecloud.model.errors import InvalidError, UnreachableError
from paddlecloud.model.job import Resources
from paddlecloud.model.views import Cluster
from paddlecloud.scheduler.plan import Snapshot, free
from paddlecloud.server.quotas import QuotaService
from paddlecloud.server.settings import DEFAULT_CLUSTER, Settings
from paddlecloud.server.submission import Offer


class Clusters:
    def __init__(self, settings: Settings, backends: Mapping[str, Backend], quotas: QuotaService) -> None:
        self._settings = settings
        self._backends = backends
        self._quotas = quotas

    def offers(self, name: str, user: str) -> list[Offer]:
        """The clusters that a job naming `name` may go to, in the order to try, and what limits its user there."""
        names = self._settings.default_clusters if name == DEFAULT_CLUSTER else (name,)
        for named in names:
            if named not in self._settings.clusters:
                known = ", ".join([DEFAULT_CLUSTER, *self._settings.clusters])
                raise InvalidError(
                    f"cluster {named!r} is not configured on this server; it has {known}", field="cluster"
                )
        standings = self._quotas.standings(user, names)
        return [Offer(name=named, capacity=self._capacity(named), standing=standings[named]) for named in names]

    def list(self, snapshot: Snapshot) -> list[Cluster]:
        return [
            Cluster(
                name=name,
                backend=cluster.backend,
                policy=self._settings.policy(name),
                default=name in self._settings.default_clusters,
                capacity=snapshot.clusters.get(name),
                free=free(snapshot, name) if name in snapshot.clusters else None,
            )
            for name, cluster in self._settings.clusters.items()
        ]

    def _capacity(self, name: str) -> Resources | None:
        try:
            return self._backends[name].capacity()
        except UnreachableError:
            return None
