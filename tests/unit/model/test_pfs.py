"""What paths of the PFS mean, and who may do what there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.model import pfs
from paddlecloud.model.errors import ForbiddenError, InvalidError, NotFoundError, PaddleCloudError
from paddlecloud.model.pfs import Access, Area, Who

CENTERS = ("local", "far")
ANN = Who(user="ann")
ADMIN = Who(user="root", admin=True)


@pytest.mark.parametrize(
    ("path", "area", "datacenter", "owner", "below"),
    [
        ("/pfs/local/home/ann", Area.HOME, "local", "ann", ""),
        ("/pfs/local/home/ann/", Area.HOME, "local", "ann", ""),
        ("/pfs/local/home/ann/data/part-1", Area.HOME, "local", "ann", "data/part-1"),
        ("//pfs//local/./home/ann//x", Area.HOME, "local", "ann", "x"),
        ("/pfs/far/home/ann/../ann/x/../y", Area.HOME, "far", "ann", "y"),
        ("/pfs/local/home/bob/x", Area.HOME, "local", "bob", "x"),
        ("/pfs/local/home/ann/output", Area.OUTPUT, "local", "ann", ""),
        ("/pfs/local/home/ann/output/job-1/log", Area.OUTPUT, "local", "ann", "job-1/log"),
        ("/pfs/far/home/ann/output/x", Area.HOME, "far", "ann", "output/x"),
        ("/pfs/far/public/d", Area.PUBLIC, "far", "", "d"),
        ("/pfs/public/d", Area.PUBLIC, "local", "", "d"),
        ("/pfs/public", Area.PUBLIC, "local", "", ""),
        ("/pfs", Area.ABOVE, "", "", ""),
        ("/pfs/far", Area.ABOVE, "far", "", ""),
        ("/pfs/far/home", Area.ABOVE, "far", "", ""),
        ("/pfs/far/shared", Area.ABOVE, "far", "", ""),
        ("/pfs/far/shared/demo", Area.SHARED, "far", "", ""),
        ("/pfs/local/shared/demo/a/../b", Area.SHARED, "local", "", "b"),
        ("/pfs/local/home/ann/%2e%2e/bob", Area.HOME, "local", "ann", "%2e%2e/bob"),
    ],
)
def test_a_path_means_one_place(path: str, area: Area, datacenter: str, owner: str, below: str) -> None:
    place = pfs.locate(path, CENTERS)
    assert (place.area, place.datacenter, place.owner, place.below) == (area, datacenter, owner, below)
    assert pfs.locate(place.path, CENTERS) == place


@pytest.mark.parametrize("path", ["", "pfs/local", "/etc/passwd", "/", "/pfs/../etc", "/pfs/local/home/a\0b", "/pfsx"])
def test_what_is_not_of_the_pfs_is_refused(path: str) -> None:
    with pytest.raises(InvalidError):
        pfs.locate(path, CENTERS)


def test_an_unknown_datacenter_is_answered_with_the_known_ones() -> None:
    with pytest.raises(NotFoundError, match=r"no datacenter 'beijing': this server has local, far"):
        pfs.locate("/pfs/beijing/home/ann", CENTERS)


def test_any_name_means_the_only_datacenter() -> None:
    assert pfs.locate("/pfs/beijing/home/ann/x", ["local"]) == pfs.locate("/pfs/local/home/ann/x", ["local"])
    assert pfs.locate("/pfs/public/x", ["local"]).path == "/pfs/local/public/x"
    assert pfs.renamed("local", ["local"]) == ""
    assert "'beijing' is taken for it" in pfs.renamed("beijing", ["local"])


def test_a_datacenter_has_homes_public_and_shared_files_and_nothing_else() -> None:
    with pytest.raises(NotFoundError, match="only home, public and shared"):
        pfs.locate("/pfs/local/etc/x", CENTERS)


MEMBER = Who(user="ann", shared={("local", "demo"): True, ("local", "data"): False})


def test_a_shared_folder_is_its_own_place_in_the_store_and_has_a_space_of_its_own() -> None:
    place = pfs.locate("/pfs/far/shared/demo/a/b", CENTERS)
    assert (place.folder, place.root, place.stored, place.top) == (
        "demo",
        "shared/demo",
        "shared/demo/a/b",
        "/pfs/far/shared/demo",
    )
    assert place.keeper == "shared/demo"
    assert pfs.locate("/pfs/far/home/ann/x", CENTERS).keeper == "ann"
    assert pfs.locate("/pfs/far/public/x", CENTERS).keeper is None
    assert pfs.locate("/pfs/local/home/ann/output/x", CENTERS).keeper is None


@pytest.mark.parametrize(
    ("path", "who", "read", "write"),
    [
        ("/pfs/local/shared/demo/x", MEMBER, True, True),
        ("/pfs/local/shared/demo/x/../y", MEMBER, True, True),
        ("/pfs/local/shared/demo", MEMBER, True, False),
        ("/pfs/local/shared/data/x", MEMBER, True, False),
        ("/pfs/local/shared", MEMBER, True, False),
        ("/pfs/far/shared/demo/x", MEMBER, False, False),
        ("/pfs/local/shared/other/x", MEMBER, False, False),
        ("/pfs/local/shared/demo/../other/x", MEMBER, False, False),
        ("/pfs/local/shared/demo/x", ANN, False, False),
        ("/pfs/local/shared/demo", ANN, False, False),
        ("/pfs/local/shared/demo/x", ADMIN, False, False),
        ("/pfs/local/shared/*/x", MEMBER, False, False),
    ],
)
def test_a_shared_folder_is_there_for_those_it_was_granted_to(path: str, who: Who, read: bool, write: bool) -> None:
    place = pfs.locate(path, CENTERS)
    for access, allowed in ((Access.READ, read), (Access.WRITE, write), (Access.REMOVE, write)):
        if allowed:
            pfs.check(place, who, access)
        else:
            with pytest.raises(ForbiddenError if read else NotFoundError):
                pfs.check(place, who, access)


@pytest.mark.parametrize(
    "path",
    [
        "/pfs/local/home/bob/x",
        "/pfs/local/home/ann/../bob/x",
        "/pfs/local/home/ann/x/../../bob",
        "/pfs/far/home/bob",
        "/pfs/local/home/bob/output/job-1/log",
        "/pfs/local/home/*/x",
    ],
)
@pytest.mark.parametrize("who", [ANN, ADMIN])
@pytest.mark.parametrize("access", Access)
def test_another_users_files_are_out_of_reach_whatever_the_path(path: str, who: Who, access: Access) -> None:
    with pytest.raises(ForbiddenError, match="not yours"):
        pfs.check(pfs.locate(path, CENTERS), who, access)


@pytest.mark.parametrize(
    ("path", "who", "allowed"),
    [
        ("/pfs/local/home/ann/x", ANN, True),
        ("/pfs/local/home/ann", ANN, False),
        ("/pfs/local/home/ann/output/job-1/x", ANN, False),
        ("/pfs/local/home/ann/output", ANN, False),
        ("/pfs/local/home", ANN, False),
        ("/pfs", ADMIN, False),
        ("/pfs/public/x", ANN, False),
        ("/pfs/public/x", ADMIN, True),
        ("/pfs/public", ADMIN, False),
    ],
)
def test_only_what_is_ones_own_can_be_written_and_operators_fill_public(path: str, who: Who, *, allowed: bool) -> None:
    place = pfs.locate(path, CENTERS)
    pfs.check(place, who, Access.READ)
    if allowed:
        pfs.check(place, who, Access.WRITE)
    else:
        with pytest.raises(ForbiddenError):
            pfs.check(place, who, Access.WRITE)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/pfs/local/home/ann/output/job-1", ""),
        ("/pfs/local/home/ann/x", ""),
        ("/pfs/local/home/ann/output", "name the folder of a job in it"),
        (
            "/pfs/local/home/ann/output/job-1/rank-0/x",
            "goes as a whole: paddlecloud rm -r /pfs/local/home/ann/output/job-1",
        ),
        ("/pfs/local/home/ann", "itself cannot be changed"),
        ("/pfs/public/x", "can only be read"),
        ("/pfs/local/home/bob/output/job-1", "not yours"),
    ],
)
def test_what_a_job_left_is_removed_as_a_whole_by_its_owner(path: str, said: str) -> None:
    place = pfs.locate(path, CENTERS)
    if not said:
        pfs.check(place, ANN, Access.REMOVE)
        return
    with pytest.raises(ForbiddenError, match=said):
        pfs.check(place, ANN, Access.REMOVE)


@given(st.lists(st.sampled_from(["pfs", "local", "home", "ann", "bob", "..", ".", "", "x", "public", "output", "*"])))
def test_no_path_lets_ann_into_bobs_home(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    try:
        place = pfs.locate(path, CENTERS)
        pfs.check(place, ANN, Access.READ)
    except PaddleCloudError:
        return
    assert place.owner != "bob"
    assert ".." not in place.parts
