"""What this machine allows of namespaces and mounts, found out by trying in children that end at once."""

from __future__ import annotations

import os
import signal
from itertools import product
from typing import Callable

from paddlecloud.runtime import landlock, namespaces, privileges, seccomp
from paddlecloud.runtime.mounts import Builder
from paddlecloud.runtime.namespaces import Isolation
from paddlecloud.runtime.root import Bind, Devices, Plan, Proc, Step, Terminals


def probe_in(folder: str) -> Isolation:
    """The most that this machine allows to tasks whose folders are in `folder`."""
    scratch = os.path.join(folder, f".probe-{os.getpid()}")
    for name in ("", "lower", "upper", "overlay", "work"):
        os.mkdir(os.path.join(scratch, name), 0o700)
    try:
        return probe(scratch)
    finally:
        for above, names, _ in os.walk(scratch, topdown=False):
            for name in names:
                os.rmdir(os.path.join(above, name))
        os.rmdir(scratch)


def probe(scratch: str) -> Isolation:
    """The most that this machine allows, found out by trying; `scratch` is a folder on the disk of the tasks."""
    for wanted in (
        Isolation(pid=True, mount=True, ipc=True),
        Isolation(user=True, pid=True, mount=True, ipc=True),
        Isolation(mount=True, ipc=True),
        Isolation(user=True, mount=True, ipc=True),
    ):
        for overlay, calls, fence in product((True, False), (True, False), sorted({landlock.version(), 0})[::-1]):
            candidate = wanted._replace(overlay=overlay, filter=calls, landlock=fence)
            if _works(candidate, scratch):
                return candidate
    return Isolation()


def can_leave(isolation: Isolation) -> bool:
    """Whether one process can fork into these namespaces again and again; out of a user namespace no way leads back."""

    def twice() -> None:
        for _ in range(2):
            namespaces.enter(isolation)
            namespaces.leave()

    return not isolation.pid or (not isolation.user and _succeeds(twice))


def _works(isolation: Isolation, scratch: str) -> bool:
    def outer() -> None:
        os.setsid()
        namespaces.enter(isolation)
        if not _succeeds(inner):
            raise OSError("refused inside")

    def inner() -> None:
        namespaces.enter_mounts()
        if isolation.overlay:
            folders = [os.path.join(scratch, name) for name in ("lower", "upper", "overlay", "work")]
            namespaces.mount_overlay(*folders, user=isolation.user)
            with open(os.path.join(folders[3], "written"), "wb"):
                pass
            os.unlink(os.path.join(folders[3], "written"))
        devices: list[Step] = [Proc(), Devices(), Terminals()]
        plan = Plan("mode=755", [Bind("/usr", "/usr")], [Bind(scratch, scratch, read_only=False)], devices)
        Builder(os.path.join(scratch, "lower"), None, pid=isolation.pid, guarded=True).enter(plan)
        privileges.drop(None, [])
        if isolation.landlock:
            landlock.restrict(isolation.landlock)
        if isolation.filter:
            seccomp.restrict()
        os.stat("/proc/self/stat")

    return _succeeds(outer)


def _succeeds(act: Callable[[], None]) -> bool:
    """Whether `act` goes through in a child of its own."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(10)
            act()
            code = 0
        except (OSError, AttributeError):
            pass
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
