"""Plans a task's root folder: a list of mounts, computed from values alone; mounts.py carries it out.

Invariant: a task sees an allow-list. On a shared server that is the system's programs, a small /etc and /dev, its own
folders and what the operator made visible. On a server of one person it is that person's machine, except for the
server's own files.
"""

from __future__ import annotations

import os
from typing import Mapping, NamedTuple, Sequence, Union

from paddlecloud.runtime.folder import TaskFolder
from paddlecloud.runtime.machine import Entry, Machine
from paddlecloud.runtime.taskfile import TaskFile

PFS = "/pfs"
_HOME = "/run/home"  # what /etc/passwd says, the same for all tasks of a user; HOME itself says where it leads
# Programs and libraries, also those of NixOS and Guix.
_PROGRAMS = frozenset("bin gnu lib lib32 lib64 libx32 nix sbin usr".split())
# On a person's machine: what nobody's job has any reason to write, also where that person is root.
_SYSTEM = _PROGRAMS | frozenset("boot etc lost+found sys var".split())
_MADE_HERE = frozenset("dev pfs proc run tmp trainer_count trainer_id".split())
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS_OF_DEV = {"ptmx": "pts/ptmx", "fd": "/proc/self/fd"}
_LINKS_OF_DEV.update({name: f"/proc/self/fd/{number}" for number, name in enumerate(("stdin", "stdout", "stderr"))})
_TOP = "mode=755,size=64m,nr_inodes=16k"
_SMALL = "mode=755,size=1m"
_EMPTY = "mode=555,size=4k"


class Bind(NamedTuple):
    """Shows a folder or file of this machine, with all mounts below it."""

    source: str
    target: str
    read_only: bool = True
    optional: bool = False  # it may be missing
    is_folder: bool | None = None  # of a path that was looked at and is no link; None: nobody has looked


class Memory(NamedTuple):
    """An empty folder in memory."""

    target: str
    options: str


class Folder(NamedTuple):
    """An empty folder; `own`: the task may write into it."""

    target: str
    own: bool = False


class Room(NamedTuple):
    """A folder to mount something at. None is made on this machine: where one would be, a folder in memory shows all
    that is there."""

    target: str


class Link(NamedTuple):
    target: str
    leads_to: str


class File(NamedTuple):
    target: str
    content: bytes


class Device(NamedTuple):
    path: str


class Devices(NamedTuple):
    """An empty folder in memory that may hold device files."""

    target: str = "/dev"


class Proc(NamedTuple):
    target: str = "/proc"


class Terminals(NamedTuple):
    target: str = "/dev/pts"


class Cover(NamedTuple):
    """Hides a folder or file of this machine behind an empty one that cannot be written."""

    target: str
    is_folder: bool


class Seal(NamedTuple):
    """Makes a folder in memory read-only, once what belongs into it is there."""

    target: str


Step = Union[Bind, Memory, Folder, Room, Link, File, Device, Devices, Proc, Terminals, Cover, Seal]


class Plan(NamedTuple):
    """How to build a root folder. `fixed` becomes read-only as a whole before `own` follows; setuid programs and device
    files are forbidden in both before `devices` follow."""

    top: str  # options of the folder in memory that everything is mounted in
    fixed: Sequence[Step]
    own: Sequence[Step]
    devices: Sequence[Step] = ()
    untrusted: Sequence[str] = ()  # folders in which job code may have put links where mounts belong


def plan(task: TaskFile, folder: TaskFolder, machine: Machine, packages: str | None, *, building: bool) -> Plan:
    """`packages` is the folder of the task's environment, which is writable only while it is built."""
    owner = "" if task.uid is None else f",uid={task.uid},gid={task.uid}"
    listed = not task.whole_machine
    fixed = _allowed(task, machine) if listed else _all(machine)
    own = [] if listed else _person(machine)
    own += [Bind(folder.temporary, "/tmp", read_only=False), Bind(folder.temporary, "/var/tmp", read_only=False)]
    own += _visible(task)
    own += _covers(task.hidden, machine, _shown_where_they_are([*fixed, *own]))
    own += [
        Folder("/run", own=True),
        *([Link(_HOME, task.home)] if listed else [_taken(entry) for entry in machine.run]),
    ]
    own += [Bind(path, path) for path in (*_search_path(task), *machine.interpreters)]
    own += [Bind(path, path, read_only=False) for path in (folder.own, os.path.dirname(task.output))]
    own += [Memory(folder.mount, _EMPTY) if task.tree is None else Bind(task.tree, folder.mount)]
    own += [Bind(folder.inputs, folder.inputs)] if task.inputs else []
    own += [Bind(packages, packages, read_only=not building)] if packages is not None else []
    own += [File(f"/{name}", content.encode()) for name, content in files(task).items()]
    own += [*_pfs(task.mounts, task.writable), *_storages(task.mounts, task.writable)]
    untrusted = [PFS, "/tmp", "/var/tmp", *task.visible_writable]
    return Plan(_TOP + owner, fixed, own, [Proc(), *_devices(task, machine, owner)], untrusted)


def files(task: TaskFile) -> dict[str, str]:
    """Files at the top of the root folder that programs of PaddlePaddle Cloud read."""
    return {"trainer_id": f"{task.rank}\n", "trainer_count": f"{task.trainer_count}\n"}


