"""A job as a YAML or JSON file: flat, with `roles` for more than one kind of task; an unknown key is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from paddlecloud.model.errors import InvalidError
from paddlecloud.model.inputs import default_target
from paddlecloud.model.job import PSERVER, Hang, Input, Retry, RoleSpec
from paddlecloud.sdk.spec import hang_seconds, resources, seconds


class FileResources(Struct, frozen=True, kw_only=True):
    cpus: float | None = None
    memory: str | int | None = None
    gpus: int | None = None


class FileRole(Struct, frozen=True, kw_only=True):
    run: str
    count: int = 1
    resources: FileResources = FileResources()
    min_failed: int = 1
    min_succeeded: int | None = None
    restarts: int = 0


class FileRetry(Struct, frozen=True, kw_only=True):
    """`retry: 2` is `retry: {user_error: 2}`."""

    user_error: int = 0
    restart_me: int | None = None
    node_lost: int | None = None
    preempted: int | None = None


class FileHang(Struct, frozen=True, kw_only=True):
    """`hang: 10m` is `hang: {after: 10m}`."""

    after: str | int | None = None
    kill: bool = False


class FileInput(Struct, frozen=True, kw_only=True):
    """`to` is the last name of `from` if it is left out."""

    source: str = field(name="from")
    to: str | None = None
    user: str = ""
    deal: bool = False
    list: str = ""
    optional: bool = False


class JobFile(Struct, frozen=True, kw_only=True):
    """`workdir` is the folder to send, seen from the file's own; `run` and `nodes`, or `roles`, say what to run."""

    name: str | None = None
    workdir: str | None = None
    run: str | None = None
    env: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    resources: FileResources = FileResources()
    nodes: int | None = None
    job_type: str | None = None
    distribute: str | None = None
    cluster: str | None = None
    queue: str | None = None
    priority: int | None = None
    time_limit: str | int | None = None
    roles: Mapping[str, FileRole] = field(default_factory=dict)
    retry: int | FileRetry | None = None
    hang: str | int | FileHang | None = None
    keep_on_failure: bool | None = None
    requirements: str | None = None
    python: str | float | None = None
    setup: str | tuple[str, ...] | None = None
    inputs: tuple[FileInput, ...] = ()
    slurm: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    slurm_env: bool | None = None
    compat: Literal["v2"] | None = None


def read(path: Path) -> JobFile:
    from paddlecloud import yamltext
    from paddlecloud.model import wire

    try:
        plain = yamltext.read(path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidError(f"{path} is not UTF-8 text: {error}", field="file") from None
    except InvalidError as error:
        raise InvalidError(f"{path} is neither YAML nor JSON: {error.message}", field="file") from None
    if not isinstance(plain, dict):
        raise InvalidError(f"{path} is empty or no mapping: write `run: sh run.sh` and what else is to be said")
    try:
        found = wire.convert(JobFile, plain)
    except InvalidError as error:
        raise InvalidError(f"{path}: {error.message}", field=error.field) from None
    if found.roles and (found.run is not None or found.nodes is not None):
        raise InvalidError(
            f"{path}: `roles` says what runs, so `run` and `nodes` cannot stand beside it", field="roles"
        )
    return found


def asked(file: JobFile) -> dict[str, Any]:
    """What a file without roles asks for, as keywords of `Client.submit`."""
    given = {
        "name": file.name,
        "command": file.run,
        "nodes": file.nodes,
        "job_type": file.job_type,
        "distribute": file.distribute,
        "cluster": file.cluster,
        "queue": file.queue,
        "priority": file.priority,
        "wall_time": seconds(file.time_limit, "time_limit"),
        "cpus": file.resources.cpus,
        "memory": file.resources.memory,
        "gpus": file.resources.gpus,
        "env": _texts(file.env) or None,
        "retry": _retry(file.retry),
        "hang": _hang(file.hang),
        "keep_on_failure": file.keep_on_failure,
        "requirements": file.requirements,
        "python": None if file.python is None else _version(file.python),
        "setup": (file.setup,) if isinstance(file.setup, str) else file.setup,
        "inputs": tuple(map(_input, file.inputs)) or None,
        "slurm": _texts(file.slurm) or None,
        "slurm_env": file.slurm_env,
    }
    return {name: value for name, value in given.items() if value is not None}


def roles(file: JobFile) -> tuple[RoleSpec, ...]:
    return tuple(_role(name, role) for name, role in file.roles.items())


def _role(name: str, role: FileRole) -> RoleSpec:
    least = 0 if name == PSERVER and role.min_succeeded is None else role.min_succeeded
    share = resources(role.resources.cpus, role.resources.memory, role.resources.gpus)
    return RoleSpec(
        name=name,
        count=role.count,
        command=role.run,
        resources=share,
        min_failed=role.min_failed,
        min_succeeded=least,
        restarts=role.restarts,
    )


def _version(python: str | float) -> str:
    """The version of Python; YAML reads 3.10 as the number 3.1."""
    if isinstance(python, float) and python in (3.1, 3.2):
        raise InvalidError(
            f"python: {python}0 is read as the number {python}: write '{python}0', in quotes", field="python"
        )
    return str(python)


def _retry(said: int | FileRetry | None) -> Retry | None:
    if said is None or isinstance(said, int):
        return None if said is None else Retry(user_error=said)
    return Retry(
        user_error=said.user_error,
        restart_me=said.restart_me,
        node_lost=said.node_lost,
        preempted=said.preempted,
    )


def _input(said: FileInput) -> Input:
    return Input(
        source=said.source,
        target=default_target(said.source) if said.to is None else said.to,
        user=said.user,
        deal=said.deal,
        list=said.list,
        optional=said.optional,
    )


def _hang(said: str | int | FileHang | None) -> Hang | None:
    if said is None:
        return None
    hang = said if isinstance(said, FileHang) else FileHang(after=said)
    return Hang(after_seconds=hang_seconds(hang.after), kill=hang.kill)


def _texts(env: Mapping[str, str | int | float | bool]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in env.items()}
