"""The clusters that jobs may name: what the config says of them and what their backends have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

from paddlecloud.backends.base import Backend, View
from paddlecloud.backends.examine import memory_limit_of
from paddlecloud.backends.load import Setup, load
from paddlecloud.backends.slurm import SlurmBackend
from paddlecloud.backends.slurmnodes import Room
from paddlecloud.model.errors import ConfigError, InvalidError, UnreachableError
from paddlecloud.model.job import DEFAULT, Job, Resources
from paddlecloud.model.service import Cluster
from paddlecloud.model.views import Forecast
from paddlecloud.scheduler.plan import Snapshot, free
from paddlecloud.server.cluster_settings import ClusterSettings
from paddlecloud.server.config import kept_from_tasks, slurm_environment
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.quotas import QuotaService
from paddlecloud.server.settings import Settings
from paddlecloud.server.submission import Offer
from paddlecloud.server.task_accounts import has_accounts


def load_backends(
    settings: Settings,
    clock: Callable[[], datetime],
    wake: Callable[[], None],
    token: Callable[[str], str] = lambda _: "",  # of the tasks of a handle
    several_users: Callable[[], bool] = lambda: False,
) -> dict[str, Backend]:
    """A backend for each cluster of the config, with a folder of its own."""
    folder = DataFolder(settings.server.data)
    return {
        name: load(
            cluster.backend,
            Setup(
                root=folder.tasks / name,
                clock=clock,
                wake=wake,
                grace_seconds=settings.jobs.grace.total_seconds(),
                gate_seconds=settings.jobs.pserver_wait.total_seconds(),
                build_seconds=settings.jobs.build_limit.total_seconds(),
                environments=folder.environments,
                hidden=kept_from_tasks(settings),
                view=partial(view_of, settings, cluster, several_users),
                own_accounts=has_accounts(settings),
                python=settings.jobs.python or None,
                cpus=cluster.cpus,
                memory_bytes=cluster.memory,
                gpus=cluster.gpus,
                isolate=cluster.isolate,
                name=name,
                env=slurm_environment(),
                sbatch=cluster.sbatch,
                accounts=cluster.accounts,
                nodes_python=cluster.python,
                pack=cluster.pack,
                slurmrestd=cluster.slurmrestd,
                token_file=cluster.token_file,
                url=cluster.url,
                certificate=_certificate(settings) if cluster.url.startswith("https:") else "",
                token=token,
                allow_unisolated=lambda: settings.jobs.unisolated or not several_users(),
            ),
        )
        for name, cluster in settings.clusters.items()
    }


def view_of(settings: Settings, cluster: ClusterSettings, several_users: Callable[[], bool]) -> View:
    """What tasks see of the machine: an embedded server is its person's own, and shows that person's files, as long as
    nobody else has an account there."""
    writable = [path.removesuffix(":rw") for path in cluster.visible if path.endswith(":rw")]
    return View(
        whole_machine=settings.embedded and not several_users(),
        visible=tuple(Path(path) for path in cluster.visible if not path.endswith(":rw")),
        visible_writable=tuple(Path(path) for path in writable),
    )


def _certificate(settings: Settings) -> str:
    """What nodes know this server by: its own chain, which need not be one that others trust."""
    named = settings.server.certificate
    try:
        return "" if named is None else named.read_text()
    except OSError as error:
        raise ConfigError(f"cannot read the certificate {named}: {error.strerror}") from None


class Clusters:
    def __init__(self, settings: Settings, backends: Mapping[str, Backend], quotas: QuotaService) -> None:
        self._settings = settings
        self._backends = backends
        self._quotas = quotas

    def offers(self, name: str, user: str, own_nodes: Mapping[str, str] | None = None) -> list[Offer]:
        """The clusters that a job naming `name` may go to, in the order to try, and what limits its user there.

        `own_nodes` are the options, such as sbatch's, of a job whose trainers are to have nodes of their own.
        """
        names = self._settings.default_clusters if name == DEFAULT else (name,)
        for named in names:
            if named not in self._settings.clusters:
                known = ", ".join([DEFAULT, *self._settings.clusters])
                raise InvalidError(
                    f"cluster {named!r} is not configured on this server; it has {known}", field="cluster"
                )
        standings = self._quotas.standings(user, names)
        return [
            Offer(
                name=named,
                capacity=self._capacity(named),
                standing=standings[named],
                options=self._settings.clusters[named].options_of_jobs,
                room=None if own_nodes is None or self._settings.clusters[named].pack else self._room(named, own_nodes),
            )
            for named in names
        ]

    def list(self, snapshot: Snapshot) -> list[Cluster]:
        return [self._told(name, snapshot) for name in self._settings.clusters]

    def forecast(self, job: Job) -> Forecast | None:
        """Where a job stands that waits in the queue of its cluster."""
        backend = None if job.placement is None else self._backends.get(job.placement.cluster)
        return backend.forecast(job.handle) if isinstance(backend, SlurmBackend) else None

    def _told(self, name: str, snapshot: Snapshot) -> Cluster:
        answers = name in snapshot.clusters
        capacity, left = (snapshot.clusters[name], free(snapshot, name)) if answers else (None, None)
        if answers and capacity is None and (room := self._room(name, {})) is not None:
            capacity, left = room.capacity, room.free
        return Cluster(
            name=name,
            backend=self._settings.clusters[name].backend,
            policy=self._settings.policy(name),
            default=name in self._settings.default_clusters,
            capacity=capacity,
            free=left,
            memory_limit=self._memory_limit(name),
            down=None if answers else self._why_down(name),
        )

    def _why_down(self, name: str) -> str:
        try:
            self._backends[name].capacity()
        except UnreachableError as error:
            return error.message
        return "it did not answer a moment ago"

    def _room(self, name: str, options: Mapping[str, str]) -> Room | None:
        """The partition of Slurm that a job with these options goes to; None: it is no Slurm, or does not tell."""
        backend = self._backends[name]
        try:
            return backend.rooms.of(options) if isinstance(backend, SlurmBackend) else None
        except UnreachableError:
            return None

    def runs_tasks_at(self, address: str) -> bool:
        """Whether a node of a cluster has this address, so that tasks of any user may call from it."""
        try:
            return any(one.addresses.has(address) for one in self._backends.values() if isinstance(one, SlurmBackend))
        except UnreachableError:
            return True  # nobody can tell now

    def _memory_limit(self, name: str) -> str | None:
        try:
            return memory_limit_of(self._backends[name])
        except UnreachableError:
            return None

    def _capacity(self, name: str) -> Resources | None:
        try:
            return self._backends[name].capacity()
        except UnreachableError:
            return None
