"""What settings say together: one by one each is well, and still they may not go with each other."""

from __future__ import annotations

import ipaddress

from paddlecloud.model.errors import ConfigError
from paddlecloud.model.job import DEFAULT
from paddlecloud.model.wire import nearest
from paddlecloud.server.settings import SLURM, ClusterSettings, QueueSettings, Settings

_OF_SLURM_ALONE = ("sbatch", "job_options", "slurmrestd", "token_file", "url", "accounts")


def check(settings: Settings, source: str) -> None:
    """`source` is where they are from, for the message."""
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


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine alone, or reaches us from there."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
