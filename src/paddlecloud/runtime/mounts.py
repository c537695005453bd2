"""Carries out a plan of a root folder: makes every mount at a place of its own, then changes to it for good."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import Callable

from paddlecloud.runtime import below, namespaces, smallfiles
from paddlecloud.runtime.root import (
    Bind,
    Cover,
    Device,
    Devices,
    File,
    Folder,
    Link,
    Memory,
    Plan,
    Proc,
    Room,
    Seal,
    Step,
    Terminals,
)

_NOTHING = "mode=755,size=4k"
_MIRROR = "mode=755,size=1m"
_MADE_HERE = ("/tmp", "/var/tmp")


class Builder:
    """`place` is a folder in which the root is put together, and `owner` whose folders in it are; `pid`: the task has a
    PID namespace of its own; `guarded`: it runs as root and may not reach kernel settings; `mirrored`: the root shows
    the machine's own folders, with the links in them."""

    def __init__(self, place: str, owner: int | None, *, pid: bool, guarded: bool, mirrored: bool = False) -> None:
        self._place = place
        self._mirrored = mirrored
        self._owner = owner
        self._pid = pid
        self._guarded = guarded
        self._untrusted: tuple[str, ...] = ()
        self._restricts_each = False  # what comes first becomes read-only as a whole
        self._makes_devices = os.geteuid() == 0
        self._steps: dict[type, Callable[..., None]] = {
            Bind: self._bind,
            Memory: self._memory,
            Folder: self._folder,
            Room: self._room,
            Link: self._link,
            File: self._file,
            Device: self._device,
            Devices: self._devices,
            Proc: self._proc,
            Terminals: self._terminals,
            Cover: self._cover,
            Seal: self._seal,
        }

    def enter(self, plan: Plan) -> None:
        """Build the root folder and make it that of this process."""
        self._untrusted = tuple(f"{folder}/" for folder in plan.untrusted)
        namespaces.mount_memory(self._place, plan.top)
        namespaces.leave_out(self._place)
        for step in plan.fixed:
            self._do(step)
        namespaces.restrict(self._place, read_only=True)
        namespaces.make_memory_writable(self._place)
        self._restricts_each = True
        for step in plan.own:
            self._do(step)
        namespaces.restrict(self._place, read_only=False)
        masked = os.umask(0)  # device files keep their modes
        for step in plan.devices:
            self._do(step)
        os.umask(masked)
        namespaces.change_root(self._place)

    def _do(self, step: Step) -> None:
        self._steps[type(step)](step)

    def _bind(self, step: Bind) -> None:
        target = self._place + (self._without_links(step.target) if step.is_folder is None else step.target)
        try:
            if step.target.startswith(self._untrusted):
                self._bind_within(step.source, target)
            else:
                _make_place(target, folder=_is_folder(step.source) if step.is_folder is None else step.is_folder)
                namespaces.bind(step.source, target)
        except FileNotFoundError:
            if step.optional:
                return
            raise
        if step.read_only and self._restricts_each:
            namespaces.restrict(target, read_only=True)

    def _bind_within(self, source: str, target: str) -> None:
        """By descriptors: job code may have put a link on the way, and that may lead anywhere."""
        is_folder = _is_folder(source)
        place = below.open_folder(self._place, target if is_folder else os.path.dirname(target))
        try:
            if not is_folder:
                place = _replaced(place, _open_file(place, os.path.basename(target)))
            namespaces.bind(source, f"/proc/self/fd/{place}")
        finally:
            os.close(place)

    def _memory(self, step: Memory) -> None:
        _make_folder(self._place + step.target)
        namespaces.mount_memory(self._place + step.target, step.options)

    def _folder(self, step: Folder) -> None:
        _make_folder(self._place + step.target)
        if self._owner is not None and step.own:
            os.chown(self._place + step.target, self._owner, self._owner)

    def _room(self, step: Room) -> None:
        """Folder by folder: a link on the way would lead out of the new root."""
        above, own = self._place, os.stat(self._place).st_dev
        for name in step.target.strip("/").split("/"):
            try:
                mode = os.lstat(f"{above}/{name}").st_mode
            except FileNotFoundError:
                if os.stat(above).st_dev != own:
                    _mirror(above)
                break
            if not stat.S_ISDIR(mode):
                raise NotADirectoryError(errno.ENOTDIR, "a link or file is in the way of a storage", step.target)
            above = f"{above}/{name}"
        _make_folder(self._place + step.target)

    def _link(self, step: Link) -> None:
        os.symlink(step.leads_to, self._place + step.target)

    def _file(self, step: File) -> None:
        target = self._place + step.target
        _make_in_folder(target, lambda: smallfiles.write_new(target, step.content, 0o644))

    def _devices(self, step: Devices) -> None:
        _make_folder(self._place + step.target)
        namespaces.mount_device_folder(self._place + step.target)

    def _device(self, step: Device) -> None:
        """A device file of its own, which takes no mount; in a user namespace only a mount can show one."""
        if self._makes_devices:
            found, target = os.stat(step.path), self._place + step.path
            try:
                _make_in_folder(target, lambda: os.mknod(target, found.st_mode, found.st_rdev))
                if found.st_uid or found.st_gid:
                    os.chown(target, found.st_uid, found.st_gid)
                return
            except PermissionError:
                self._makes_devices = False
        _make_place(self._place + step.path, folder=False)
        namespaces.bind_device(step.path, self._place + step.path)

    def _proc(self, step: Proc) -> None:
        _make_folder(self._place + step.target)
        if self._pid:
            namespaces.mount_proc(self._place + step.target, guarded=self._guarded)
        else:
            namespaces.bind("/proc", self._place + step.target)

    def _terminals(self, step: Terminals) -> None:
        _make_folder(self._place + step.target)
        namespaces.mount_terminals(self._place + step.target)

    def _cover(self, step: Cover) -> None:
        if step.is_folder:
            namespaces.mount_memory(self._place + step.target, _NOTHING)
        else:
            namespaces.mount_read_only(os.devnull, self._place + step.target)

    def _seal(self, step: Seal) -> None:
        namespaces.make_read_only(self._place + step.target)

    def _without_links(self, path: str) -> str:
        """A path of the machine as it is without links: one in the new root would still lead into the old."""
        if not self._mirrored or path in _MADE_HERE:
            return path
        try:
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return path
        try:
            return os.readlink(f"/proc/self/fd/{opened}")  # one call where realpath makes one for each folder above
        finally:
            os.close(opened)


