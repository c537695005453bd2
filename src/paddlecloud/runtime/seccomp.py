"""A filter of system calls, which keeps a task from changing namespaces and mounts: what is hidden by them stays so.
Keyrings are refused as well: they belong to an account, which may be that of all tasks and of the server.

A capability is not enough: in a user namespace that a task makes for itself it has them all, and leaves our mounts.
It costs nothing later: the kernel works out once which calls the filter always allows (Linux 5.11).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from typing import NamedTuple, Sequence

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000

# The same number on every architecture: open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr,
# open_tree_attr.
_OF_MOUNTS = (428, 429, 430, 431, 432, 433, 442, 467)
_CLONE3 = 435


class Machine(NamedTuple):
    """How an architecture calls what we look for."""

    audit: int  # what the kernel names it in a filter
    seccomp: int
    clone: int
    unshare: int
    refused: Sequence[int]  # mount, umount2, pivot_root, setns; add_key, request_key, keyctl
    foreign: int | None = None  # from this number on the calls of another architecture, which most kernels lack


MACHINES = {
    "x86_64": Machine(0xC000003E, 317, 56, 272, (165, 166, 155, 308, 248, 249, 250), foreign=0x40000000),
    "aarch64": Machine(0xC00000B7, 277, 220, 97, (40, 39, 41, 268, 217, 218, 219)),
}

_SET_MODE_FILTER = 1
# Else older kernels slow down all of a filtered program, against what a program reads of itself.
_FLAG_SPEC_ALLOW = 4

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_ERROR = 0x00050000

_LOAD = 0x20  # a word of what the kernel tells of a call, into the accumulator
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_RETURN = 0x06

_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # of the argument, the lower half: both machines are little-endian


def program(machine: Machine) -> bytes:
    """The filter, as the kernel reads it."""
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        *_unless(_IF_EQUAL, machine.audit, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine.foreign is not None:
        steps += _when(_IF_AT_LEAST, machine.foreign, _ERROR | errno.ENOSYS)
    # Its flags are in memory, where a filter cannot look: the C library takes clone instead.
    steps += _when(_IF_EQUAL, _CLONE3, _ERROR | errno.ENOSYS)
    for number in (*machine.refused, *_OF_MOUNTS):
        steps += _when(_IF_EQUAL, number, _ERROR | errno.EPERM)
    steps += [
        (_IF_EQUAL, 2, 0, machine.clone),
        (_IF_EQUAL, 1, 0, machine.unshare),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *_when(_IF_ANY_BIT, _CLONE_NEWUSER | _CLONE_NEWNS, _ERROR | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def restrict() -> None:
    """Filter the calls of this process and of all that it starts, for good. Needs no_new_privs."""
    if _MACHINE is None:
        raise OSError(errno.ENOSYS, "no filter of system calls is known for this machine")
    if _install(_FLAG_SPEC_ALLOW) != 0 and (ctypes.get_errno() != errno.EINVAL or _install(0) != 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def _when(test: int, value: int, result: int) -> list[tuple[int, int, int, int]]:
    return [(test, 0, 1, value), (_RETURN, 0, 0, result)]


def _unless(test: int, value: int, result: int) -> list[tuple[int, int, int, int]]:
    return [(test, 1, 0, value), (_RETURN, 0, 0, result)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def _install(flags: int) -> int:
    assert _MACHINE is not None
    return int(_syscall(_MACHINE.seccomp, _SET_MODE_FILTER, flags, ctypes.byref(_PROGRAM)))


# Put together once, before all forks.
_MACHINE = MACHINES.get(os.uname().machine) if ctypes.sizeof(ctypes.c_void_p) == 8 else None
_STEPS = b"" if _MACHINE is None else program(_MACHINE)
_PROGRAM = _Program(len(_STEPS) // 8, _STEPS)
_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.argtypes = (ctypes.c_long, ctypes.c_ulong, ctypes.c_ulong, ctypes.POINTER(_Program))
_syscall.restype = ctypes.c_long
