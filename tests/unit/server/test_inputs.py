"""Inputs at submission: each is looked for once, as the user who submits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from paddlecloud.files.base import Store
from paddlecloud.files.local import LocalStore
from paddlecloud.model.errors import ConflictError, InvalidError, UnreachableError
from paddlecloud.model.inputs import HdfsPath
from paddlecloud.model.job import Input
from paddlecloud.model.user import Role, User
from paddlecloud.server.inputs import FileSystems, InputService
from paddlecloud.server.pfs import Pfs
from paddlecloud.server.room import Room
from paddlecloud.server.settings import HdfsSettings
from paddlecloud.store.pfs_use import PfsUse
from paddlecloud.store.secrets import Cipher
from paddlecloud.store.users import Users
from tests.contract.records import NOW, a_job
from tests.unit.server.house import House, opened

ANN = User(name="ann", role=Role.USER, created_at=NOW)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with opened(tmp_path / "data") as house:
        yield house


@pytest.fixture
def service(house: House, tmp_path: Path) -> InputService:
    store = LocalStore(tmp_path / "pfs")
    store.write_all([("home/ann/set/a", b"1"), ("public/b", b"1"), ("home/bob/c", b"1")])
    (tmp_path / "pfs/home/ann/link").symlink_to("set")
    users = Users(house.database, Cipher(house.folder.key))
    stores: dict[str, Store] = {"dc": store}
    pfs = Pfs(
        stores=stores,
        outputs=LocalStore(house.folder.results),
        room=Room(users=users, use=PfsUse(house.database), stores=stores, limit_bytes=None, clock=lambda: NOW),
        discard=lambda user, job: None,
    )

    def silent(wanted: HdfsPath, user: str) -> Store:
        raise UnreachableError(f"{wanted.name} does not answer {user}")

    return InputService(pfs=pfs, folder=house.folder.buckets, hdfs=silent)


def checked(service: InputService, *inputs: Input) -> tuple[Input, ...]:
    return service.check(ANN, replace(a_job("ann").spec, inputs=inputs)).inputs


def test_what_is_ones_own_and_what_is_public_may_be_an_input(service: InputService) -> None:
    given = [
        Input(source="/pfs/dc/home/ann/set/", target="./a"),
        Input(source="/pfs/public/b", target="b"),
        Input(source="/pfs/dc/home/ann/gone", target="c", optional=True),
    ]
    assert [one.source for one in checked(service, *given)] == [
        "/pfs/dc/home/ann/set",
        "/pfs/public/b",
        "/pfs/dc/home/ann/gone",
    ]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("/pfs/dc/home/ann/gone", r"inputs\[1\].source \(from\): there is no /pfs/dc/home/ann/gone: check the path"),
        ("/pfs/dc/home/bob/c", "may not be read: /pfs/dc/home/bob/c is not yours, ann"),
        ("/pfs/dc/home/ann/../bob/c", "is not yours, ann"),
        ("/pfs/other/home/ann/x", "there is no /pfs/other/home/ann/x: check the path"),
        ("/pfs/dc/home", "is too much for an input"),
        ("/pfs", "is too much for an input"),
        ("/pfs/dc/home/ann/link", "is a link, and none is followed"),
        ("/pfs/dc/home/ann/link/a", "there is no"),
    ],
)
def test_what_cannot_be_had_is_refused(service: InputService, source: str, why: str) -> None:
    with pytest.raises(InvalidError, match=why):
        checked(service, Input(source="/pfs/public/b", target="b"), Input(source=source, target="a"))


def test_a_file_system_that_does_not_answer_does_not_pass_for_this_server(service: InputService) -> None:
    with pytest.raises(ConflictError, match="nn:1 does not answer bob; nothing was submitted"):
        checked(service, Input(source="hdfs://nn:1/x", target="a", user="bob"))


def test_a_file_system_is_known_by_its_name_alone() -> None:
    known = FileSystems({"nn:54310": HdfsSettings(url="http://nn:9870"), "b:1": HdfsSettings(url="http://b", user="r")})
    assert "http://nn:9870 as ann" in repr(known.open(HdfsPath(name="nn:54310", path="x"), "ann"))
    assert "http://b as r" in repr(known.open(HdfsPath(name="b:1", path=""), ""))
    assert "http://b as ann" in repr(known.open(HdfsPath(name="b:1", path=""), "ann"))
    with pytest.raises(InvalidError, match=r"no file system hdfs://nn: it knows hdfs://nn:54310, hdfs://b:1, and its"):
        known.open(HdfsPath(name="nn", path=""), "ann")
    with pytest.raises(InvalidError, match="it knows none"):
        FileSystems({}).open(HdfsPath(name="nn", path=""), "ann")
    with pytest.raises(InvalidError, match="say whom hdfs://nn:54310 is to be read as"):
        known.open(HdfsPath(name="nn:54310", path=""), "")