def _mirror(folder: str) -> None:
    """Cover a folder with one in memory that shows everything in it, and in which more can be made."""
    names = os.listdir(folder)
    old = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        namespaces.mount_memory(folder, _MIRROR)
        for name in names:
            source, target = f"/proc/self/fd/{old}/{name}", f"{folder}/{name}"
            mode = os.lstat(source).st_mode
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(source), target)
                continue
            if stat.S_ISDIR(mode):
                os.mkdir(target)
            else:
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
            namespaces.bind(source, target)
    finally:
        os.close(old)


def _open_file(folder: int, name: str) -> int:
    with suppress(FileExistsError):
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder))
    return os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def _replaced(old: int, new: int) -> int:
    os.close(old)
    return new


def _is_folder(path: str) -> bool:
    return stat.S_ISDIR(os.stat(path).st_mode)


def _make_place(target: str, *, folder: bool) -> None:
    """Make what something is to be mounted at."""
    if folder:
        return _make_folder(target)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileExistsError):
        _make_in_folder(target, lambda: os.close(os.open(target, flags, 0o644)))
    return None


def _make_in_folder(path: str, make: Callable[[], None]) -> None:
    """Call `make` for a path, and again if its folder was missing: most often it is there."""
    try:
        make()
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        make()


def _make_folder(path: str) -> None:
    """Make a folder of the new root, with those above it; no job code runs that could put a link there."""
    try:
        os.mkdir(path, 0o755)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        os.mkdir(path, 0o755)
