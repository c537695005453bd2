"""OpenPAI's part of the environment contract: the variables that its scripts read, for the tasks of every job.

A role's name stands in many of the names: as the job has it and, where that differs, in small letters and digits alone,
as newer versions of OpenPAI have it.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

from paddlecloud.runtime.taskfile import PORT, TENSORFLOW, Role, TaskFile

_SHARED_MEMORY = 64  # MiB, which OpenPAI gives to who does not ask
_LABELS = {"http": PORT, "ssh": TENSORFLOW}  # the ports that every task of OpenPAI has


class Named(NamedTuple):
    """One variable, or those of one pattern, with <role>, <index> and <label> in it."""

    name: str
    meaning: str
    values: Callable[[TaskFile], "dict[str, str]"]


def environment(task: TaskFile) -> dict[str, str]:
    return {name: value for named in NAMED for name, value in named.values(task).items()}


def _one(name: str, meaning: str, value: Callable[[TaskFile], object]) -> Named:
    return Named(name, meaning, lambda task: {name: str(value(task))})


def _own(name: str, meaning: str, value: Callable[[Role], object]) -> Named:
    """Of the role that the task is of."""
    return Named(name, meaning, lambda task: {name: str(value(_role(task)))})


def _of_roles(name: str, meaning: str, value: Callable[[Role], str]) -> Named:
    return Named(
        name,
        meaning,
        lambda task: {name.replace("<role>", called): value(role) for role in task.roles for called in _called(role)},
    )


def _of_tasks(name: str, meaning: str, value: Callable[[Role, int], str]) -> Named:
    return Named(
        name,
        meaning,
        lambda task: {
            name.replace("<role>", called).replace("<index>", str(index)): value(role, index)
            for role in task.roles
            for called in _called(role)
            for index in range(len(role.addresses))
        },
    )


def _of_ports(name: str, meaning: str) -> Named:
    def values(task: TaskFile) -> dict[str, str]:
        return {
            name.replace("<role>", called).replace("<index>", str(index)).replace("<label>", label): str(ports[number])
            for role in task.roles
            for called in _called(role)
            for index, ports in enumerate(role.ports)
            for label, number in _LABELS.items()
            if len(ports) > number
        }

    return Named(name, meaning, values)


def _called(role: Role) -> list[str]:
    stripped = "".join(letter for letter in role.name.lower() if letter.isalnum())
    return [role.name] if stripped in ("", role.name) else [role.name, stripped]


def _role(task: TaskFile) -> Role:
    return next(role for role in task.roles if role.name == task.role)


def _resource(role: Role) -> str:
    return f"{role.gpus},{role.cpus:g},{_mebibytes(role)},{_SHARED_MEMORY}"


def _mebibytes(role: Role) -> int:
    return role.memory_bytes >> 20


def _tasks(task: TaskFile) -> int:
    return sum(len(role.addresses) for role in task.roles)


def _roles(task: TaskFile) -> str:
    return ",".join(role.name for role in task.roles)


def _hosts(role: Role) -> str:
    return ",".join(f"{address}:{ports[PORT]}" for address, ports in zip(role.addresses, role.ports) if ports)


def _instances(task: TaskFile) -> str:
    return ",".join(f"{role.name}:{index}" for role in task.roles for index in range(len(role.addresses)))


def _own_ports(task: TaskFile) -> dict[str, int]:
    return {label: task.ports[number] for label, number in _LABELS.items() if len(task.ports) > number}


def _own_port(name: str, meaning: str, label: str) -> Named:
    def values(task: TaskFile) -> dict[str, str]:
        found = _own_ports(task)
        return {name: str(found[label])} if label in found else {}

    return Named(name, meaning, values)


NAMED: tuple[Named, ...] = (
    _one("PAI_JOB_NAME", "user~name of the job", lambda task: f"{task.user}~{task.job_name}"),
    _one("PAI_FRAMEWORK_NAME", "the same as PAI_JOB_NAME", lambda task: f"{task.user}~{task.job_name}"),
    _one("PAI_USER_NAME", "name of the job's user", lambda task: task.user),
    _one("PAI_USERNAME", "the same as PAI_USER_NAME", lambda task: task.user),
    _one("PAI_VIRTUAL_CLUSTER", "name of the cluster", lambda task: task.cluster),
    _one("PAI_WORK_DIR", "the working directory at the start", lambda task: task.cwd or task.work),
    _one("PAI_TASK_ROLE_COUNT", "number of roles", lambda task: len(task.roles)),
    _one("PAI_TASK_ROLES_NUM", "the same as PAI_TASK_ROLE_COUNT", lambda task: len(task.roles)),
    _one("PAI_JOB_TASK_ROLE_COUNT", "the same as PAI_TASK_ROLE_COUNT", lambda task: len(task.roles)),
    _one("PAI_TASK_ROLE_LIST", "names of the roles, joined by commas", _roles),
    _one("PAI_JOB_TASK_ROLE_LIST", "the same as PAI_TASK_ROLE_LIST", _roles),
    _one("PAI_TASKS_NUM", "number of tasks of all roles", _tasks),
    _one("PAI_JOB_TASK_COUNT", "the same as PAI_TASKS_NUM", _tasks),
    _one("PAI_TASK_ROLE_INSTANCES", "every task as role:index, joined by commas", _instances),
    _of_roles("PAI_TASK_ROLE_TASK_COUNT_<role>", "number of its tasks", lambda role: str(len(role.addresses))),
    _of_roles("PAI_RESOURCE_<role>", "what each of its tasks has: GPUs,CPUs,MiB of memory,MiB of shared", _resource),
    _of_roles("PAI_MIN_FAILED_TASK_COUNT_<role>", "so many failures end the job", lambda role: str(role.min_failed)),
    _of_roles(
        "PAI_MIN_SUCCEEDED_TASK_COUNT_<role>",
        "so many successes does the job need",
        lambda role: str(role.min_succeeded),
    ),
    _of_roles("PAI_TASK_ROLE_<role>_HOST_LIST", "address:port of its tasks, joined by commas", _hosts),
    _of_tasks("PAI_HOST_IP_<role>_<index>", "address of a task", lambda role, index: role.addresses[index]),
    _of_ports("PAI_PORT_LIST_<role>_<index>_<label>", "port of a task: http is its PADDLE_PORT, ssh another"),
    _of_ports("PAI_<role>_<index>_<label>_PORT", "the same"),
    _one("PAI_CURRENT_TASK_ROLE_NAME", "the role of this task", lambda task: task.role),
    _one("PAI_TASK_ROLE_NAME", "the same as PAI_CURRENT_TASK_ROLE_NAME", lambda task: task.role),
    _one("PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX", "number of this task in its role", lambda task: task.role_index),
    _one("PAI_TASK_INDEX", "the same", lambda task: task.role_index),
    _one("PAI_TASK_ROLE_INDEX", "the same", lambda task: task.role_index),
    _one("PAI_CONTAINER_HOST_IP", "address of this task", lambda task: task.address),
    _one("PAI_CURRENT_CONTAINER_IP", "the same", lambda task: task.address),
    _own_port("PAI_CONTAINER_HOST_PORT", "the same as PADDLE_PORT", "http"),
    _own_port("PAI_CURRENT_CONTAINER_PORT", "the same as PADDLE_PORT", "http"),
    _own_port("PAI_CONTAINER_SSH_PORT", "another port of this task", "ssh"),
    _one(
        "PAI_CONTAINER_HOST_PORT_LIST",
        "this task's ports, as label:port;label:port;",
        lambda task: "".join(f"{label}:{port};" for label, port in _own_ports(task).items()),
    ),
    Named(
        "PAI_CONTAINER_HOST_<label>_PORT_LIST",
        "this task's port of that label",
        lambda task: {f"PAI_CONTAINER_HOST_{label}_PORT_LIST": str(port) for label, port in _own_ports(task).items()},
    ),
    _own("PAI_RESOURCE", "PAI_RESOURCE_<role> of this task's role", _resource),
    _own("PAI_TASK_ROLE_NUM", "number of tasks of this task's role", lambda role: len(role.addresses)),
    _own("PAI_CURRENT_TASK_ROLE_TASK_COUNT", "the same", lambda role: len(role.addresses)),
    _own("PAI_TASK_CPU_NUM", "CPUs of this task", lambda role: f"{role.cpus:g}"),
    _own("PAI_CURRENT_TASK_ROLE_CPU_COUNT", "the same", lambda role: f"{role.cpus:g}"),
    _own("PAI_TASK_MEM_MB", "MiB of memory of this task", _mebibytes),
    _own("PAI_CURRENT_TASK_ROLE_MEM_MB", "the same", _mebibytes),
    _own("PAI_TASK_GPU_NUM", "GPUs of this task", lambda role: role.gpus),
    _own("PAI_CURRENT_TASK_ROLE_GPU_COUNT", "the same", lambda role: role.gpus),
    _own("PAI_CURRENT_TASK_ROLE_SHM_MB", "MiB of shared memory that it may count on", lambda _: _SHARED_MEMORY),
    _own("PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT", "of this task's role", lambda role: role.min_failed),
    _own("PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT", "of this task's role", lambda role: role.min_succeeded),
    _one(
        "NVIDIA_VISIBLE_DEVICES",
        "numbers of this task's GPUs, joined by commas; none on CPUs",
        lambda task: ",".join(map(str, task.gpus)) or "none",
    ),
)
