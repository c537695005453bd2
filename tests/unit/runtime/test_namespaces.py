"""What the kernel says of mounts, and what is hidden where a machine has mounts but no private root folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.runtime import allowed, namespaces, workdir
from paddlecloud.runtime.folder import TaskFolder
from tests.unit.runtime.orders import alone

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


def test_without_a_root_of_its_own_a_task_sees_its_folders_of_the_pfs_where_they_are(scratch: Path) -> None:
    mine, public, other = (scratch / "data" / name for name in ("home/me", "public", "home/other"))
    folder = TaskFolder(str(scratch / "data/tasks/job-1-1/trainer-0"))
    for made in (mine, public, other, Path(folder.mount), scratch / "data/results/rank-0"):
        made.mkdir(parents=True)
    task = alone(
        hidden=[str(scratch / "data")], mounts={"/pfs/a/home/me": str(mine), "/pfs/a/public": str(public)},
        writable=["/pfs/a/home/me"], mount=folder.mount, output=str(scratch / "data/results/rank-0"), search_path=[],
    )  # fmt: skip

    def look() -> str:
        workdir.guard(task, folder, namespaces.Isolation(mount=True))
        (mine / "written").touch()
        return f"{sorted(os.listdir(mine.parent))} {os.access(public, os.R_OK)} {os.access(public, os.W_OK)}"

    assert _inside(look) == "['me'] True False"
    assert (mine / "written").exists()


@pytest.mark.parametrize("make", [namespaces.make_all_read_only, namespaces.make_each_read_only])
def test_a_mount_becomes_read_only_with_all_that_is_mounted_in_it(scratch: Path, make: Callable[[str], None]) -> None:
    (scratch / "outer/inner").mkdir(parents=True)

    def look() -> str:
        namespaces.pin(str(scratch / "outer"))
        namespaces.pin(str(scratch / "outer/inner"))
        make(str(scratch / "outer"))
        return " ".join(str(os.access(path, os.W_OK)) for path in (scratch / "outer", scratch / "outer/inner", scratch))

    assert _inside(look) == "False False True"
