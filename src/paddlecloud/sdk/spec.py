"""From what a person asks for to a JobSpec: seed 002's rules on instances, job types and distribution."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypedDict

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import PSERVER, TRAINER, Hang, Input, JobSpec, Resources, Retry, RoleSpec
from paddlecloud.model.units import parse_duration, parse_size

JOB_TYPES = ("gpu", "cpu")
DISTRIBUTIONS = ("PSERVER", "NCCL2")
_OF_ONE_ROLE = ("command", "nodes", "cpus", "memory", "gpus")
_LEAST_MEMORY_BYTES = 2**20
_LONG_CLOCK = re.compile(r"\d{5,}:\d\d:\d\d")


class Asked(TypedDict, total=False):
    """The keywords of `Client.submit`, which says what each is for."""

    command: str
    name: str
    cluster: str
    queue: str
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
    storage_key: str
    retry: int | Retry
    hang: str | int | Hang
    keep_on_failure: bool
    requirements: str
    python: str
    setup: Sequence[str]
    inputs: Sequence[Input]
    slurm: Mapping[str, str]
    slurm_env: bool


def job_spec(asked: Asked, roles: Sequence[RoleSpec] = ()) -> JobSpec:
    """The spec, without its folder. `roles`, as a job file has them, say what runs instead of a command and nodes."""
    _check_keywords(asked)
    if roles:
        _check_beside_roles(asked)
    cluster = asked.get("cluster") or "default"
    job_type = _one_of(asked.get("job_type"), JOB_TYPES, "job_type")
    distribute = _one_of(asked.get("distribute"), DISTRIBUTIONS, "distribute")
    roles = roles or _roles(asked, distribute)
    if job_type is None and any(role.resources is not None and role.resources.gpus for role in roles):
        job_type = "gpu"
    if distribute is None and sum(role.count for role in roles) > 1:
        distribute = "PSERVER" if any(role.name == PSERVER for role in roles) else "NCCL2"
    return JobSpec(
        roles=tuple(roles),
        name=asked.get("name") or "tmp_job",
        cluster=cluster,
        queue=asked.get("queue", ""),
        job_type=job_type,
        distribute=distribute,
        env=dict(asked.get("env", {})),
        wall_time_seconds=seconds(asked.get("wall_time")),
        priority=asked.get("priority", 0),
        public_bcc=asked.get("public_bcc", True),
        public_bos=asked.get("public_bos", True),
        bos_url=asked.get("bos_url", ""),
        storage_key=asked.get("storage_key", ""),
        retry=as_retry(asked.get("retry", 0)),
        hang=as_hang(asked.get("hang")),
        keep_on_failure=asked.get("keep_on_failure", False),
        requirements=asked.get("requirements", ""),
        python=asked.get("python", ""),
        setup=tuple(asked.get("setup", ())),
        inputs=tuple(asked.get("inputs", ())),
        slurm=dict(asked.get("slurm", {})),
        slurm_env=asked.get("slurm_env", False),
    )


def as_in_the_manual(asked: Asked, *, cluster_has_gpus: Callable[[str], bool]) -> Asked:
    """With seed 002's rule on how several instances work together: on CPUs a pserver stands beside each.

    `cluster_has_gpus` is asked only where the answer decides something.
    """
    if asked.get("distribute") or asked.get("nodes", 1) < 2:
        return asked
    job_type = asked.get("job_type")
    on_gpus = job_type == "gpu" or (job_type is None and cluster_has_gpus(asked.get("cluster") or "default"))
    return {**asked, "distribute": "NCCL2" if on_gpus else "PSERVER"}


def resources(cpus: float | None = None, memory: str | int | None = None, gpus: int | None = None) -> Resources | None:
    """An amount for one task; None, the cluster's default, where nothing is asked for."""
    if cpus is not None and not cpus > 0:
        raise InvalidError(f"cpus {cpus:g} is too few: ask for more than 0, or leave it out", field="cpus")
    if gpus is not None and gpus < 0:
        raise InvalidError(f"gpus {gpus} is too few: ask for 1 or more, or leave it out", field="gpus")
    if cpus is None and memory is None and not gpus:
        return None
    size = 0 if memory is None else _memory_bytes(memory)
    return Resources(cpus=cpus or 0.0, memory_bytes=size, gpus=gpus or 0)


