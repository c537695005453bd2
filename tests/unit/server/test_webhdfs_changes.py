"""What WebHDFS moves, removes and lets nobody touch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.server.hdfscalls import Hdfs, good, refusal
from tests.unit.server.running import Running


@pytest.fixture(scope="module")
def ann(server: Running) -> Hdfs:
    return Hdfs(server, server.ann, "ann")


@pytest.fixture(scope="module")
def bob(server: Running) -> Hdfs:
    return Hdfs(server, server.bob, "bob")


@pytest.fixture
def at(ann: Hdfs, request: pytest.FixtureRequest) -> str:
    """A folder of this test's own."""
    path = f"/user/ann/{abs(hash(request.node.name))}"
    good(ann.ask("PUT", path, "MKDIRS"))
    return path


def test_a_file_of_another_is_closed_whatever_is_asked(ann: Hdfs, bob: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"12")
    home = "/pfs/local/home/" + at.removeprefix("/user/")
    for path in (f"{at}/f", f"{home}/f"):
        for op in ("OPEN", "GETFILESTATUS", "LISTSTATUS", "GETCONTENTSUMMARY", "GETFILECHECKSUM", "GETACLSTATUS"):
            assert refusal(bob.ask("GET", path, op))[:2] == (403, "AccessControlException"), op
        for op in ("MKDIRS", "CREATE", "SETPERMISSION", "SETTIMES", "SETREPLICATION", "SETACL"):
            more = {"aclspec": "user::rwx,group::rwx,other::rwx"}
            assert refusal(bob.ask("PUT", path, op, **more))[:2] == (403, "AccessControlException"), op
        assert refusal(bob.ask("PUT", path, "SETOWNER", owner="bob"))[:2] == (403, "AccessControlException")
        assert refusal(bob.ask("PUT", path, "RENAME", destination="/bob/f"))[:2] == (403, "AccessControlException")
        assert refusal(bob.ask("POST", path, "APPEND"))[:2] == (403, "AccessControlException")
        assert refusal(bob.ask("DELETE", path, "DELETE"))[:2] == (403, "AccessControlException")
    bob.write("/bob/mine", b"1")
    assert refusal(bob.ask("PUT", "/bob/mine", "RENAME", destination=f"{at}/f"))[:2] == (403, "AccessControlException")
    assert refusal(bob.ask("GET", f"/.reserved/.inodes/{ann.status(f'{at}/f')['fileId']}", "OPEN"))[0] == 404


def test_nothing_is_made_beside_what_there_is(ann: Hdfs) -> None:
    for path in ("/", "/user", "/tmp", "/tmp/x", "/demo"):
        assert refusal(ann.ask("PUT", path, "CREATE", overwrite="true"))[:2] == (403, "AccessControlException")
    for path in ("/tmp", "/user/bob", "/pfs/public/x", "/pfs/local/other"):
        assert refusal(ann.ask("PUT", path, "MKDIRS"))[1] in ("AccessControlException", "FileNotFoundException")
    for path in ("/", "/user", "/ann", "/user/ann", "/pfs", "/pfs/public"):
        assert refusal(ann.ask("DELETE", path, "DELETE", recursive="true"))[:2] == (403, "AccessControlException")


def test_a_name_goes_where_it_is_told_as_in_hdfs(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"f")
    ann.write(f"{at}/other", b"o")
    ann.put(f"{at}/d", "MKDIRS")

    def rename(source: str, target: str) -> bool:
        return bool(ann.put(f"{at}/{source}", "rename", destination=f"{at}/{target}")["boolean"])

    assert [rename("nothing", "x"), rename("f", "other"), rename("f", "no/x"), rename("f", "other/x")] == [False] * 4
    assert [rename("d", "d"), rename("d", "d/x"), rename("f", "f")] == [False, False, True]
    assert [rename("f", "g"), rename("g", "d"), rename("d", "e")] == [True] * 3
    assert (ann.names(at), ann.names(f"{at}/e"), ann.read(f"{at}/e/g")) == (["e", "other"], ["g"], b"f")
    assert refusal(ann.ask("PUT", f"{at}/e/g", "RENAME", destination="/x"))[:2] == (403, "AccessControlException")


def test_a_destination_must_be_a_path(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f")
    for wrong in ("rel", "", f"{at}/../x"):
        assert refusal(ann.ask("PUT", f"{at}/f", "RENAME", destination=wrong))[:2] == (400, "IllegalArgumentException")


@pytest.mark.parametrize(
    ("source", "target", "options", "refused"),
    [
        ("nothing", "x", "OVERWRITE", (404, "FileNotFoundException")),
        ("f", "g", "NONE", (403, "FileAlreadyExistsException")),
        ("f", "f", "OVERWRITE", (403, "FileAlreadyExistsException")),
        ("f", "no/x", "OVERWRITE", (404, "FileNotFoundException")),
        ("f", "g/x", "OVERWRITE", (403, "ParentNotDirectoryException")),
        ("d", "g", "OVERWRITE", (403, "IOException")),
        ("g", "d", "OVERWRITE", (403, "IOException")),
        ("d", "d/x", "OVERWRITE", (403, "IOException")),
        ("empty", "d", "OVERWRITE", (403, "IOException")),
        ("f", "x", "BAD", (400, "IllegalArgumentException")),
        ("f", "g", "overwrite", None),
        ("f", "x", "NONE", None),
        ("d", "empty", "OVERWRITE", None),
    ],
)
def test_a_name_is_given_strictly_where_options_are(
    ann: Hdfs, at: str, source: str, target: str, options: str, refused: Any
) -> None:
    for name in ("f", "g", "d/inside"):
        ann.write(f"{at}/{name}", name.encode())
    ann.put(f"{at}/empty", "MKDIRS")
    before = ann.names(at)
    query = {"destination": f"{at}/{target}", "renameoptions": options}
    answer = ann.ask("PUT", f"{at}/{source}", "RENAME", **query)
    if refused is not None:
        assert refusal(answer)[:2] == refused
        assert ann.names(at) == before
    else:
        assert (answer.status, answer.data) == (200, b"")
        assert source not in ann.names(at)
        assert target in ann.names(at)


def test_what_is_deleted_is_told_by_a_boolean(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/d/f")
    ann.put(f"{at}/empty", "MKDIRS")

    def delete(path: str, **query: object) -> Any:
        return good(ann.ask("DELETE", f"{at}/{path}", "delete", **query))

    assert delete("nothing") == {"boolean": False}
    assert refusal(ann.ask("DELETE", f"{at}/d", "DELETE", recursive="False")) == (
        403,
        "PathIsNotEmptyDirectoryException",
        f"`{at}/d is non empty': Directory is not empty",
    )
    assert delete("empty") == delete("d/f") == delete("d", recursive="TRUE") == {"boolean": True}
    assert ann.names(at) == []
