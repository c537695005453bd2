"""Landlock: a fence around a task that also holds for descriptors it is handed from outside.

Invariant: a task opens only what lies below its own root folder. Mounts alone do not keep a process from opening files
below a folder's descriptor that another process sent it; Landlock checks each path up to the root it hangs from.
"""

from __future__ import annotations

import ctypes
import errno
import os

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
# What each version of the interface added to the rights on files: all from execute to symlink, then moving between
# folders, truncating, and ioctl on devices.
_RIGHTS = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_FIRST_USABLE = 2  # version 1 forbids every move between folders
_SCOPES = 6
_SCOPE_SOCKETS_AND_SIGNALS = 3

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("rights", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """The version of the interface that this kernel offers; 0: none that can be used."""
    found = int(_syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)))
    return found if found >= _FIRST_USABLE else 0


def restrict(known: int, folder: str = "/") -> None:
    """Let this process, and all that it starts, open only what is below `folder`. Needs no_new_privs."""
    rights = sum(bits for since, bits in _RIGHTS.items() if known >= since)
    scopes = _SCOPE_SOCKETS_AND_SIGNALS if known >= _SCOPES else 0
    ruleset = _Ruleset(rights, 0, scopes)
    size = ctypes.sizeof(_Ruleset) if scopes else 8
    rules = _checked(_syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0)))
    try:
        top = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            beneath = _Beneath(rights, top)
            _checked(_syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(beneath), ctypes.c_uint32(0)))
        finally:
            os.close(top)
        _checked(_syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)))
    finally:
        os.close(rules)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number or errno.EINVAL, f"Landlock: {os.strerror(number)}")
    return int(result)
