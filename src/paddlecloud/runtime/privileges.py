"""Takes every privilege from a task, for good: account, capabilities, keyring, setuid programs."""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Sequence

_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_MOST_CAPABILITIES = 64
_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}

_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl
_prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)
_syscall = _libc.syscall


def drop(uid: int | None, groups: Sequence[int]) -> None:
    """Become the account `uid`, in these groups besides its own, without any privilege; None: stay this account."""
    join_own_keyring()
    _drop_bounding_set()
    if uid is not None:
        os.setgroups(list(groups))
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)  # refused before Linux 4.3, where there are none
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    _check(_prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")


def join_own_keyring() -> None:
    """A session keyring that no other task shares; kernels and containers without keyrings have none to share."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _syscall(number, _JOIN_SESSION_KEYRING, None)


def _drop_bounding_set() -> None:
    """Without it root would get all capabilities back when it starts a program."""
    for capability in range(_MOST_CAPABILITIES):
        if _prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            if ctypes.get_errno() == errno.EPERM and os.geteuid() != 0:
                return  # an account without capabilities gets none by starting a program
            if ctypes.get_errno() == errno.EINVAL:
                return  # the kernel knows no more
            _check(-1, "capabilities")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
