"""Linux calls that Python has no names for: namespaces and mounts.

A task gets its own PID, mount and IPC namespaces. A plain user gets them inside a user namespace that maps only that
user.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
from contextlib import suppress
from typing import Any, NamedTuple

from paddlecloud.runtime import smallfiles

_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000

_MS_RDONLY = 1
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_NOEXEC = 8
_MS_REMOUNT = 32
_MS_BIND = 4096
_MS_REC = 16384
_MS_UNBINDABLE = 1 << 17
_MS_PRIVATE = 1 << 18
_MNT_DETACH = 2
# What statvfs says of a mount, and the flag that keeps it so: a user namespace may not drop any of them.
_KEPT_FLAGS = {2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}

_MOUNT_SETATTR = 442  # its number on every architecture; Linux 5.12
_MOUNT_ATTR_RDONLY = 1
_MOUNT_ATTR_NOSUID = 2
_MOUNT_ATTR_NODEV = 4
_MOUNT_ATTR_NOEXEC = 8
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

_USER_NAMESPACES = "/proc/sys/user/max_user_namespaces"
_KERNEL_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs")  # of /proc

_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> Any:
    """A function of the C library, with its arguments' types said once for all forks."""
    function = getattr(_libc, name)
    function.argtypes = arguments
    return function


_libc_unshare = _call("unshare", ctypes.c_int)
_libc_setns = _call("setns", ctypes.c_int, ctypes.c_int)
_libc_mount = _call("mount", ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
_libc_prctl = _call("prctl", ctypes.c_int, *[ctypes.c_ulong] * 4)
_libc_umount = _call("umount2", ctypes.c_char_p, ctypes.c_int)
_Attributes = ctypes.c_uint64 * 4  # what to set; then what to clear, propagation and a user namespace
_libc_syscall = ctypes.CDLL(None, use_errno=True).syscall
_libc_syscall.argtypes = (
    ctypes.c_long,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_uint,
    ctypes.POINTER(_Attributes),
    ctypes.c_size_t,
)
_WRITABLE = _Attributes(_MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV)
_READ_ONLY = _Attributes(_MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NODEV | _MOUNT_ATTR_RDONLY)
_SEALED = _Attributes(_MOUNT_ATTR_RDONLY)
_DEVICE = _Attributes(_MOUNT_ATTR_NOSUID | _MOUNT_ATTR_NOEXEC)


class Isolation(NamedTuple):
    """Which namespaces and fences a task gets. `user`: the others are made inside a user namespace; `mount`: with a
    root folder of its own; `filter`: of system calls; `landlock`: the version of its interface, 0 without it."""

    user: bool = False
    pid: bool = False
    mount: bool = False
    ipc: bool = False
    overlay: bool = False
    filter: bool = False
    landlock: int = 0

    def __str__(self) -> str:
        names = [name for name, here in (("PID", self.pid), ("mount", self.mount), ("IPC", self.ipc)) if here]
        if not names:
            return "no namespaces"
        inside = " in a user namespace" if self.user else ""
        overlay = ", overlay working directories" if self.overlay else ""
        calls = f", {'a' if self.filter else 'no'} filter of system calls" if self.mount else ""
        fence = f", Landlock ABI {self.landlock}" if self.landlock else ", no Landlock"
        return f"{', '.join(names)} namespaces{inside}{overlay}{calls}{fence}"


def enter(isolation: Isolation) -> None:
    """Put this process's next child into new PID and IPC namespaces (and this process into the user's, if needed)."""
    flags = 0
    flags |= _CLONE_NEWUSER if isolation.user else 0
    flags |= _CLONE_NEWPID if isolation.pid else 0
    flags |= _CLONE_NEWIPC if isolation.ipc else 0
    if not flags:
        return
    uid, gid = os.geteuid(), os.getegid()
    _unshare(flags)
    if isolation.user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
        forbid_user_namespaces()


def forbid_user_namespaces() -> None:
    """Let there be none below this one: in it a task could leave our mounts, and what they hide."""
    with suppress(OSError):  # before Linux 4.9, or in a container with a read-only /proc/sys: the filter does it alone
        _write(_USER_NAMESPACES, "0")


def enter_user_namespace() -> None:
    """A user namespace for this process, whose ids another process has to map."""
    _unshare(_CLONE_NEWUSER)


def in_user_namespace() -> bool:
    """Whether this process is in a user namespace other than the machine's own."""
    return smallfiles.read("/proc/self/uid_map").split() != [b"0", b"0", b"4294967295"]


def leave() -> None:
    """Put this process's next child where this process is, so that it may enter another PID namespace."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc_setns(own, _CLONE_NEWPID), "setns")
    finally:
        os.close(own)


def enter_mounts() -> None:
    """A mount table of this process's own, from which nothing leaks out."""
    _unshare(_CLONE_NEWNS)
    _mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None)


def mount_proc(target: str, *, guarded: bool) -> None:
    """Mount /proc of this PID namespace; `guarded`: root, also without capabilities, may not change kernel settings."""
    _mount(b"proc", os.fsencode(target), b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None)
    for name in _KERNEL_SETTINGS if guarded else ():
        path = f"{target}/{name}"
        if os.path.exists(path):
            mount_read_only(path, path)


def mount_terminals(target: str) -> None:
    """Pseudo-terminals of this task's own."""
    options = b"newinstance,ptmxmode=0666,mode=620"
    _mount(b"devpts", os.fsencode(target), b"devpts", _MS_NOSUID | _MS_NOEXEC, options)


