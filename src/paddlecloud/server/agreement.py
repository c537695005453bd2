"""What settings must say together: each alone is read by config.py."""

from __future__ import annotations

import dataclasses
import ipaddress
from pathlib import Path

from paddlecloud.model.errors import ConfigError
from paddlecloud.model.job import DEFAULT
from paddlecloud.model.wire import nearest
from paddlecloud.server.cluster_settings import SLURM, ClusterSettings, QueueSettings
from paddlecloud.server.settings import HDFS, LOCAL, S3, DatacenterSettings, Settings

_OF_SLURM_ALONE = ("sbatch", "job_options", "slurmrestd", "token_file", "url", "accounts")

_OF_STORES = {  # what a datacenter of each kind needs, and what it may have
    LOCAL: ((), ("path",)),
    S3: (("bucket", "endpoint", "key_id", "secret_file"), ("region",)),
    HDFS: (("endpoint", "path", "user"), ()),
}


def check(settings: Settings, source: str) -> None:
    server = settings.server
    for name in server.default_clusters:
        if name not in settings.clusters:
            raise ConfigError(
                f"{source}: server.default_clusters names {name!r}, which is not configured"
                + nearest(name, list(settings.clusters)),
                field="server.default_clusters",
            )
    for name, cluster in settings.clusters.items():
        _check_cluster(name, cluster, source)
        _check_visible(name, cluster, settings, source)
    for name, queue in settings.queues.items():
        _check_queue(name, queue, settings, source)
    for given, missing in (("certificate", "certificate_key"), ("certificate_key", "certificate")):
        if getattr(server, given) is not None and getattr(server, missing) is None:
            raise ConfigError(
                f"{source}: server.{given} is given without server.{missing}: name both files, or neither",
                field=f"server.{missing}",
            )
    if server.certificate is None and not server.insecure and not is_loopback(server.host):
        raise ConfigError(
            f"{source}: server.host = {server.host!r} is reached from other machines, and nothing would be encrypted: "
            "name server.certificate and server.certificate_key, or set server.insecure = true to allow it",
            field="server.host",
        )


def _check_cluster(name: str, cluster: ClusterSettings, source: str) -> None:
    of_slurm = [one for one in _OF_SLURM_ALONE if getattr(cluster, one) and cluster.backend != SLURM]
    if of_slurm:
        raise ConfigError(
            f'{source}: clusters.{name}.{of_slurm[0]} is for a Slurm cluster, and its backend is "{cluster.backend}"',
            field=f"clusters.{name}.{of_slurm[0]}",
        )
    if cluster.accounts and not cluster.url:
        raise ConfigError(
            f"{source}: clusters.{name}.accounts: other accounts cannot read the server's data folder, so their tasks "
            f"have to fetch what they need: set clusters.{name}.url to where nodes reach this server",
            field=f"clusters.{name}.url",
        )


def _check_visible(name: str, cluster: ClusterSettings, settings: Settings, source: str) -> None:
    kept = [
        settings.server.data,
        *(one.path for one in settings.datacenters.values() if one.store == LOCAL and one.path),
    ]
    for shown in cluster.visible:
        folder = Path(shown.removesuffix(":rw")).resolve()
        for own in (path.resolve() for path in kept):
            if own.is_relative_to(folder) or folder.is_relative_to(own):
                raise ConfigError(
                    f"{source}: clusters.{name}.visible names {shown!r}, which holds or lies in {own}, a folder of the "
                    "server with the files of all users: name the folders that tasks need beside it",
                    field=f"clusters.{name}.visible",
                )
    changed = {Path(shown.removesuffix(":rw")).resolve() for shown in cluster.visible if shown.endswith(":rw")}
    for shown in cluster.visible:
        above = changed.intersection(Path(shown.removesuffix(":rw")).resolve().parents)
        if above:
            raise ConfigError(
                f"{source}: clusters.{name}.visible names {shown!r}, which lies in {min(above)}, where a task could "
                "put a link to any folder in its place: name only one of the two",
                field=f"clusters.{name}.visible",
            )


def _check_queue(name: str, queue: QueueSettings, settings: Settings, source: str) -> None:
    full = f"queues.{name}"
    if queue.cluster not in (known := [DEFAULT, *settings.clusters]):
        raise ConfigError(
            f"{source}: {full}.cluster names {queue.cluster!r}, which is not configured{nearest(queue.cluster, known)}",
            field=f"{full}.cluster",
        )
    clusters = settings.default_clusters if queue.cluster == DEFAULT else (queue.cluster,)
    if queue.sbatch and all(settings.clusters[one].backend != SLURM for one in clusters):
        raise ConfigError(
            f"{source}: {full}.sbatch is for Slurm, and its jobs go to {', '.join(clusters)}: leave it out",
            field=f"{full}.sbatch",
        )


def check_datacenter(name: str, datacenter: DatacenterSettings, source: str) -> None:
    needed, allowed = _OF_STORES[datacenter.store]
    useless = [one.name for one in dataclasses.fields(datacenter) if one.name not in ("store", *needed, *allowed)]
    for setting in needed:
        if not getattr(datacenter, setting):
            full = f"datacenters.{name}.{setting}"
            raise ConfigError(f"{source}: {full} is missing, and store = {datacenter.store!r} needs it", field=full)
    for setting in useless:
        if getattr(datacenter, setting):
            full = f"datacenters.{name}.{setting}"
            raise ConfigError(
                f"{source}: {full} does not go with store = {datacenter.store!r}: leave it out", field=full
            )


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone, or reaches us from there."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