def seconds(wall_time: str | int | None, field: str = "wall_time") -> int | None:
    """A text needs a unit: a bare 30 was meant as minutes by half of those who write it."""
    if wall_time is None:
        return None
    found = duration(wall_time, field, needs_unit=True) if isinstance(wall_time, str) else wall_time
    if found < 1:
        raise InvalidError(f"{field} {wall_time} is too short: a job runs for at least a second", field=field)
    return found


def hang_seconds(after: str | int | None) -> int | None:
    """0 looks for no hang."""
    return duration(after, "hang", needs_unit=True) if isinstance(after, str) else after


def duration(text: str, field: str, *, needs_unit: bool = False) -> int:
    """Seconds in a text of a person; one that is only too long is not told that it is no time."""
    if _LONG_CLOCK.fullmatch(text.strip()):
        raise InvalidError(
            f"{field} {text[:80]} is too long: 9999:59:59 is the most in hours; write more in days, such as 500d",
            field=field,
        )
    return parse_duration(text, field, needs_unit=needs_unit)


def check_texts(spec: JobSpec) -> None:
    """Refuse text that is not UTF-8, such as a shell passes on as it was typed: no wire could carry it."""
    texts = {"name": spec.name, "cluster": spec.cluster, "queue": spec.queue, "bos_url": spec.bos_url}
    texts |= {"command": "".join(role.name + role.command for role in spec.roles)}
    texts |= {f"slurm {name!r}": name + value for name, value in spec.slurm.items()}
    texts |= {f"env {name!r}": name + value for name, value in spec.env.items()}
    for field, text in texts.items():
        if not is_utf8(text):
            raise InvalidError(f"{field} is not UTF-8 text: {text[:40]!r}; write it in UTF-8", field=field.split()[0])


def is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_keywords(asked: Asked) -> None:
    known = tuple(Asked.__annotations__)
    for name in asked:
        if name not in known:
            from paddlecloud.model.wire import nearest

            raise InvalidError(f"{name} is not a keyword of submit{nearest(name, known)}", field=name)


def _memory_bytes(memory: str | int) -> int:
    size = parse_size(memory, "memory") if isinstance(memory, str) else memory
    if size < _LEAST_MEMORY_BYTES:
        raise InvalidError(
            f"memory {memory} is {max(size, 0)} bytes, in which nothing runs: write it with a unit, such as 512Mi or "
            "4Gi, or leave it out",
            field="memory",
        )
    return size


def _check_beside_roles(asked: Asked) -> None:
    if said := [name for name in _OF_ONE_ROLE if name in asked]:
        raise InvalidError(
            f"{' and '.join(said)} cannot stand beside `roles`: say it in each role (run, count, resources)",
            field=said[0],
        )


def _roles(asked: Asked, distribute: str | None) -> tuple[RoleSpec, ...]:
    nodes = asked.get("nodes", 1)
    if nodes < 1:
        raise InvalidError(f"nodes {nodes} is too small: a job has at least 1 trainer", field="nodes")
    if not asked.get("command", "").strip():
        raise InvalidError("command is empty: say what to run, such as 'sh run.sh'", field="command")
    command, cpus, memory = asked["command"], asked.get("cpus"), asked.get("memory")
    share = resources(cpus, memory, asked.get("gpus"))
    trainer = RoleSpec(name=TRAINER, count=nodes, command=command, resources=share)
    if distribute != "PSERVER":
        return (trainer,)
    # Pservers never end by themselves: the job's end does not wait for them.
    share = resources(cpus, memory)
    return (RoleSpec(name=PSERVER, count=nodes, command=command, resources=share, min_succeeded=0), trainer)


def as_retry(asked: int | Retry) -> Retry:
    return asked if isinstance(asked, Retry) else Retry(user_error=asked)


def as_hang(asked: str | int | Hang | None) -> Hang:
    return asked if isinstance(asked, Hang) else Hang(after_seconds=hang_seconds(asked))


def _one_of(value: str | None, known: tuple[str, ...], field: str) -> str | None:
    if value is None or value in known:
        return value
    raise InvalidError(f"{field} {value!r} is not known: it is {' or '.join(known)}", field=field)
