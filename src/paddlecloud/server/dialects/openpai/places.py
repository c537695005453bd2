"""Virtual clusters, storages, and nodes and pods: our queues and clusters, shared folders, and placed tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from paddlecloud.model.job import DEFAULT, Job, Resources
from paddlecloud.model.shared import SharedFolder
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import Called
from paddlecloud.server.dialects.openpai import people, refusals
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.route import Caller, PaiRoute, Sender, Sent, Visitor, json_answer
from paddlecloud.server.services import Services

router = APIRouter(prefix=ROOT, route_class=PaiRoute, default_response_class=Response, include_in_schema=False)


@router.get("/api/v1/virtual-clusters")
@router.get("/api/v2/virtual-clusters")
def list_virtual_clusters(request: Request, caller: Caller, called: Called) -> Response:
    """Those that the caller may submit to; of an admin all. `?nodes` asks for the GPUs of each machine instead."""
    if "nodes" in request.query_params:
        return json_answer(people.node_gpus(_clusters(called)))
    return json_answer(shown_clusters(called, pools_of(called, caller)))


@router.get("/api/v1/virtual-clusters/{name}")
@router.get("/api/v2/virtual-clusters/{name}")
def get_virtual_cluster(name: str, caller: Caller, called: Called) -> Response:
    if name not in pools_of(called, caller):
        raise refusals.no_virtual_cluster(name[:80])
    return json_answer(shown_clusters(called, [name])[name])


@router.get("/api/v2/virtual-clusters/{name}/sku-types")
def list_sku_types(name: str, caller: Caller, called: Called) -> Response:
    """Tasks ask for CPUs, memory and GPUs, not for kinds of machines: there are none to choose from."""
    if name not in pools_of(called, caller):
        raise refusals.no_virtual_cluster(name[:80])
    return json_answer({})


@router.get("/api/v2/cluster/sku-types")
def list_sku_types_of(request: Request, caller: Caller, called: Called) -> Response:
    return list_sku_types(request.query_params.get("vc", DEFAULT), caller, called)


@router.put("/api/v1/virtual-clusters/{name}")
@router.put("/api/v2/virtual-clusters/{name}")
@router.put("/api/v1/virtual-clusters/{name}/status")
@router.put("/api/v2/virtual-clusters/{name}/status")
def change_virtual_cluster(name: str, caller: Sender, called: Called, _: Sent) -> Response:
    raise _read_only(called, caller, name)


@router.delete("/api/v1/virtual-clusters/{name}")
@router.delete("/api/v2/virtual-clusters/{name}")
def remove_virtual_cluster(name: str, caller: Caller, called: Called) -> Response:
    raise _read_only(called, caller, name)


def _read_only(called: Services, caller: Visitor, name: str) -> refusals.Refusal:
    """Queues and clusters are the operator's to write down: the config of a server changes by nobody's request."""
    caller.need_admin()
    if name not in pools_of(called, caller):
        return refusals.no_virtual_cluster(name[:80])
    if name == DEFAULT:
        return refusals.forbidden("Don't allow to change the default virtual cluster.")
    message = (
        f"Virtual cluster {name} is of this server's config: change it there ([queues.{name}], [clusters.{name}])."
    )
    return refusals.Refusal(403, "ReadOnlyVcError", message)


def pools_of(called: Services, visitor: Visitor) -> list[str]:
    """The names of queues and clusters that somebody may submit to; of an admin all."""
    if visitor.admin:
        return pools(called)
    return pools(called, visitor.user.name)


def pools(called: Services, user: str | None = None) -> list[str]:
    queues = called.settings.queues if user is None else [queue.name for queue in called.queues.list(user)]
    return list(dict.fromkeys([DEFAULT, *queues, *called.settings.clusters]))


def shown_clusters(called: Services, names: list[str]) -> dict[str, Any]:
    snapshot = called.loop.snapshot()
    clusters = _clusters(called)
    return {
        name: people.virtual_cluster(
            name,
            _has(called, clusters, name),
            [job for job in snapshot.placed if _is_in(called, job, name)],
            sum(_is_in(called, job, name) for job in snapshot.waiting),
        )
        for name in names
    }


def _clusters(called: Services) -> dict[str, tuple[Resources | None, Resources | None]]:
    listed = called.clusters.list(called.loop.snapshot())
    return {cluster.name: (cluster.capacity, cluster.free) for cluster in listed}


def _has(
    called: Services, clusters: Mapping[str, tuple[Resources | None, Resources | None]], name: str
) -> Resources | None:
    """What a virtual cluster can have: of a queue what its cluster has, or the queue's cap if that is less; of
    `default` what those of the list have."""
    queue, terms = called.settings.queues.get(name), called.queues.terms.get(name)
    found = _of_clusters(called, clusters, name if queue is None else queue.cluster)
    return found if found is None or terms is None or terms.cap is None else terms.cap.within(found)


def _of_clusters(
    called: Services, clusters: Mapping[str, tuple[Resources | None, Resources | None]], cluster: str
) -> Resources | None:
    if cluster != DEFAULT:
        return clusters.get(cluster, (None, None))[0]
    known = [clusters[one][0] for one in called.settings.default_clusters if one in clusters]
    told = [amount for amount in known if amount is not None]
    return sum(told[1:], told[0]) if told else None


def _is_in(called: Services, job: Job, name: str) -> bool:
    """A queue's jobs are those that name it; a cluster's all that are on it or ask for it."""
    if name in called.settings.queues:
        return job.spec.queue == name
    if name == DEFAULT:
        return not job.spec.queue and job.spec.cluster == DEFAULT
    return name == (job.spec.cluster if job.placement is None else job.placement.cluster)


@router.get("/api/v2/storages")
def list_storages(request: Request, caller: Caller, called: Called) -> Response:
    """The shared folders that the caller may see; none is mounted by default: each is there in every task."""
    if request.query_params.get("default", "").lower() == "true":
        return json_answer({"storages": []})
    return json_answer({"storages": [people.storage(folder) for folder in folders_of(called, caller.identity)]})


@router.get("/api/v2/storages/{name}")
def get_storage(name: str, caller: Caller, called: Called) -> Response:
    found = next((folder for folder in folders_of(called, caller.identity) if folder.name == name), None)
    if found is None:
        raise refusals.no_storage(name[:80])
    writable = bool(set(found.writers) & set(called.groups.names_of(caller.user)))
    return json_answer(people.storage_detail(found, writable=writable))


def folders_of(called: Services, identity: Identity) -> list[SharedFolder]:
    """Those of the first datacenter, which WebHDFS shows too."""
    listed = called.shared.list_for(identity)
    first = called.pfs.datacenters[0]
    return [folder for folder in listed if folder.datacenter == first]


@router.get("/api/v1/kubernetes/nodes")
@router.get("/api/v2/kubernetes/nodes")
def list_nodes(caller: Caller, called: Called) -> Response:
    """There is no Kubernetes here: each cluster is shown as one node."""
    caller.need_admin()
    items = [people.node(name, has, free) for name, (has, free) in _clusters(called).items()]
    return json_answer({"kind": "NodeList", "apiVersion": "v1", "items": items})


@router.get("/api/v1/kubernetes/pods")
@router.get("/api/v2/kubernetes/pods")
def list_pods(request: Request, caller: Caller, called: Called) -> Response:
    """The tasks that are placed now, all in the namespace `default`."""
    caller.need_admin()
    elsewhere = request.query_params.get("namespace", "default") not in ("", "default")
    items = [] if elsewhere else people.pods(called.loop.snapshot().placed)
    return json_answer({"kind": "PodList", "apiVersion": "v1", "items": items})
