"""A task's own root folder: writable at its top, the machine's folders in it where they are, and /pfs.

Whoever is root may write anywhere, so what is the system's is read-only for root's tasks, but for the folders that any
account may write to, and disks cannot be opened; other accounts are held back by the modes of the files. Nobody's task
finds in /run whom to ask for a process outside: systemd, a container engine.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Mapping, NamedTuple, Sequence

from paddlecloud.runtime import below, namespaces
from paddlecloud.runtime.taskfile import TaskFile

PFS = "/pfs"
_RUN = "/run"
# How hosts and users are found by name, disks that someone plugged in, GPUs, and the programs of NixOS.
_KEPT_OF_RUN = (
    "NetworkManager/resolv.conf connman/resolv.conf resolvconf systemd/resolve nscd media nvidia-persistenced "
    "current-system booted-system opengl-driver"
).split()
_SYSTEM = frozenset("bin boot etc home lib lib32 lib64 libx32 lost+found opt root sbin srv sys usr var".split())
_FOR_ALL = "/var/tmp"
_DISKS = "/sys/class/block"
_TOP = "mode=755,size=64m,nr_inodes=16k"
_ABOVE = "mode=755,size=1m"


class Entry(NamedTuple):
    """Something that this machine has: a link, and where it leads, a folder, or anything else."""

    path: str
    mode: int
    leads_to: str = ""

    @classmethod
    def at(cls, path: str) -> Entry:
        mode = os.lstat(path).st_mode
        return cls(path, mode, os.readlink(path) if stat.S_ISLNK(mode) else "")

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


class Machine(NamedTuple):
    """What the root folder of every task is made from."""

    top: list[Entry]
    run: list[Entry]  # what is kept of /run
    disks: list[str]


class Shown(NamedTuple):
    """A folder of this machine, opened before it was hidden, and where the task sees it."""

    target: str
    source: int
    writable: bool


def survey() -> Machine:
    """Look at this machine, before the fork and so once for all tasks that start together."""
    kept = [f"{_RUN}/{path}" for path in _KEPT_OF_RUN]
    disks = [f"/dev/{disk.replace('!', '/')}" for disk in os.listdir(_DISKS)] if os.path.isdir(_DISKS) else []
    return Machine(
        top=[Entry.at(f"/{name}") for name in os.listdir("/")],
        run=[Entry.at(path) for path in kept if os.path.lexists(path)],
        disks=[disk for disk in disks if os.path.exists(disk)],
    )


def open_shown(task: TaskFile) -> list[Shown]:
    """What the task sees of the PFS; what lies in another of these comes after it."""
    return [
        Shown(target, os.open(task.mounts[target], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC), target in task.writable)
        for target in sorted(task.mounts)
    ]


def files(task: TaskFile) -> dict[str, str]:
    """What seed 001's programs read at the top of the root folder."""
    return {"trainer_id": f"{task.rank}\n", "trainer_count": f"{task.trainer_count}\n"}


def enter(machine: Machine, place: str, own: Sequence[str], written: Mapping[str, str], shown: Sequence[Shown]) -> None:
    """Make a new root folder and change to it. It is put together at `place`, any folder but one of `own`, which
    stay writable wherever they are."""
    namespaces.mount_memory(place, _TOP)
    namespaces.leave_out(place)
    own_run = os.path.isdir(_RUN) and not _real(place).startswith(_RUN + "/")
    ours = {*(f"/{name}" for name in written), *([PFS] if shown else []), *([_RUN] if own_run else [])}
    top = [entry for entry in machine.top if entry.path not in ours]
    if os.geteuid() == 0:
        top = _hold_back(place, top)
        _keep_writable(place, [_FOR_ALL, *own])
    for entry in top:
        _take_over(place, entry)
    if os.geteuid() == 0:
        _cover(place, machine.disks)
    if own_run:
        _keep_of_run(place, machine.run)
    for name, content in written.items():
        _write(f"{place}/{name}", content)
    if shown:
        _show(place, shown)
    namespaces.change_root(place)


def _hold_back(place: str, top: Sequence[Entry]) -> list[Entry]:
    """Take over what is the system's so that root cannot change it; what is not."""
    left = [entry for entry in top if entry.is_folder and entry.path[1:] not in _SYSTEM]
    for entry in top:
        if entry not in left:
            _take_over(place, entry)
    namespaces.make_all_read_only(place)
    namespaces.make_memory_writable(place)
    return left


def _take_over(place: str, entry: Entry) -> None:
    """Show what the machine has at a path, whatever it is, at the same path of the new root."""
    target = place + entry.path
    if entry.leads_to:
        os.symlink(entry.leads_to, target)
        return
    if entry.is_folder:
        os.mkdir(target)
    else:
        _write(target, "")
    namespaces.bind(entry.path, target)


def _cover(place: str, disks: Sequence[str]) -> None:
    """Keep root from reading what is hidden from the disk itself."""
    for disk in disks:
        with suppress(FileNotFoundError):
            namespaces.bind(os.devnull, place + disk)


def _keep_of_run(place: str, kept: Sequence[Entry]) -> None:
    os.mkdir(place + _RUN)
    for entry in kept:
        os.makedirs(os.path.dirname(place + entry.path), exist_ok=True)
        _take_over(place, entry)


def _keep_writable(place: str, folders: Sequence[str]) -> None:
    """Show folders once more as they were, over what has become read-only. By their real paths: a link of the new root
    would still lead into the old one."""
    for folder in folders:
        with suppress(FileNotFoundError):
            real = _real(folder)
            if real.split("/")[1] in _SYSTEM:
                namespaces.bind(real, place + real)


def _show(place: str, shown: Sequence[Shown]) -> None:
    """Put /pfs together. Around what is shown it is read-only, so that nothing is written where it would be lost."""
    top = place + PFS
    os.mkdir(top, 0o755)
    namespaces.mount_memory(top, _ABOVE)
    for folder in shown:
        _show_one(place, folder)
    for folder in shown:
        if not folder.writable:
            namespaces.make_all_read_only(place + folder.target)
    namespaces.make_read_only(top)


def _show_one(place: str, folder: Shown) -> None:
    # The way to a folder within a user's folder is that user's: through no link, which may lead anywhere.
    target = below.open_folder(place + PFS, place + folder.target)
    try:
        namespaces.bind(f"/proc/self/fd/{folder.source}", f"/proc/self/fd/{target}")
    finally:
        os.close(target)
        os.close(folder.source)


def _real(path: str) -> str:
    """The path without links, from the kernel, which knows it at once."""
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        return os.readlink(f"/proc/self/fd/{folder}")
    finally:
        os.close(folder)


def _write(path: str, content: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, content.encode())
    finally:
        os.close(file)
