"""From what a person asks for to a JobSpec: seed 002's rules on instances, job types and distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import PSERVER, TRAINER, JobSpec, Resources, RoleSpec
from paddlecloud.model.units import parse_duration, parse_size

JOB_TYPES = ("gpu", "cpu")
DISTRIBUTIONS = ("PSERVER", "NCCL2")


class Asked(TypedDict, total=False):
    """The keywords of `Client.submit`; only `command` must be given.

    `nodes` is the number of trainers; `cpus`, `memory` ("4Gi") and `gpus` are for each of them. `wall_time` is
    "00:30:00", "2h" or seconds. `distribute` is "PSERVER" or "NCCL2"; left out, several CPU trainers get a pserver
    beside each, and several GPU trainers talk by NCCL.
    """

    command: str
    name: str
    cluster: str
    job_type: str
    distribute: str
    nodes: int
    cpus: float
    memory: str | int
    gpus: int
    env: Mapping[str, str]
    wall_time: str | int
    priority: int
    public_bcc: bool
    public_bos: bool
    bos_url: str


def job_spec(asked: Asked, *, cluster_has_gpus: Callable[[str], bool]) -> JobSpec:
    """The spec, without its folder. `cluster_has_gpus` is asked only where the answer decides something."""
    cluster = asked.get("cluster") or "default"
    nodes = asked.get("nodes", 1)
    if nodes < 1:
        raise InvalidError(
            f"instance_count {nodes} is too small: a job has at least 1 instance", field="instance_count"
        )
    if not asked.get("command", "").strip():
        raise InvalidError('start_cmd is empty: say what to run, such as --start_cmd="sh run.sh"', field="start_cmd")
    job_type = _one_of(asked.get("job_type"), JOB_TYPES, "job_type") or ("gpu" if asked.get("gpus") else None)
    distribute = _one_of(asked.get("distribute"), DISTRIBUTIONS, "distribute_job_type")
    if distribute is None and nodes > 1:
        on_gpus = job_type == "gpu" or (job_type is None and cluster_has_gpus(cluster))
        distribute = "NCCL2" if on_gpus else "PSERVER"
    return JobSpec(
        roles=_roles(asked, nodes, distribute),
        name=asked.get("name") or "tmp_job",
        cluster=cluster,
        job_type=job_type,
        distribute=distribute,
        env=dict(asked.get("env", {})),
        wall_time_seconds=_seconds(asked.get("wall_time")),
        priority=asked.get("priority", 0),
        public_bcc=asked.get("public_bcc", True),
        public_bos=asked.get("public_bos", True),
        bos_url=asked.get("bos_url", ""),
    )


def resources(cpus: float | None = None, memory: str | int | None = None, gpus: int | None = None) -> Resources | None:
    """An amount for one task; None, the cluster's default, where nothing is asked for."""
    if cpus is None and memory is None and gpus is None:
        return None
    size = parse_size(memory, "memory") if isinstance(memory, str) else (memory or 0)
    if (cpus is not None and cpus <= 0) or size < 0 or (gpus or 0) < 0:
        raise InvalidError("cpus must be above 0, memory and gpus not below", field="resources")
    return Resources(cpus=1.0 if cpus is None else cpus, memory_bytes=size, gpus=gpus or 0)


def _roles(asked: Asked, nodes: int, distribute: str | None) -> tuple[RoleSpec, ...]:
    command, cpus, memory = asked["command"], asked.get("cpus"), asked.get("memory")
    share = resources(cpus, memory, asked.get("gpus"))
    trainer = RoleSpec(name=TRAINER, count=nodes, command=command, resources=share)
    if distribute != "PSERVER":
        return (trainer,)
    # Pservers never end by themselves: the job's end does not wait for them.
    share = resources(cpus, memory)
    return (RoleSpec(name=PSERVER, count=nodes, command=command, resources=share, min_succeeded=0), trainer)


def _one_of(value: str | None, known: tuple[str, ...], field: str) -> str | None:
    if value is None or value in known:
        return value
    raise InvalidError(f"{field} {value!r} is not known: it is {' or '.join(known)}", field=field)


def _seconds(wall_time: str | int | None) -> int | None:
    if wall_time is None:
        return None
    seconds = parse_duration(wall_time, "wall_time") if isinstance(wall_time, str) else wall_time
    if seconds < 1:
        raise InvalidError(f"wall_time {wall_time!r} is too short: a job runs for at least a second", field="wall_time")
    return seconds
