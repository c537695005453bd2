"""Copies that the server makes within the PFS, in the name of one user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from paddlecloud.files.local import LocalStore
from paddlecloud.model.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, PaddleCloudError
from paddlecloud.model.pfs import Who
from paddlecloud.model.transfers import CopiedFile, CopyReport
from paddlecloud.model.tree import PACKED_BYTES
from paddlecloud.server.copies import MOST, Copies
from paddlecloud.server.pfs import Pfs
from tests.unit.server.test_incoming import Room, content, no_discard

ANN, ADMIN = Who(user="ann"), Who(user="root", admin=True)
HOME, PUBLIC = "/pfs/local/home/ann", "/pfs/local/public"


class TwoRooms(Room):
    """Of two datacenters, of which only what is Ann's counts."""

    def note(self, user: str, datacenter: str, more_bytes: int, more_files: int) -> None:
        if user:
            super().note(user, "local", more_bytes, more_files)


@pytest.fixture
def room() -> Room:
    return TwoRooms()


@pytest.fixture
def pfs(tmp_path: Path, room: Room) -> Pfs:
    (tmp_path / "results/ann/job-1").mkdir(parents=True)
    (tmp_path / "results/ann/job-1/model").write_bytes(b"weights")
    stores = {"local": LocalStore(tmp_path / "local"), "far": LocalStore(tmp_path / "far")}
    return Pfs(stores=stores, outputs=LocalStore(tmp_path / "results"), room=room, discard=no_discard)


def copy(pfs: Pfs, *pairs: tuple[str, str], who: Who = ANN) -> CopyReport:
    copying = Copies(pfs).begin(who, files(pairs))
    copying.run()
    return copying.report(last=True)


def files(pairs: Sequence[tuple[str, str]]) -> list[CopiedFile]:
    return [CopiedFile(source=source, target=target) for source, target in pairs]


@pytest.mark.parametrize("size", [10, PACKED_BYTES, PACKED_BYTES + 1])
def test_what_is_copied_counts_as_what_is_sent_does(pfs: Pfs, room: Room, size: int) -> None:
    pfs.write(ADMIN, f"{PUBLIC}/set", [b"p" * size], size=size)
    report = copy(
        pfs,
        ("/pfs/public/set", f"{HOME}/deep/set"),
        (f"{HOME}/output/job-1/model", f"{HOME}/model"),
        (f"{PUBLIC}/set", "/pfs/far/home/ann/set"),
    )
    assert report == CopyReport(files=3, size=2 * size + 7, last=True)
    assert content(pfs, f"{HOME}/deep/set") == content(pfs, "/pfs/far/home/ann/set") == b"p" * size
    assert content(pfs, f"{HOME}/model") == b"weights"
    assert (room.size, room.files) == (2 * size + 7, 3)


@pytest.mark.parametrize("size", [400, PACKED_BYTES + 1])
def test_over_the_quota_nothing_more_is_copied_and_it_is_told_how_far_it_came(pfs: Pfs, room: Room, size: int) -> None:
    pfs.write(ADMIN, f"{PUBLIC}/set", [b"p" * size], size=size)
    copy(pfs, (f"{PUBLIC}/set", f"{HOME}/old"))
    room.limit = 2 * size
    report = copy(
        pfs,
        *[(f"{PUBLIC}/set", f"{HOME}/old"), (f"{PUBLIC}/set", f"{HOME}/1"), (f"{PUBLIC}/set", f"{HOME}/2")],
    )
    assert (report.last, report.code) == (True, "quota")
    kept = {entry.path for entry in pfs.list(ANN, HOME).items} - {f"{HOME}/output"}
    assert room.size == size * len(kept) <= room.limit
    assert f"{HOME}/2" not in kept


@pytest.mark.parametrize(
    ("source", "target", "error", "said"),
    [
        (f"{HOME}/x", f"{HOME}/./x", ConflictError, "onto itself"),
        ("/pfs/public/x", f"{PUBLIC}/x", ForbiddenError, "can only be read"),
        (f"{HOME}/x", "/pfs/local/home/bob/x", ForbiddenError, "not yours"),
        ("/pfs/local/home/bob/x", f"{HOME}/x", ForbiddenError, "not yours"),
        (f"{HOME}/x", f"{HOME}/output/job-1/x", ForbiddenError, "written by jobs alone"),
        ("/pfs/local", f"{HOME}/x", ConflictError, "is a folder"),
        ("/etc/passwd", f"{HOME}/x", InvalidError, "not a path of the PFS"),
    ],
)
def test_what_may_not_be_copied_is_refused_before_anything_is(
    pfs: Pfs, source: str, target: str, error: type[PaddleCloudError], said: str
) -> None:
    with pytest.raises(error, match=said):
        Copies(pfs).begin(ANN, files([(f"{HOME}/output/job-1/model", f"{HOME}/first"), (source, target)]))
    with pytest.raises(NotFoundError):
        pfs.stat(ANN, f"{HOME}/first")


def test_what_is_not_there_ends_it_by_its_name(pfs: Pfs) -> None:
    report = copy(pfs, (f"{HOME}/nothing", f"{HOME}/x"))
    assert (report.files, report.code) == (0, "not_found")
    assert report.message == f"{HOME}/nothing: no such file or directory"


def test_a_folder_in_the_way_is_named_as_its_owner_knows_it(pfs: Pfs) -> None:
    pfs.make_folder(ANN, f"{HOME}/folder/in")
    pfs.write(ADMIN, f"{PUBLIC}/large", [b"1" * (PACKED_BYTES + 1)], size=PACKED_BYTES + 1)
    for source in (f"{HOME}/output/job-1/model", f"{PUBLIC}/large"):
        report = copy(pfs, (source, f"{HOME}/folder"))
        assert (report.code, report.message) == ("conflict", f"{HOME}/folder is a folder; name a file in it")


def test_once_nobody_waits_for_it_nothing_more_is_copied(pfs: Pfs) -> None:
    copying = Copies(pfs).begin(ANN, files([(f"{HOME}/output/job-1/model", f"{HOME}/x")]))
    copying.stop()
    copying.run()
    with pytest.raises(NotFoundError):
        pfs.stat(ANN, f"{HOME}/x")


def test_one_call_is_of_so_many_files_at_most(pfs: Pfs) -> None:
    with pytest.raises(InvalidError, match="the most of one call"):
        Copies(pfs).begin(ANN, files([(f"{HOME}/a", f"{HOME}/b")] * (MOST + 1)))
