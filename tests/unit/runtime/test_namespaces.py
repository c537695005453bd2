"""Mounts of a namespace: what the kernel says of them, and how they are restricted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.runtime import allowed, namespaces

MOUNTINFO = """\
25 1 0:22 / /proc rw,nosuid shared:5 - proc proc rw
36 25 8:1 / /mnt/a\\040disk rw - ext4 /dev/sda1 rw
37 25 8:1 / /mnt/back\\134slash rw - ext4 /dev/sda1 rw
"""


def test_places_of_mounts_are_read_with_their_odd_characters() -> None:
    assert namespaces.mount_points(MOUNTINFO) == ["/proc", "/mnt/a disk", "/mnt/back\\slash"]


def _inside(act: Callable[[], str]) -> str:
    """What `act` says in a mount namespace of its own."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            namespaces.enter(namespaces.Isolation(user=os.geteuid() != 0, mount=True))
            namespaces.enter_mounts()
            os.write(writer, act().encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as words:
        return words.read().decode()


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    for name in ("", "lower", "upper", "overlay", "work"):
        (tmp_path / "scratch" / name).mkdir(exist_ok=True)
    if not allowed.probe(str(tmp_path / "scratch")).mount:
        pytest.skip("this machine has no mount namespaces")
    return tmp_path


@pytest.mark.parametrize("restrict", [namespaces.restrict, namespaces.restrict_each])
def test_a_mount_becomes_read_only_with_all_that_is_mounted_in_it(scratch: Path, restrict: Callable[..., None]) -> None:
    (scratch / "outer/inner").mkdir(parents=True)

    def look() -> str:
        for folder in ("outer", "outer/inner"):
            namespaces.bind(str(scratch / folder), str(scratch / folder))
        restrict(str(scratch / "outer"), read_only=True)
        return " ".join(str(os.access(path, os.W_OK)) for path in (scratch / "outer", scratch / "outer/inner", scratch))

    assert _inside(look) == "False False True"


@pytest.mark.parametrize("restrict", [namespaces.restrict, namespaces.restrict_each])
def test_a_mount_that_stays_writable_has_no_setuid_programs_and_no_devices(
    scratch: Path, restrict: Callable[..., None]
) -> None:
    (scratch / "outer").mkdir()

    def look() -> str:
        namespaces.bind(str(scratch / "outer"), str(scratch / "outer"))
        restrict(str(scratch / "outer"), read_only=False)
        flags = os.statvfs(scratch / "outer").f_flag
        return f"{bool(flags & os.ST_NOSUID)} {bool(flags & os.ST_NODEV)} {bool(flags & os.ST_RDONLY)}"

    assert _inside(look) == "True True False"
