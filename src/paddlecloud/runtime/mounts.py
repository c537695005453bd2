"""Carries out a plan of a root folder: makes every mount at a place of its own, then changes to it for good."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import Callable

from paddlecloud.runtime import below, namespaces, smallfiles
from paddlecloud.runtime.root import (
    Bind,
    Cover,
    Device,
    File,
    Folder,
    Link,
    Memory,
    Plan,
    Proc,
    Seal,
    Step,
    Terminals,
)

_NOTHING = "mode=755,size=4k"
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
        self._steps: dict[type, Callable[..., None]] = {
            Bind: self._bind,
            Memory: self._memory,
            Folder: self._folder,
            Link: self._link,
            File: self._file,
            Device: self._device,
            Proc: self._proc,
            Terminals: self._terminals,
            Cover: self._cover,
            Seal: self._seal,
        }

    def enter(self, plan: Plan) -> None:
        """Build the root folder and make it that of this process."""
        namespaces.mount_memory(self._place, plan.top)
        namespaces.leave_out(self._place)
        for step in plan.fixed:
            self._do(step)
        namespaces.restrict(self._place, read_only=True)
        namespaces.make_memory_writable(self._place)
        for step in plan.own:
            self._do(step)
        namespaces.change_root(self._place)

    def _do(self, step: Step) -> None:
        self._steps[type(step)](step)

    def _bind(self, step: Bind) -> None:
        try:
            source = os.open(step.source, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            if step.optional:
                return
            raise
        path = self._without_links(step.target)
        try:
            if stat.S_ISDIR(os.fstat(source).st_mode):
                target = below.open_folder(self._place, self._place + path)
            else:
                target = self._empty_file(path)
            try:
                # By descriptors: the way to the target may lead through folders that job code writes to.
                namespaces.bind(f"/proc/self/fd/{source}", f"/proc/self/fd/{target}")
            finally:
                os.close(target)
        finally:
            os.close(source)
        namespaces.restrict(self._place + path, read_only=step.read_only)

    def _memory(self, step: Memory) -> None:
        os.close(below.open_folder(self._place, self._place + step.target))
        namespaces.mount_memory(self._place + step.target, step.options)

    def _folder(self, step: Folder) -> None:
        made = below.open_folder(self._place, self._place + step.target)
        try:
            if self._owner is not None and step.own:
                os.fchown(made, self._owner, self._owner)
        finally:
            os.close(made)

    def _link(self, step: Link) -> None:
        os.symlink(step.leads_to, self._place + step.target)

    def _file(self, step: File) -> None:
        os.close(below.open_folder(self._place, self._place + os.path.dirname(step.target)))
        smallfiles.write_new(self._place + step.target, step.content, 0o644)

    def _device(self, step: Device) -> None:
        os.close(self._empty_file(step.path))
        namespaces.bind_device(step.path, self._place + step.path)

    def _proc(self, step: Proc) -> None:
        os.close(below.open_folder(self._place, self._place + step.target))
        if self._pid:
            namespaces.mount_proc(self._place + step.target, guarded=self._guarded)
        else:
            namespaces.bind("/proc", self._place + step.target)

    def _terminals(self, step: Terminals) -> None:
        os.close(below.open_folder(self._place, self._place + step.target))
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
        return os.path.realpath(path) if self._mirrored and path not in _MADE_HERE and os.path.exists(path) else path

    def _empty_file(self, path: str) -> int:
        folder = below.open_folder(self._place, self._place + os.path.dirname(path))
        try:
            with suppress(FileExistsError):
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                return os.open(os.path.basename(path), flags, 0o644, dir_fd=folder)
            return os.open(os.path.basename(path), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        finally:
            os.close(folder)
