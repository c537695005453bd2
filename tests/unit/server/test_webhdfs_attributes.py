"""What clients of HDFS say about files is told again of the very same files, whichever face moved them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlecloud.model.pfs import Who
from tests.unit.server.hdfscalls import Hdfs, good, refusal
from tests.unit.server.running import Running

ANN = Who(user="ann")
SAID = ("permission", "owner", "group", "accessTime", "modificationTime", "replication")


@pytest.fixture(scope="module")
def ann(server: Running) -> Hdfs:
    return Hdfs(server, server.ann, "ann")


@pytest.fixture
def at(ann: Hdfs, request: pytest.FixtureRequest) -> str:
    path = f"/user/ann/{abs(hash(request.node.name))}"
    good(ann.ask("PUT", path, "MKDIRS"))
    return path


def pfs_path(path: str) -> str:
    return "/pfs/local/home/" + path.removeprefix("/user/")


def told(ann: Hdfs, path: str) -> list[Any]:
    status = ann.status(path)
    return [status[name] for name in SAID]


def say(ann: Hdfs, path: str) -> list[Any]:
    """Say everything about a file; what is then told."""
    for op, query in (
        ("SETPERMISSION", {"permission": "0640"}),
        ("SETOWNER", {"owner": "x", "group": "y"}),
        ("SETTIMES", {"modificationtime": 1000, "accesstime": 2000}),
    ):
        answer = ann.ask("PUT", path, op, **query)
        assert (answer.status, answer.data) == (200, b"")
    if ann.status(path)["type"] == "FILE":
        assert ann.put(path, "SETREPLICATION", replication=3) == {"boolean": True}
    return told(ann, path)


def test_what_was_said_is_told_again(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f")
    assert say(ann, f"{at}/f") == ["640", "x", "y", 2000, 1000, 3]
    ann.put(f"{at}/f", "SETTIMES", modificationtime=-1, accesstime=5)
    ann.put(f"{at}/f", "SETOWNER", owner="z")
    ann.put(f"{at}/f", "SETPERMISSION")
    assert told(ann, f"{at}/f") == ["640", "z", "y", 5, 1000, 3]
    ann.put(f"{at}/d", "MKDIRS", permission="1777")
    assert ann.status(f"{at}/d")["permission"] == "1777"
    assert ann.put(f"{at}/d", "SETREPLICATION", replication=3) == {"boolean": False}
    assert ann.put(f"{at}/nothing", "SETREPLICATION", replication=3) == {"boolean": False}


def test_it_decides_nothing(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f", b"1", permission="0")
    ann.put(f"{at}/f", "SETOWNER", owner="bob", group="x")
    ann.put(f"{at}/f", "SETACL", aclspec="user::---,group::---,other::---")
    assert ann.read(f"{at}/f") == b"1"
    assert ann.write(f"{at}/f", b"2", overwrite="true").status == 201


@pytest.mark.parametrize("op", ["SETPERMISSION", "SETOWNER", "SETTIMES", "SETACL", "REMOVEACL"])
def test_nothing_can_be_said_of_what_is_not_there_or_is_not_ones_own(ann: Hdfs, at: str, op: str) -> None:
    query = {"owner": "x", "aclspec": "user::rwx,group::r--,other::r--"}
    assert refusal(ann.ask("PUT", f"{at}/nothing", op, **query))[:2] == (404, "FileNotFoundException")
    for path in ("/", "/user", "/pfs", "/pfs/public", "/user/bob", "/user/ann/output"):
        assert refusal(ann.ask("PUT", path, op, **query))[:2] == (403, "AccessControlException"), path
    assert ann.ask("PUT", "/user/ann", op, **query).status == 200


def test_it_goes_where_its_file_goes_by_whichever_face(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/d/f")
    ann.write(f"{at}/d/other", permission="600")
    file, folder = say(ann, f"{at}/d/f"), say(ann, f"{at}/d")
    ann.put(f"{at}/d", "RENAME", destination=f"{at}/e")
    assert (told(ann, f"{at}/e/f"), told(ann, f"{at}/e")) == (file, folder)
    ann.server.services.pfs.move(ANN, pfs_path(f"{at}/e"), pfs_path(f"{at}/g"))
    assert (told(ann, f"{at}/g/f"), told(ann, f"{at}/g")) == (file, folder)
    assert ann.status(f"{at}/g/other")["permission"] == "600"
    for name in ("d", "e"):
        ann.put(f"{at}/{name}", "MKDIRS")
        assert ann.status(f"{at}/{name}")["permission"] == "755"


def test_what_takes_the_place_of_a_file_is_not_taken_for_it(ann: Hdfs, at: str, server: Running) -> None:
    for name in ("webhdfs", "ours", "task", "moved", "removed"):
        ann.write(f"{at}/{name}", b"1")
        say(ann, f"{at}/{name}")
    ann.write(f"{at}/webhdfs", b"2", overwrite="true")
    server.services.pfs.write(ANN, pfs_path(f"{at}/ours"), [b"2"], size=1)
    folder = server.services.pfs._stores["local"].folder
    assert folder is not None
    Path(folder, "home", "ann", at.rpartition("/")[2], "task").write_bytes(b"22")
    server.services.pfs.write(ANN, pfs_path(f"{at}/new"), [b"2"], size=1)
    server.services.pfs.move(ANN, pfs_path(f"{at}/new"), pfs_path(f"{at}/moved"))
    server.services.pfs.remove(ANN, pfs_path(f"{at}/removed"))
    server.services.pfs.write(ANN, pfs_path(f"{at}/removed"), [b"2"], size=1)
    for name in ("webhdfs", "ours", "task", "moved", "removed"):
        assert told(ann, f"{at}/{name}")[:3] == ["644", "ann", "paddlecloud"], name


def test_a_folder_that_is_made_anew_is_another(ann: Hdfs, at: str, server: Running) -> None:
    for name in ("d", "e"):
        ann.put(f"{at}/{name}", "MKDIRS", permission="700")
        assert ann.status(f"{at}/{name}")["permission"] == "700"
    good(ann.ask("DELETE", f"{at}/d", "DELETE", recursive="true"))
    server.services.pfs.remove(ANN, pfs_path(f"{at}/e"), recursive=True)
    for name in ("d", "e"):
        server.services.pfs.make_folder(ANN, pfs_path(f"{at}/{name}"))
        assert ann.status(f"{at}/{name}")["permission"] == "755"


def test_an_acl_is_kept_and_told_again(ann: Hdfs, at: str) -> None:
    ann.write(f"{at}/f")

    def acl(op: str = "", **query: object) -> dict[str, Any]:
        if op:
            answer = ann.ask("PUT", f"{at}/f", op, **query)
            assert (answer.status, answer.data) == (200, b"")
        found: dict[str, Any] = ann.get(f"{at}/f", "GETACLSTATUS")["AclStatus"]
        return found

    assert acl() == {
        "entries": [],
        "group": "paddlecloud",
        "owner": "ann",
        "permission": "644",
        "stickyBit": False,
    }
    entries = ["user:bob:r-x", "group::r--", "default:user:bob:rwx"]
    given = "user::rwx,group::r--,other::---,user:bob:r-x,default:user:bob:rwx"
    assert (acl("SETACL", aclspec=given)["entries"], acl()["permission"]) == (entries, "750")
    assert acl("MODIFYACLENTRIES", aclspec="group:lab:rwx")["entries"] == [
        "user:bob:r-x",
        "group::r--",
        "group:lab:rwx",
        "default:user:bob:rwx",
    ]
    assert acl("REMOVEACLENTRIES", aclspec="group:lab:")["entries"] == entries
    assert acl("REMOVEDEFAULTACL")["entries"] == entries[:2]
    assert (acl("REMOVEACL")["entries"], acl()["permission"]) == ([], "740")
    assert refusal(ann.ask("PUT", f"{at}/f", "SETACL", aclspec="bad"))[:2] == (400, "IllegalArgumentException")
