"""Takes every privilege from a task, for good: account, capabilities, keyring, setuid programs."""

from __future__ import annotations

import ctypes
import os
from typing import Sequence

_PR_SET_SECUREBITS = 28
_NOROOT_FOR_GOOD = 3  # SECBIT_NOROOT and its lock
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}

# Made once, before all forks.
_KEYCTL_HERE = _KEYCTL.get(os.uname().machine)
_HEADER = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
_NO_CAPABILITIES = (ctypes.c_uint32 * 6)()

_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl
_prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
_syscall = _libc.syscall


def drop(uid: int | None, groups: Sequence[int]) -> None:
    """Become the account `uid`, in these groups besides its own, without any privilege; None: stay this account."""
    join_own_keyring()
    if uid is not None and uid != os.geteuid():
        os.setgroups(list(groups))
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)  # from root to another account: the kernel takes every capability
    else:
        _make_root_ordinary()
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)  # refused before Linux 4.3, where there are none
        _check(_libc.capset(_HEADER, _NO_CAPABILITIES), "capset")
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def join_own_keyring() -> None:
    """A session keyring that no other task shares; kernels and containers without keyrings have none to share."""
    if _KEYCTL_HERE is not None:
        _syscall(_KEYCTL_HERE, _JOIN_SESSION_KEYRING, None)


def _make_root_ordinary() -> None:
    """Else root would get all capabilities back when it starts a program."""
    if os.geteuid() == 0:
        _check(_prctl(_PR_SET_SECUREBITS, _NOROOT_FOR_GOOD, 0, 0, 0), "securebits")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
