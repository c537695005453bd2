"""The five verbs of a backend, and what it is given to start.

Each verb may be repeated at any time, after a crash too, and may raise UnreachableError, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from paddlecloud.model.errors import PaddleCloudError
from paddlecloud.model.job import Input, OpenPai, Placement, Resources, RoleSpec, Shell
from paddlecloud.model.task import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskLaunch:
    """One task of a launch: the names and numbers are its placement's, the command its role's."""

    name: str
    role: str
    index: int
    command: str
    restarts: int = 0  # how often it is started again after it failed, while the others go on
    shell: Shell = Shell.SH


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder of the PFS: where it is on this machine, and the path that a task knows it by."""

    source: Path
    target: str  # below /pfs, or where a job of OpenPAI has a storage
    writable: bool
    gid: int | None = None  # the group whose members share its files, where tasks have accounts of their own
    public: bool = False  # everybody may read it


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAt:
    """An input of a job, and where it is on the server's machine: what is at `path` in `folder`, "" being the folder.

    The folder is the server's; what is in it may be a user's, so no link in it is to be followed.
    """

    input: Input
    folder: Path
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """All that a backend needs to start one attempt of a job."""

    handle: str
    job: str
    name: str
    user: str
    attempt: int
    placement: Placement
    tasks: tuple[TaskLaunch, ...]
    roles: tuple[RoleSpec, ...]
    env: Mapping[str, str]  # what the user asked for, on top of the contract
    uses_gpus: bool
    distribute: str | None  # "PSERVER" or "NCCL2" for several trainers, None for one
    tree: Path | None  # the read-only folder that the job's files were laid out in
    results: Path  # where output/<job>/ is kept: rank-0/, log/trainer-0.log, …
    datacenter: str = ""
    image: str = ""  # for backends that run images
    registry: str = ""  # the name of its user's secret to pull it with
    mounts: tuple[Mount, ...] = ()
    cwd: str | None = None  # a path at or below a target, where the tasks start; None: in a private copy of the tree
    quiet_seconds: float = 0.0  # a task that does nothing for so long is reported as quiet; 0: none is
    keep: bool = False  # what failed tasks had in their working directories goes to the results
    requirements: str = ""  # the file that names its Python packages; "": what is found in the tree; "none": none
    python: str = ""  # the version or path of the Python that it asks for
    wall_time_seconds: int | None = None  # for clusters that want to know; the scheduler itself ends what runs longer
    options: Mapping[str, str] = field(default_factory=dict)  # of the cluster's own language, such as sbatch's
    slurm: bool = False  # its trainers are told the variables of a Slurm step too
    own_nodes: bool = False  # each of its tasks has a node of its own, on a cluster that has nodes
    inputs: tuple[InputAt, ...] = ()
    pfs: Path | None = None  # the folder above those of the datacenters, for tasks that cannot have mounts
    uid: int | None = None  # the account on this machine that its tasks run as; None: the server's own
    openpai: OpenPai | None = None  # what variables of OpenPAI alone tell
    note: str = ""  # what the log of the first trainer begins with


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What tasks see of the machine besides their own folders: all that their account may see, or the system's programs
    and the folders listed."""

    whole_machine: bool = False
    visible: tuple[Path, ...] = ()
    visible_writable: tuple[Path, ...] = ()


WHOLE_MACHINE = View(whole_machine=True)


class RefusedError(PaddleCloudError):
    """The backend can never start this launch; the job fails with the message."""

    code = "refused"


class BusyError(PaddleCloudError):
    """The backend cannot start this launch as placed, such as on a port that is taken; place it anew."""

    code = "busy"


class Backend(Protocol):
    def capacity(self) -> Resources | None:
        """All there is to give out; None: the cluster keeps its own queue."""
        ...

    def start(self, launch: Launch) -> None:
        """Start all its tasks or none; a handle that it already holds is left as it is."""
        ...

    def report(self, handles: Collection[str]) -> Mapping[str, Report]:
        """What became of these handles, in one question; unknown ones are left out."""
        ...

    def stop(self, handle: str) -> None:
        """Ask its tasks to end, and make them after a grace time; does not wait."""
        ...

    def clean(self, handles: Collection[str]) -> None:
        """Remove every trace of these handles, whose tasks have ended; their results stay."""
        ...

    def close(self) -> None:
        """Let go of what this object holds in this process; the tasks run on."""
        ...
