"""Users, groups, virtual clusters and storages as OpenPAI's clients read them: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from paddlecloud.model.group import ADMINS, Group
from paddlecloud.model.job import NOTHING, Job, Resources, total
from paddlecloud.model.shared import SharedFolder
from paddlecloud.model.user import Account, Role

_MEBIBYTE = 1 << 20
ACLS = "acls"


def user(account: Account, groups: Sequence[str], pools: Sequence[str], storages: Sequence[str]) -> dict[str, Any]:
    return {
        "username": account.name,
        "email": account.email,
        "grouplist": list(groups),
        "extension": dict(account.extension),
        "admin": account.role is Role.ADMIN,
        "virtualCluster": list(pools),
        "storageConfig": list(storages),
    }


def group(found: Group, pools: Sequence[str], storages: Sequence[str]) -> dict[str, Any]:
    """A group; what it lets its members use is ours to say, the rest of its extension is kept as it was given."""
    acls = {"admin": found.name == ADMINS, "virtualClusters": list(pools), "storageConfigs": list(storages)}
    return {
        "groupname": found.name,
        "description": found.description,
        "externalName": found.external_name,
        "extension": {**found.extension, ACLS: acls},
    }


def virtual_cluster(name: str, has: Resources | None, jobs: Collection[Job], waiting: int) -> dict[str, Any]:
    """What a queue or a cluster has and uses. Where nobody tells what there is, it has what is used."""
    used = total(job.placement.resources for job in jobs if job.placement is not None)
    whole = used if has is None else has
    share = _percent(used, whole)
    return {
        "capacity": 100,
        "usedCapacity": share,
        "maxCapacity": 100,
        "dedicated": False,
        "resourcesUsed": _amount(used),
        "resourcesGuaranteed": _amount(whole),
        "resourcesTotal": _amount(whole),
        "numActiveJobs": len(jobs),
        "numPendingJobs": waiting,
        "numJobs": len(jobs) + waiting,
        "nodeList": sorted(
            {task.address for job in jobs if job.placement for task in job.placement.tasks if task.address}
        ),
        "status": "RUNNING",
        "name": name,
    }


def node_gpus(clusters: Mapping[str, tuple[Resources | None, Resources | None]]) -> dict[str, Any]:
    """The GPUs of each cluster that tells of them, as if it were a node."""
    return {
        name: {"gpuUsed": has.gpus - free.gpus, "gpuAvailable": free.gpus, "gpuTotal": has.gpus}
        for name, (has, free) in clusters.items()
        if has is not None and free is not None
    }


def storage(folder: SharedFolder) -> dict[str, Any]:
    return {"name": folder.name, "share": True, "volumeName": folder.path, "default": False}


def storage_detail(folder: SharedFolder, *, writable: bool) -> dict[str, Any]:
    """A shared folder: tasks find it where it says, and nobody mounts it by hand."""
    return {
        "name": folder.name,
        "share": True,
        "volumeName": folder.path,
        "type": "other",
        "data": {"path": folder.path},
        "readOnly": not writable,
    }


def node(name: str, has: Resources | None, free: Resources | None) -> dict[str, Any]:
    """A cluster as a node of Kubernetes."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {}},
        "spec": {"unschedulable": False},
        "status": {
            "capacity": _kubernetes(has),
            "allocatable": _kubernetes(free),
            "conditions": [{"type": "Ready", "status": "True" if has is not None else "Unknown"}],
        },
    }


def pods(jobs: Iterable[Job]) -> list[dict[str, Any]]:
    """The tasks that are placed, as pods."""
    return [
        {
            "kind": "Pod",
            "metadata": {
                "name": f"{job.handle}-{task.name}",
                "namespace": "default",
                "labels": {
                    "jobName": job.spec.name,
                    "userName": job.user,
                    "virtualCluster": job.spec.queue or job.spec.cluster,
                },
            },
            "spec": {"nodeName": job.placement.cluster},
            "status": {"phase": "Running" if job.running_since else "Pending", "podIP": task.address},
        }
        for job in jobs
        if job.placement is not None
        for task in job.placement.tasks
    ]


def _percent(used: Resources, whole: Resources) -> float:
    """Of what is most used."""
    parts = [
        used.cpus / whole.cpus if whole.cpus else 0.0,
        used.memory_bytes / whole.memory_bytes if whole.memory_bytes else 0.0,
        used.gpus / whole.gpus if whole.gpus else 0.0,
    ]
    return round(100 * min(1.0, max(parts)), 1)


def _amount(found: Resources) -> dict[str, Any]:
    return {
        "cpu": found.cpus,
        "memory": found.memory_bytes // _MEBIBYTE,
        "gpu": found.gpus,
        "vCores": found.cpus,
        "GPUs": found.gpus,
    }


def _kubernetes(found: Resources | None) -> dict[str, str]:
    has = found or NOTHING
    return {"cpu": f"{has.cpus:g}", "memory": f"{has.memory_bytes // 1024}Ki", "nvidia.com/gpu": str(has.gpus)}