def _allowed(task: TaskFile, machine: Machine) -> list[Step]:
    steps = [_taken(entry) for entry in machine.top if entry.path[1:] in _PROGRAMS]
    steps += [Bind("/sys", "/sys"), Folder("/var/tmp"), Folder("/tmp")]
    if machine.etc is not None:
        mounted = [entry for entry in machine.etc_folders if not entry.leads_to]
        return [*steps, Bind(machine.etc, "/etc"), *(_taken(entry) for entry in mounted)]
    steps += [File(f"/etc/{name}", content) for name, content in etc_files(task, machine).items()]
    return [*steps, *(_taken(entry) for entry in machine.etc_folders)]


def etc_files(task: TaskFile, machine: Machine) -> dict[str, bytes]:
    """The files of a task's small /etc, by their names in it."""
    own = accounts(task, machine.account)
    return {**machine.etc_files, **{name: content.encode() for name, content in own.items()}}


def _visible(task: TaskFile) -> list[Step]:
    writable = [Bind(path, path, read_only=False, optional=True) for path in task.visible_writable]
    return [*(Bind(path, path, optional=True) for path in task.visible), *writable]


def _all(machine: Machine) -> list[Step]:
    """Everything that only the system changes."""
    system = [entry for entry in machine.top if not entry.is_folder or entry.path[1:] in _SYSTEM]
    return [_taken(entry) for entry in system if entry.path[1:] not in _MADE_HERE]


def _person(machine: Machine) -> list[Step]:
    """The other folders of a person's machine, as writable as they are for that person."""
    folders = [entry.path for entry in machine.top if entry.is_folder and entry.path[1:] not in _SYSTEM | _MADE_HERE]
    return [Bind(path, path, read_only=False, is_folder=True) for path in folders]


def _shown_where_they_are(steps: Sequence[Step]) -> list[str]:
    """The folders of this machine that the task sees at their own paths: /tmp, say, is another one."""
    return [step.target for step in steps if isinstance(step, Bind) and step.source == step.target]


def _covers(hidden: Sequence[str], machine: Machine, shown: Sequence[str]) -> list[Step]:
    """Hides the server's files where they lie in a folder that the task sees. The folders above them become mounts,
    since a mount cannot be moved away."""
    found = [machine.hidden[path] for path in hidden if path in machine.hidden]
    seen = [entry for entry in found if any(f"{entry.path}/".startswith(f"{folder}/") for folder in shown)]
    movable = sorted({above for entry in seen for above in machine.movable[entry.path]})
    pins = [Bind(above, above, read_only=False) for above in movable if _is_in(above, shown)]
    return [*pins, *(Cover(entry.path, entry.is_folder) for entry in seen)]


def _is_in(path: str, folders: Sequence[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _search_path(task: TaskFile) -> list[str]:
    """Our folders of programs, which lie among the server's files: `python` first of all."""
    return [*task.search_path[:1], *([task.uv] if task.uv is not None else [])]


def _devices(task: TaskFile, machine: Machine, owner: str) -> list[Step]:
    shared_memory = f"mode=1777{owner}" + (f",size={task.memory_bytes}" if task.memory_bytes > 0 else "")
    wanted = machine.gpu_devices if task.gpus or task.whole_machine else []
    return [
        Devices(),
        *(Device(f"/dev/{name}") for name in _DEVICES),
        *(Device(path) for path in wanted),
        *(Link(f"/dev/{name}", leads_to) for name, leads_to in _LINKS_OF_DEV.items()),
        Terminals(),
        Memory("/dev/shm", shared_memory),
        Seal("/dev"),
    ]


def _pfs(mounts: Mapping[str, str], writable: Sequence[str]) -> list[Step]:
    """/pfs is read-only around its folders: nothing can be written where it would be lost."""
    below = sorted(target for target in mounts if _is_in(target, [PFS]))
    if not below:
        return []
    shown = [Bind(mounts[target], target, read_only=target not in writable) for target in below]
    return [Memory(PFS, _SMALL), *shown, Seal(PFS)]


def _storages(mounts: Mapping[str, str], writable: Sequence[str]) -> list[Step]:
    """Folders of the PFS at other places, where a job of OpenPAI asks for them."""
    elsewhere = sorted(target for target in mounts if not _is_in(target, [PFS]))
    found = [(Room(path), Bind(mounts[path], path, read_only=path not in writable)) for path in elsewhere]
    return [step for pair in found for step in pair]


def accounts(task: TaskFile, account: int) -> dict[str, str]:
    """/etc/passwd and /etc/group with root and the account of the task; `account`: of tasks that have no own one."""
    uid = account if task.uid is None else task.uid
    groups = "".join(f"shared{gid}:x:{gid}:\n" for gid in sorted(set(task.shared.values())))
    # The admin of a server that root started is called root too, and has an account of its own as any other user.
    names = {"root": 0, task.account: uid} if uid else {"root": 0}
    homes = {0: "/", uid: _HOME}
    return {
        "passwd": "".join(f"{name}:x:{number}:{number}::{homes[number]}:/bin/sh\n" for name, number in names.items()),
        "group": "".join(f"{name}:x:{number}:\n" for name, number in names.items()) + groups,
    }


def _taken(entry: Entry) -> Step:
    """What this machine has at a path, at the same path."""
    if entry.leads_to:
        return Link(entry.path, entry.leads_to)
    return Bind(entry.path, entry.path, is_folder=entry.is_folder)