def mount_overlay(lower: str, upper: str, work: str, target: str, *, user: bool) -> None:
    # Through open folders: a path in the options would need escapes, and all of them must fit in one page.
    fds = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in (lower, upper, work)]
    try:
        options = "lowerdir=/proc/self/fd/{},upperdir=/proc/self/fd/{},workdir=/proc/self/fd/{}".format(*fds)
        if user:
            options += ",userxattr"
        _mount(b"overlay", os.fsencode(target), b"overlay", 0, options.encode())
    finally:
        for fd in fds:
            os.close(fd)


def mount_read_only(source: str, target: str) -> None:
    """Show `source`, a folder or a file, at `target`, where it cannot be changed."""
    _mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND, None)
    make_read_only(target)


def make_read_only(mounted: str) -> None:
    if not _set_attributes(mounted, _SEALED, 0):
        _remount(mounted, _MS_RDONLY)


def bind_device(device: str, target: str) -> None:
    """Show a device file at `target`, and let nothing be run from it."""
    _mount(os.fsencode(device), os.fsencode(target), None, _MS_BIND, None)
    if not _set_attributes(target, _DEVICE, 0):
        _remount(target, _MS_NOSUID | _MS_NOEXEC)


def restrict(mounted: str, *, read_only: bool) -> None:
    """Forbid setuid programs and devices, and writing if asked, on a mount and all that is mounted below it."""
    if not _set_attributes(mounted, _READ_ONLY if read_only else _WRITABLE, _AT_RECURSIVE):
        restrict_each(mounted, read_only=read_only)


def restrict_each(mounted: str, *, read_only: bool) -> None:
    """The same on kernels before 5.12, which change one mount at a time."""
    flags = _MS_NOSUID | _MS_NODEV | (_MS_RDONLY if read_only else 0)
    for path in mount_points(os.fsdecode(smallfiles.read("/proc/self/mountinfo"))):
        if path == mounted or path.startswith(mounted + "/"):
            _remount(path, flags)


def mount_points(mountinfo: str) -> list[str]:
    """Every place of a mount in /proc/self/mountinfo, where some characters of a path are written as octal numbers."""
    written = [line.split()[4] for line in mountinfo.splitlines()]
    return [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path) for path in written]


def bind(source: str, target: str) -> None:
    """Show `source`, a folder with all that is mounted below it or a file, at `target` too."""
    _mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND | _MS_REC, None)


def mount_memory(folder: str, options: str) -> None:
    """An empty folder in memory over `folder`."""
    _mount(b"tmpfs", os.fsencode(folder), b"tmpfs", _MS_NOSUID | _MS_NODEV, options.encode())


def mount_device_folder(folder: str) -> None:
    """An empty folder in memory that may hold device files, over `folder`."""
    _mount(b"tmpfs", os.fsencode(folder), b"tmpfs", _MS_NOSUID | _MS_NOEXEC, b"mode=755,size=1m")


def make_memory_writable(folder: str) -> None:
    """Undo that a mount made by `mount_memory` became read-only."""
    _mount(b"none", os.fsencode(folder), None, _MS_REMOUNT | _MS_BIND | _MS_NOSUID | _MS_NODEV, None)


def leave_out(mounted: str) -> None:
    """Leave this mount out of what `bind` shows elsewhere."""
    _mount(b"none", os.fsencode(mounted), None, _MS_UNBINDABLE, None)


def change_root(mounted: str) -> None:
    """Make this mount the root folder of the process and detach the old root for good."""
    _mount(b"none", os.fsencode(mounted), None, _MS_PRIVATE, None)
    os.chdir(mounted)
    _check(_libc.pivot_root(b".", b"."), "pivot_root", os.fsencode(mounted))
    _check(_libc_umount(b".", _MNT_DETACH), "umount", b"/")  # the old root lies over the new one
    os.chdir("/")


def become_subreaper() -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_tracing() -> None:
    """Let no process without CAP_SYS_PTRACE look into this one, also one of the same account."""
    _prctl(_PR_SET_DUMPABLE, 0)


def _set_attributes(mounted: str, wanted: Any, flags: int) -> bool:
    """Whether the kernel could; before Linux 5.12 it has no such call."""
    if _libc_syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(mounted), flags, wanted, 32) == 0:
        return True
    if ctypes.get_errno() != errno.ENOSYS:
        _check(-1, "mount_setattr", os.fsencode(mounted))
    return False


def _remount(mounted: str, flags: int) -> None:
    found = os.statvfs(mounted).f_flag
    kept = sum(keep for said, keep in _KEPT_FLAGS.items() if found & said)
    _mount(b"none", os.fsencode(mounted), None, _MS_REMOUNT | _MS_BIND | flags | kept, None)


def _unshare(flags: int) -> None:
    _check(_libc_unshare(flags), "unshare")


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int, options: bytes | None) -> None:
    _check(_libc_mount(source, target, kind, flags, options), "mount", target)


def _prctl(option: int, first: int, second: int = 0) -> None:
    _check(_libc_prctl(option, first, second, 0, 0), "prctl")


def _check(result: int, what: str, path: bytes = b"") -> None:
    if result != 0:
        number = ctypes.get_errno()
        what = f"{what} {os.fsdecode(path)}" if path else what
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    smallfiles.write(path, text.encode())
