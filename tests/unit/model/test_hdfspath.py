"""What paths of HDFS mean in the PFS, and the names that paths of the PFS have there."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from paddlecloud.model import hdfspath, paths, pfs
from paddlecloud.model.errors import InvalidError, PaddleCloudError
from paddlecloud.model.hdfspath import Spot, View

ANN = View(user="ann", datacenter="local", shared=("demo", "user", "ann", "pfs"))
HOME = "/pfs/local/home/ann"


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/user/ann", HOME),
        ("/user/ann/", HOME),
        ("/user/ann/a/b", f"{HOME}/a/b"),
        ("//user///ann//a", f"{HOME}/a"),
        ("/ann", HOME),
        ("/ann/a b%?&", f"{HOME}/a b%?&"),
        ("/ann/ann", f"{HOME}/ann"),
        ("/user/bob", "/pfs/local/home/bob"),
        ("/user/bob/x", "/pfs/local/home/bob/x"),
        ("/user/user", "/pfs/local/home/user"),
        ("/demo", "/pfs/local/shared/demo"),
        ("/demo/data/x", "/pfs/local/shared/demo/data/x"),
        ("/pfs", "/pfs"),
        ("/pfs/public/x", "/pfs/public/x"),
        ("/pfs/local/home/ann/x", f"{HOME}/x"),
        ("/pfs/elsewhere/home/ann", "/pfs/elsewhere/home/ann"),
        ("/bob", ""),
        ("/Demo", ""),
        ("/tmp/x", ""),
        ("/.reserved/raw/x", ""),
    ],
)
def test_a_path_means_a_path_of_the_pfs_or_nothing(path: str, meant: str) -> None:
    found = hdfspath.locate(path, ANN)
    assert (found.pfs, found.above, found.inode) == (meant, False, None)


def test_what_is_above_all_files_is_walked_through() -> None:
    assert hdfspath.locate("/", ANN) == Spot(path="/", above=True)
    assert hdfspath.locate("/user/", ANN) == Spot(path="/user", above=True)
    assert hdfspath.above("/", ANN) == ["ann", "demo", "pfs", "user"]
    assert hdfspath.above("/user", ANN) == ["ann"]


def test_a_file_is_named_by_its_number() -> None:
    assert hdfspath.locate("/.reserved/.inodes/16385", ANN).inode == 16385
    for wrong in ("x", "-1", "1" * 19, "١"):
        with pytest.raises(InvalidError):
            hdfspath.locate(f"/.reserved/.inodes/{wrong}", ANN)


@pytest.mark.parametrize("path", ["", "x", "/..", "/user/ann/../bob", "/./x", "/ann/.", "/a\0b", "/" + "n" * 256])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidError):
        hdfspath.locate(path, ANN)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (HOME, "/user/ann"),
        (f"{HOME}/a", "/user/ann/a"),
        (f"{HOME}x", f"{HOME}x"),
        ("/pfs/local/shared/demo/a", "/demo/a"),
        ("/pfs/local/shared/demos", "/pfs/local/shared/demos"),
        ("/pfs/local/shared/user/a", "/pfs/local/shared/user/a"),
        ("/pfs/local/home/bob/a", "/pfs/local/home/bob/a"),
        ("/pfs/public", "/pfs/public"),
    ],
)
def test_a_path_of_the_pfs_has_a_name(path: str, name: str) -> None:
    assert hdfspath.named(path, ANN) == name
    assert hdfspath.locate(name, ANN).pfs == path


NAMES = st.one_of(
    st.sampled_from(["user", "ann", "bob", "demo", "pfs", "local", "home", "public", "output", "shared", ".reserved"]),
    st.text(max_size=6),
    st.sampled_from(["..", ".", "", "%2e%2e", "..\x00", "\uefff", "...", ".inodes"]),
)
PATHS = st.lists(NAMES, max_size=6).map(lambda parts: "/" + "/".join(parts))


@given(PATHS)
@example("/user/../pfs")
@example("/ann/../../etc/passwd")
def test_no_path_leads_out_of_the_pfs_or_up_in_it(path: str) -> None:
    try:
        found = hdfspath.locate(path, ANN)
    except InvalidError:
        return
    assert found.above or found.inode is not None or not found.pfs or found.pfs.split("/")[1] == "pfs"
    assert not {"..", "."} & set(found.pfs.split("/"))
    if found.pfs:
        try:
            place = pfs.locate(found.pfs, ["local"])
        except PaddleCloudError:
            return
        if path.strip("/").split("/")[0] == "ann":
            assert (place.owner, place.datacenter) == ("ann", "local")


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda name: "/" not in name), max_size=4))
def test_the_way_there_and_back_ends_where_it_began(parts: list[str]) -> None:
    path = "/".join([HOME, *parts])
    assume(is_one(path))
    assert hdfspath.locate(hdfspath.named(path, ANN), ANN).pfs == path


def is_one(path: str) -> bool:
    try:
        return bool(paths.check_relative(path.strip("/")))
    except InvalidError:
        return False


@given(st.text(max_size=10).filter(lambda text: text.isprintable()))
def test_every_name_that_a_client_sends_is_what_it_is_told(text: str) -> None:
    assert hdfspath.shown(hdfspath.received(text)) == text


def test_a_name_that_is_no_text_is_told_as_we_write_it() -> None:
    assert hdfspath.shown(paths.text_of(b"a\xff")) == "a\uefff"
