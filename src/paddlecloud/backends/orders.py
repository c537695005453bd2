"""A launch as task files: one for each task, rendered by a pure function.

TaskFile                        from the launch
command, role, index            its TaskLaunch
address, ports, gpus, limits    its TaskPlacement
trainers, pservers, workers     the endpoints of all tasks, by role
roles                           the same with resources, for OpenPAI's variables
master, coordinator             endpoints of the first trainer
cwd, pfs                        as they are below /pfs, or where they are on this machine if tasks have no root folder
output, log_file, log_folder    <results>/rank-0, <results>/log/trainer-0.log, <results>/log/trainer-0
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import asdict

from paddlecloud.backends.base import InputAt, Launch, RefusedError, TaskLaunch
from paddlecloud.model import paths
from paddlecloud.model.job import NOTHING, PSERVER, OpenPai, RoleSpec, TaskPlacement
from paddlecloud.runtime.allocation import GIVEN
from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.root import PFS
from paddlecloud.runtime.taskfile import COORDINATOR, MASTER, PORT, TENSORFLOW, Given, Role, TaskFile

_LOOPBACK = "127.0.0.1"
_NO_IMAGE = "no images are run here, so {image} is not used: this task runs in the environment of the machine itself"
_NO_STORAGE = (
    "no storage is at {at}: tasks have no mounts on this machine, or the folder is not shared with you any more"
)
OFF = -1  # in OpenPAI's variables: never for that


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """What a task is told that depends on this machine, not on the launch."""

    folder: Path  # of the handle
    mounts: bool  # tasks have a root folder of their own, and so /pfs
    account: str
    search_path: Sequence[str]
    grace_seconds: float
    gate_seconds: float
    build_seconds: float
    interpreter: str
    environments: Path | None
    uv: str | None
    pids_limit: int
    hidden: Sequence[Path]
    whole_machine: bool  # tasks see all of it that the account may see
    visible: Sequence[Path]
    visible_writable: Sequence[Path]
    wake: Path
    boot: str
    allocation: str = GIVEN
    unisolated: bool = True
    own_accounts: bool = False  # tasks run as the account that the launch names


def render(launch: Launch, here: Here) -> dict[str, TaskFile]:
    """Task name -> its task file."""
    placed = {task.name: task for task in launch.placement.tasks}
    if set(placed) != {task.name for task in launch.tasks}:
        raise RefusedError(f"{launch.handle}: the placement and the tasks to start do not match")
    return {task.name: _render(launch, here, task, placed) for task in launch.tasks}


def _render(launch: Launch, here: Here, task: TaskLaunch, placed: dict[str, TaskPlacement]) -> TaskFile:
    place = placed[task.name]
    trainers = [other for other in launch.tasks if other.role != PSERVER]
    pservers = [other for other in launch.tasks if other.role == PSERVER]
    folder = TaskFolder(str(here.folder / task.name))
    tree = None if launch.tree is None else str(launch.tree.absolute())
    results = launch.results.absolute()
    return TaskFile(
        handle=launch.handle,
        job=launch.job,
        job_name=launch.name,
        user=launch.user,
        attempt=launch.attempt,
        task=task.name,
        role=task.role,
        role_index=task.index,
        rank=(pservers if task.role == PSERVER else trainers).index(task),
        command=task.command,
        shell=task.shell.value,
        address=place.address or _LOOPBACK,
        ports=list(place.ports),
        trainers=_endpoints(trainers, placed),
        pservers=_endpoints(pservers, placed),
        workers=_endpoints(trainers, placed, TENSORFLOW),
        master=next(iter(_endpoints(trainers, placed, MASTER)), None),
        coordinator=next(iter(_endpoints(trainers, placed, COORDINATOR)), None),
        trainer_count=len(trainers),
        pserver_count=len(pservers),
        roles=[_role(role, launch) for role in launch.roles],
        cluster=launch.placement.cluster,
        distribute=launch.distribute,
        uses_gpus=launch.uses_gpus,
        gpus=list(place.gpus),
        env=dict(launch.env),
        account=launch.user if here.own_accounts and launch.uid is not None else here.account,
        search_path=list(here.search_path),
        tree=tree,
        # Without mounts of its own a task sees the tree itself, whose files are read-only.
        mount=folder.mount if here.mounts or tree is None else tree,
        work=folder.work,
        home=folder.home,
        temporary="/tmp" if here.mounts else folder.temporary,
        output=str(results / paths.rank_folder(task.role, task.index)),
        log_file=str(results / paths.log_file(task.name)),
        log_folder=str(results / paths.log_folder(task.name)),
        cpus=place.resources.cpus,
        cpu_limit=place.cpu_limit,
        memory_bytes=place.resources.memory_bytes,
        pids_limit=here.pids_limit,
        grace_seconds=here.grace_seconds,
        gate_seconds=_gate_seconds(launch, here),
        build_seconds=here.build_seconds,
        hidden=[str(folder) for folder in here.hidden],
        uid=launch.uid if here.own_accounts else None,
        whole_machine=here.whole_machine,
        visible=[str(path) for path in here.visible],
        visible_writable=[str(path) for path in here.visible_writable],
        shared=_shared(launch) if here.own_accounts else {},
        public=[mount.target for mount in launch.mounts if mount.public],
        wake=str(here.wake),
        boot=here.boot,
        restarts=task.restarts,
        entry=_entry(launch, trainers),
        trainer_devices=_devices(placed[trainers[0].name]) if trainers else 1,
        datacenter=launch.datacenter,
        mounts={mount.target: str(mount.source.absolute()) for mount in launch.mounts},
        writable=[mount.target for mount in launch.mounts if mount.writable],
        cwd=_cwd(launch, here),
        pfs=_pfs(launch, here),
        inputs=[given(one) for one in launch.inputs],
        keep=launch.keep,
        environments=None if here.environments is None else str(here.environments / launch.user),
        requirements=launch.requirements,
        python=launch.python,
        interpreter=here.interpreter,
        uv=here.uv,
        slurm=launch.slurm,
        allocation=here.allocation,
        unisolated=here.unisolated,
        quiet_seconds=launch.quiet_seconds,
        openpai={} if launch.openpai is None else _openpai(launch.openpai),
        note=_note(launch, here, is_first=bool(trainers) and task is trainers[0]),
    )


def _gate_seconds(launch: Launch, here: Here) -> float:
    awaited = [role.awaited_seconds for role in launch.roles if role.name == PSERVER]
    return min([here.gate_seconds, *(seconds for seconds in awaited if seconds is not None)])


def _openpai(told: OpenPai) -> dict[str, str]:
    return {name: str(value) for name, value in asdict(told).items() if name != "storages"}


def _note(launch: Launch, here: Here, *, is_first: bool) -> str:
    notes = [launch.note] if is_first and launch.note else []
    notes += [_NO_IMAGE.format(image=launch.image)] if launch.image else []
    seen = {mount.target for mount in launch.mounts} if here.mounts else set()
    missing = [at for at in (launch.openpai.storages if launch.openpai is not None else ()) if at not in seen]
    return "\n".join([*notes, *(_NO_STORAGE.format(at=at) for at in missing)])


def _shared(launch: Launch) -> dict[str, int]:
    return {mount.target: mount.gid for mount in launch.mounts if mount.gid is not None}


def _entry(launch: Launch, trainers: Sequence[TaskLaunch]) -> str:
    """What trainers are told that they run, in a variable: never what secrets were put into."""
    if launch.openpai is not None or not trainers:
        return next((role.command for role in launch.roles if role.name != PSERVER), "")
    return trainers[0].command


def _role(role: RoleSpec, launch: Launch) -> Role:
    places = [place for place in launch.placement.tasks if place.role == role.name]
    share = places[0].resources if places else NOTHING
    return Role(
        name=role.name,
        gpus=share.gpus,
        cpus=share.cpus,
        memory_bytes=share.memory_bytes,
        min_failed=OFF if role.min_failed is None else role.min_failed,
        min_succeeded=role.successes_needed or (OFF if launch.openpai is not None else 0),
        addresses=[place.address or _LOOPBACK for place in places],
        ports=[list(place.ports) for place in places],
        labels=role.labels,
        shared_memory_bytes=role.shared_memory_bytes,
    )


def given(one: InputAt) -> Given:
    return Given(
        source=one.input.source,
        folder=str(one.folder.absolute()),
        path=os.fsdecode(paths.raw_of(one.path)),
        target=one.input.target,
        deal=one.input.deal,
        list=one.input.list,
        optional=one.input.optional,
        copy=one.input.copy,
        alias=one.input.alias,
    )


def _devices(trainer: TaskPlacement) -> int:
    return len(trainer.gpus) or max(1, int(trainer.resources.cpus))


def _cwd(launch: Launch, here: Here) -> str | None:
    if launch.cwd is None:
        return None
    around = [mount for mount in launch.mounts if f"{launch.cwd}/".startswith(f"{mount.target}/")]
    if not around:
        raise RefusedError(f"{launch.handle}: {launch.cwd} is in none of the folders that its tasks see")
    nearest = max(around, key=lambda mount: len(mount.target))
    return launch.cwd if here.mounts else str(nearest.source.absolute()) + launch.cwd[len(nearest.target) :]


def _pfs(launch: Launch, here: Here) -> str | None:
    if here.mounts:
        return PFS if launch.mounts else None
    return None if launch.pfs is None else str(launch.pfs.absolute())


def _endpoints(tasks: Sequence[TaskLaunch], placed: dict[str, TaskPlacement], number: int = PORT) -> list[str]:
    places = [placed[task.name] for task in tasks]
    return [f"{place.address or _LOOPBACK}:{place.ports[number]}" for place in places if len(place.ports) > number]
