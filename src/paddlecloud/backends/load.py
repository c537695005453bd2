"""The backends by the name that a config gives them: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from paddlecloud.backends.base import WHOLE_MACHINE, Backend, View
from paddlecloud.backends.local import LocalBackend, find_uv
from paddlecloud.backends.machine import machine
from paddlecloud.backends.slurm import SlurmBackend
from paddlecloud.backends.slurmcalls import Commands
from paddlecloud.backends.slurmcluster import Cluster
from paddlecloud.backends.slurmrest import Rest
from paddlecloud.model.errors import ConfigError
from paddlecloud.model.job import Resources
from paddlecloud.model.wire import nearest
from paddlecloud.runtime import rootless


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a config may say about a cluster, and what the server gives to its backend."""

    root: Path  # a folder of the backend's own
    clock: Callable[[], datetime]
    wake: Callable[[], None]
    grace_seconds: float
    gate_seconds: float
    build_seconds: float
    environments: Path | None = None
    hidden: tuple[Path, ...] = ()  # what tasks must not reach
    view: Callable[[], View] = lambda: WHOLE_MACHINE  # what they see of the machine
    own_accounts: bool = False  # on this machine, tasks run as accounts of their users
    python: str | None = None
    cpus: float | None = None  # None, here and below: what the machine has
    memory_bytes: int | None = None
    gpus: int | None = None
    isolate: bool = True  # where the machine can
    allow_unisolated: Callable[[], bool] = lambda: True  # tasks that can read what is another user's
    name: str = ""
    env: Mapping[str, str] = field(default_factory=dict)  # of the commands of Slurm
    sbatch: Mapping[str, str] = field(default_factory=dict)
    accounts: Mapping[str, str] = field(default_factory=dict)
    nodes_python: str = "python3"
    pack: bool = False
    slurmrestd: str = ""
    token_file: str = ""
    url: str = ""
    certificate: str = ""
    token: Callable[[str], str] = lambda _: ""


def load(kind: str, setup: Setup) -> Backend:
    if kind not in BACKENDS:
        raise ConfigError(f"backend {kind!r} is not known{nearest(kind, list(BACKENDS))}", field="backend")
    return BACKENDS[kind](setup)


def _local(setup: Setup) -> Backend:
    here = machine()
    return LocalBackend(
        setup.root,
        capacity=Resources(
            cpus=here.cpus if setup.cpus is None else setup.cpus,
            memory_bytes=here.memory_bytes if setup.memory_bytes is None else setup.memory_bytes,
            gpus=here.gpus if setup.gpus is None else setup.gpus,
        ),
        clock=setup.clock,
        wake=setup.wake,
        grace_seconds=setup.grace_seconds,
        gate_seconds=setup.gate_seconds,
        build_seconds=setup.build_seconds,
        environments=setup.environments,
        uv=find_uv(),
        hidden=setup.hidden,
        view=setup.view,
        own_accounts=setup.own_accounts and setup.isolate,
        python=setup.python,
        namespaces=setup.isolate,
        cgroups=setup.isolate,
        allow_unisolated=setup.allow_unisolated,
    )


def _slurm(setup: Setup) -> Backend:
    return SlurmBackend(
        setup.root,
        Cluster(
            name=setup.name,
            python=setup.nodes_python,
            options=setup.sbatch,
            url=setup.url,
            certificate=setup.certificate,
            token=setup.token,
            accounts=setup.accounts,
            pack=setup.pack,
            grace_seconds=setup.grace_seconds,
            gate_seconds=setup.gate_seconds,
            build_seconds=setup.build_seconds,
            environments=setup.environments,
            hidden=setup.hidden,
            view=setup.view,
        ),
        Rest(setup.slurmrestd, setup.token_file, rootless.own_name())
        if setup.slurmrestd
        else Commands(env=setup.env, accounts=setup.accounts.values()),
        clock=setup.clock,
        allow_unisolated=setup.allow_unisolated,
    )


BACKENDS: dict[str, Callable[[Setup], Backend]] = {
    "local": _local,
    "slurm": _slurm,
}
