"""What a job's tasks ask for, and the addresses, ports and GPUs they get: pure.

Ports are unique among live tasks and outside the kernel's ephemeral range, since some frameworks bind 0.0.0.0;
every live task has a loopback address of its own, since launchers count nodes by distinct addresses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NoReturn

from msgspec.structs import replace

from paddlecloud.model import paths
from paddlecloud.model.job import (
    NOTHING,
    PORTS_PER_TASK,
    PSERVER,
    Job,
    JobSpec,
    Placement,
    Resources,
    RoleSpec,
    TaskPlacement,
    total,
)

PORTS = range(20_000, 32_000)
_PORT_BLOCKS = range(PORTS.start, PORTS.stop, PORTS_PER_TASK)
_ADDRESSES = range(2, 2**16 - 1)


class NoPortsError(Exception):
    """There are not enough free ports for a job now; the message says so."""


def requests(spec: JobSpec, capacity: Resources | None) -> list[TaskPlacement]:
    """Each task with what it asks for. Without `resources` that is one CPU and a CPU's share of the memory,
    or, where all tasks would not fit that way, an equal share of the cluster."""
    roles = {role.name: role for role in spec.roles}
    tasks = [
        TaskPlacement(
            role=role.name,
            index=index,
            resources=_completed(role.resources, capacity),
            cpu_limit=role.resources is not None and role.resources.cpus > 0,
        )
        for role in spec.roles
        for index in range(role.count)
    ]
    open_tasks = [task for task in tasks if roles[task.role].resources is None]
    if not open_tasks:
        return tasks
    if capacity is None:
        gpu = Resources(gpus=1)
        return [replace(task, resources=gpu) if _wants_gpu(spec, task) else task for task in tasks]
    left = capacity - total(task.resources for task in tasks)
    default = _default_request(capacity, left, len(open_tasks))
    on_gpus = spec.job_type == "gpu" or (spec.job_type is None and capacity.gpus > 0)
    return [
        task
        if roles[task.role].resources is not None
        else replace(task, resources=replace(default, gpus=1 if on_gpus and task.role != PSERVER else 0))
        for task in tasks
    ]


def _wants_gpu(spec: JobSpec, task: TaskPlacement) -> bool:
    return spec.job_type == "gpu" and task.role != PSERVER and task.resources == NOTHING


def place(job: Job, cluster: str, tasks: Iterable[TaskPlacement], held: Iterable[Placement], gpus: int) -> Placement:
    """The tasks with addresses, ports and GPUs that none of the held placements has, on whatever cluster it is: two
    clusters may be one machine, whose ports they share."""
    held = list(held)
    in_use = [task for placement in held for task in placement.tasks]
    ports = _FreePorts(job, {port for task in in_use for port in task.ports})
    addresses = _free_addresses({task.address for task in in_use})
    taken = {gpu for placement in held if placement.cluster == cluster for task in placement.tasks for gpu in task.gpus}
    free_gpus = iter([gpu for gpu in range(gpus) if gpu not in taken])
    placed = tuple(
        replace(
            task,
            address=next(addresses),
            ports=ports.of(task.role),
            gpus=tuple(next(free_gpus) for _ in range(task.resources.gpus)),
        )
        for task in tasks
    )
    return Placement(cluster=cluster, tasks=placed)


def leave_open(job: Job, cluster: str, tasks: Iterable[TaskPlacement]) -> Placement:
    """The tasks with ports alone, on a cluster that finds nodes for them by itself."""
    ports = _FreePorts(job, set())
    return Placement(cluster=cluster, tasks=tuple(replace(task, ports=ports.of(task.role)) for task in tasks))


def _completed(asked: Resources | None, capacity: Resources | None) -> Resources:
    """A request that names only some amounts, with the others: one CPU, and its CPUs' share of the memory."""
    if asked is None or capacity is None:
        return asked or Resources()
    cpus = asked.cpus or 1.0
    memory = asked.memory_bytes or int(capacity.memory_bytes * min(1.0, cpus / max(capacity.cpus, 1.0)))
    return Resources(cpus=cpus, memory_bytes=memory, gpus=asked.gpus)


def _default_request(capacity: Resources, left: Resources, count: int) -> Resources:
    cpus = max(capacity.cpus, 1.0)
    whole = Resources(cpus=1.0, memory_bytes=int(capacity.memory_bytes / cpus))
    share = Resources(
        cpus=int(1000 * max(left.cpus, 0.0) / count) / 1000, memory_bytes=max(left.memory_bytes, 0) // count
    )
    return Resources(cpus=min(whole.cpus, share.cpus), memory_bytes=min(whole.memory_bytes, share.memory_bytes))


class _FreePorts:
    """Ports for the tasks of a job, of which each is given once."""

    def __init__(self, job: Job, taken: set[int]) -> None:
        self._job = job
        self._roles = {role.name: role for role in job.spec.roles}
        self._taken = taken
        self._blocks = _free_ports(paths.handle(job.id, job.attempt + 1), taken)

    def of(self, role: str) -> tuple[int, ...]:
        """Those of one task: as many as its labels stand for, and what it wishes for where that is free."""
        asked = self._roles[role]
        wished = self._wished(asked)
        count = asked.port_count
        ports: list[int] = []
        while len(ports) < count:
            ports += next(self._blocks, ()) or self._refuse()
        self._taken.update(ports)
        return tuple(wished.get(place, port) for place, port in enumerate(ports[:count]))

    def _refuse(self) -> NoReturn:
        raise NoPortsError(f"all ports from {PORTS[0]} to {PORTS[-1]} are given out or wanted by this job itself")

    def _wished(self, role: RoleSpec) -> dict[int, int]:
        """A port that its cluster has just refused is not tried again."""
        found = {
            place: port
            for place, port in role.wishes.items()
            if port not in self._taken and f"port {port}," not in self._job.queue_reason
        }
        self._taken.update(found.values())
        return found


def _free_ports(seed: str, taken: set[int]) -> Iterator[tuple[int, ...]]:
    """Blocks of free ports, from a start that differs for every attempt: a port that another program took is not met
    again by the next one."""
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big")
    for step in range(len(_PORT_BLOCKS)):
        first = _PORT_BLOCKS[(start + step) % len(_PORT_BLOCKS)]
        block = tuple(range(first, first + PORTS_PER_TASK))
        if not taken.intersection(block):
            yield block


def _free_addresses(taken: set[str | None]) -> Iterator[str]:
    for number in _ADDRESSES:
        address = f"127.0.{number >> 8}.{number & 255}"
        if address not in taken:
            yield address
