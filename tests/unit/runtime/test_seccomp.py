"""The filter of system calls as the kernel would run it, for machines that the tests do not run on too."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path

import pytest

from paddlecloud.runtime import allowed, seccomp

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
REFUSED, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
NEWUSER, NEWNS, THREAD = 0x10000000, 0x00020000, 0x003D0F00
X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028


def verdict(program: bytes, architecture: int, number: int, argument: int = 0) -> int:
    """What the filter says of a call."""
    told = struct.pack("<IIQQ", number, architecture, 0, argument)
    steps = list(struct.iter_unpack("=HBBI", program))
    held, at = 0, 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            [held] = struct.unpack_from("<I", told, value)
        else:
            holds = {0x15: held == value, 0x35: held >= value, 0x45: held & value != 0}[code]
            at += then if holds else otherwise


@pytest.mark.parametrize(
    ("machine", "architecture", "number", "argument", "expected"),
    [
        ("x86_64", X86_64, 0, 0, ALLOWED),  # read
        ("x86_64", X86_64, 59, 0, ALLOWED),  # execve
        ("x86_64", X86_64, 161, 0, ALLOWED),  # chroot
        ("x86_64", X86_64, 56, THREAD, ALLOWED),
        ("x86_64", X86_64, 56, 17, ALLOWED),
        ("x86_64", X86_64, 56, NEWUSER | 17, REFUSED),
        ("x86_64", X86_64, 56, NEWNS | 17, REFUSED),
        ("x86_64", X86_64, 272, 0x400, ALLOWED),  # unshare of open files
        ("x86_64", X86_64, 272, NEWUSER, REFUSED),
        ("x86_64", X86_64, 272, NEWUSER | 1 << 40, REFUSED),
        ("x86_64", X86_64, 435, 0, UNKNOWN),
        *[
            ("x86_64", X86_64, number, 0, REFUSED)
            for number in (155, 165, 166, 248, 249, 250, 308, 428, 429, 430, 432, 442, 467)
        ],
        ("x86_64", X86_64, 0x40000000 + 272, NEWUSER, UNKNOWN),  # x32
        ("x86_64", I386, 310, NEWUSER, KILLED),
        ("x86_64", I386, 0, 0, KILLED),
        ("aarch64", AARCH64, 63, 0, ALLOWED),  # read
        ("aarch64", AARCH64, 56, NEWUSER, ALLOWED),  # openat, which is clone elsewhere
        ("aarch64", AARCH64, 220, THREAD, ALLOWED),
        ("aarch64", AARCH64, 220, NEWUSER | 17, REFUSED),
        ("aarch64", AARCH64, 97, 0x400, ALLOWED),
        ("aarch64", AARCH64, 97, NEWUSER | NEWNS, REFUSED),
        ("aarch64", AARCH64, 435, 0, UNKNOWN),
        *[
            ("aarch64", AARCH64, number, 0, REFUSED)
            for number in (39, 40, 41, 217, 218, 219, 268, 428, 429, 430, 432, 442, 467)
        ],
        ("aarch64", ARM, 337, NEWUSER, KILLED),
    ],
)
def test_only_calls_that_change_namespaces_or_mounts_are_refused(
    machine: str, architecture: int, number: int, argument: int, expected: int
) -> None:
    assert verdict(seccomp.program(seccomp.MACHINES[machine]), architecture, number, argument) == expected


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_char_p)]


def refuse_filters() -> None:
    """Let this process install no filter any more, as in some containers."""
    number = seccomp.MACHINES[os.uname().machine].seccomp
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, REFUSED), (0x06, 0, 0, ALLOWED)]
    packed = b"".join(struct.pack("=HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # no_new_privs, which a plain account needs for it
    assert libc.prctl(22, 2, ctypes.byref(Program(len(steps), packed)), 0, 0) == 0


@pytest.mark.skipif(os.uname().machine not in seccomp.MACHINES, reason="no filter is known for this machine")
def test_where_no_filter_can_be_installed_the_rest_is_found_and_the_words_say_so(tmp_path: Path) -> None:
    for name in ("lower", "upper", "overlay", "work"):
        (tmp_path / name).mkdir()
    full = allowed.probe(str(tmp_path))
    if not full.filter:
        pytest.skip(str(full))
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            refuse_filters()
            os.write(writer, str(allowed.probe(str(tmp_path))).encode())
        finally:
            os._exit(0)
    os.wait()
    os.close(writer)
    with os.fdopen(reader) as words:
        assert words.read() == str(full._replace(filter=False))
    assert ", a filter of system calls" in str(full)
    assert ", no filter of system calls" in str(full._replace(filter=False))
