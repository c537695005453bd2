"""The folder of a home at which results are shown, whatever job code has put in its place."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from paddlecloud.files.local import LocalStore
from paddlecloud.model.pfs import Who
from paddlecloud.model.tree import Kind
from paddlecloud.server.datacenters import mounts
from paddlecloud.server.pfs import Pfs

ANN = Who(user="ann")
HOME = "/pfs/local/home/ann"


class Endless:
    """Room for everything."""

    def check(self, *_: object, **__: object) -> None: ...

    def take(self, user: str | None, datacenter: str, *, written: int, kept: int, files: int) -> None:
        return None

    def note(self, *_: object) -> None: ...


def no_discard(user: str, job: str) -> None:
    raise AssertionError(f"{job} of {user} is not to go")


class House:
    def __init__(self, folder: Path) -> None:
        self.store, self.outputs = LocalStore(folder / "local"), LocalStore(folder / "results")
        self.output = folder / "local/home/ann/output"
        self.output.parent.mkdir(parents=True)
        (folder / "results/ann/job-1").mkdir(parents=True)

    def names(self) -> list[str]:
        pfs = Pfs(
            stores={"local": self.store}, outputs=self.outputs, room=Endless(), discard=no_discard
        )  # as after a restart
        return [Path(entry.path).name for entry in pfs.list(ANN, HOME).items]

    def mount(self) -> list[str]:
        return [mount.target for mount in mounts({"local": self.store}, self.outputs, "ann", {})]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def _socket(path: Path) -> None:
    here = os.open(path.parent, os.O_RDONLY)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{here}/{path.name}")
    os.close(here)


IN_THE_WAY: dict[str, Callable[[Path], object]] = {
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a link to a folder": lambda path: path.symlink_to("/etc"),
    "a file": lambda path: path.write_text("mine"),
    "a pipe": os.mkfifo,
    "a socket": _socket,
}


@pytest.mark.parametrize("use", [House.names, House.mount])
@pytest.mark.parametrize("thing", IN_THE_WAY)
def test_what_is_in_the_way_of_results_goes_beside_them(
    house: House, thing: str, use: Callable[[House], list[str]]
) -> None:
    IN_THE_WAY[thing](house.output)
    was = house.output.lstat().st_ino
    use(house)
    assert stat.S_ISDIR(house.output.lstat().st_mode)
    [aside] = house.output.parent.glob("output.old-*")
    assert aside.lstat().st_ino == was
    assert "output" in house.names()
    assert f"{HOME}/output" in house.mount()
    assert sorted(os.listdir(house.output.parent)) == ["output", aside.name]


def test_a_folder_with_that_name_stays_with_what_is_in_it(house: House) -> None:
    (house.output / "inner").mkdir(parents=True)
    house.names()
    house.mount()
    assert os.listdir(house.output.parent) == ["output"]
    assert os.listdir(house.output) == ["inner"]


def test_its_user_removes_what_was_in_the_way(house: House) -> None:
    house.output.symlink_to("/etc")
    pfs = Pfs(stores={"local": house.store}, outputs=house.outputs, room=Endless(), discard=no_discard)
    [aside] = [entry for entry in pfs.list(ANN, HOME).items if entry.kind is Kind.LINK]
    pfs.remove(ANN, aside.path)
    assert os.listdir(house.output.parent) == ["output"]


def test_a_task_sees_the_folders_that_are_shared_with_its_user_where_every_client_does(house: House) -> None:
    shared = {("local", "demo"): True, ("local", "data"): False, ("gone", "demo"): True}
    found = {mount.target: mount for mount in mounts({"local": house.store}, house.outputs, "ann", shared)}
    demo, data = found["/pfs/local/shared/demo"], found["/pfs/local/shared/data"]
    assert (demo.writable, data.writable) == (True, False)
    assert demo.source.is_dir()
    assert demo.source.parts[-2:] == ("shared", "demo")
    assert [target for target in found if "/shared/" in target] == ["/pfs/local/shared/data", "/pfs/local/shared/demo"]
