"""OpenPAI's part of the environment contract: the variables that its scripts read, for the tasks of every job.

A role's name stands in many of the names: as the job has it and, where that differs, in small letters and digits alone,
as newer versions of OpenPAI have it.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

from paddlecloud.runtime.taskfile import PORT, Role, TaskFile

_SHARED_MEMORY = 64  # MiB, which OpenPAI gives to who does not ask


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


def _of_openpai(name: str, meaning: str, value: Callable[[TaskFile], str]) -> Named:
    return Named(name, meaning, lambda task: {name: value(task)} if task.openpai else {})


def _of_first(name: str, meaning: str, value: Callable[[TaskFile], str]) -> Named:
    """Of jobs of OpenPAI's first protocol alone."""

    def values(task: TaskFile) -> dict[str, str]:
        return {name: value(task)} if task.openpai.get("protocol") == "1" else {}

    return Named(name, f"of jobs of OpenPAI in JSON: {meaning}", values)


def _fs_uri(task: TaskFile) -> str:
    """Version 1 of OpenPAI has no file system of its own."""
    return task.openpai["fs_uri"] if task.openpai["protocol"] == "1" else ""


def _of_roles(name: str, meaning: str, value: Callable[[Role], str]) -> Named:
    return Named(
        name,
        meaning,
        lambda task: {
            name.replace("<role>", called): value(role) for role in task.roles for called in _called(task, role)
        },
    )


def _of_tasks(name: str, meaning: str, value: Callable[[Role, int], str]) -> Named:
    return Named(
        name,
        meaning,
        lambda task: {
            name.replace("<role>", called).replace("<index>", str(index)): value(role, index)
            for role in task.roles
            for called in _called(task, role)
            for index in range(len(role.addresses))
        },
    )


def _of_ports(name: str, meaning: str) -> Named:
    def values(task: TaskFile) -> dict[str, str]:
        return {
            name.replace("<role>", called).replace("<index>", str(index)).replace("<label>", label): text
            for role in task.roles
            for called in _called(task, role)
            for index, ports in enumerate(role.ports)
            for label, text in _listed(role, ports).items()
        }

    return Named(name, meaning, values)


def _listed(role: Role, ports: "list[int]") -> dict[str, str]:
    """The ports of a task by their labels, each joined by commas."""
    return {
        label: ",".join(str(ports[place]) for place in places)
        for label, places in role.labels.items()
        if all(place < len(ports) for place in places)
    }


def _called(task: TaskFile, role: Role) -> list[str]:
    """The names of a role; none that another role has itself."""
    stripped = "".join(letter for letter in role.name.lower() if letter.isalnum())
    others = [other.name for other in task.roles]
    return [role.name] if not stripped or stripped in others else [role.name, stripped]


def _role(task: TaskFile) -> Role:
    return next(role for role in task.roles if role.name == task.role)


def _resource(role: Role) -> str:
    return f"{role.gpus},{role.cpus:g},{_mebibytes(role)},{_shared_memory(role)}"


def _shared_memory(role: Role) -> int:
    return (role.shared_memory_bytes >> 20) or _SHARED_MEMORY


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


def _own_ports(task: TaskFile) -> dict[str, str]:
    return _listed(_role(task), task.ports)


def _own_port(name: str, meaning: str, label: str) -> Named:
    def values(task: TaskFile) -> dict[str, str]:
        found = _own_ports(task)
        return {name: found[label].partition(",")[0]} if label in found else {}

    return Named(name, meaning, values)


NAMED: tuple[Named, ...] = (
    _one("PAI_JOB_NAME", "user~name of the job", lambda task: f"{task.user}~{task.job_name}"),
    _one("PAI_FRAMEWORK_NAME", "the same as PAI_JOB_NAME", lambda task: f"{task.user}~{task.job_name}"),
    _one("PAI_USER_NAME", "name of the job's user", lambda task: task.user),
    _one("PAI_USERNAME", "the same as PAI_USER_NAME", lambda task: task.user),
    _one(
        "PAI_VIRTUAL_CLUSTER",
        "name of the virtual cluster that a job of OpenPAI names; of others, of the cluster",
        lambda task: task.openpai.get("virtual_cluster") or task.cluster,
    ),
    _of_openpai("PAI_DEFAULT_FS_URI", "of jobs of OpenPAI: the file system that their paths begin with", _fs_uri),
    _of_first("PAI_CODE_DIR", "where its code came from", lambda task: task.openpai["code_dir"]),
    _of_first("PAI_DATA_DIR", "its dataDir", lambda task: task.openpai["data_dir"]),
    _of_first("PAI_OUTPUT_DIR", "its outputDir", lambda task: task.openpai["output_dir"]),
    _of_first("PAI_CONTAINER_ID", "a name of this start of the task", lambda task: f"{task.handle}-{task.task}"),
    _of_first("APP_ID", "a name of this attempt of the job", lambda task: task.handle),
    _of_first("FRAMEWORK_NAME", "the same as PAI_JOB_NAME", lambda task: f"{task.user}~{task.job_name}"),
    _of_first("HADOOP_USER_NAME", "name of the job's user", lambda task: task.user),
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
    _of_ports(
        "PAI_PORT_LIST_<role>_<index>_<label>",
        "ports of a task, joined by commas: http is its PADDLE_PORT, ssh another, and what the job asks for",
    ),
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
        "this task's ports of that label, joined by commas",
        lambda task: {f"PAI_CONTAINER_HOST_{label}_PORT_LIST": ports for label, ports in _own_ports(task).items()},
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
    _own("PAI_CURRENT_TASK_ROLE_SHM_MB", "MiB of shared memory that it may count on", _shared_memory),
    _own("PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT", "of this task's role", lambda role: role.min_failed),
    _own("PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT", "of this task's role", lambda role: role.min_succeeded),
    _one(
        "NVIDIA_VISIBLE_DEVICES",
        "numbers of this task's GPUs, joined by commas; none on CPUs",
        lambda task: ",".join(map(str, task.gpus)) or "none",
    ),
)
