"""Shared folders over HTTP: there for the members of the groups they were granted to, and for nobody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.pfs import Who
from paddlecloud.model.user import Quota, Role, Scope
from tests.unit.server.running import Running, running

SETTINGS = {"clusters": {"local": {"policy": "open"}}, "datacenters": {"dc": {}, "far": {}}}
DEMO = "/pfs/dc/shared/demo"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data", SETTINGS) as made:
        yield made


@pytest.fixture(autouse=True)
def lab(server: Running) -> Iterator[None]:
    """A group with Ann in it, which may write in /pfs/dc/shared/demo; another, which is empty, may read there."""
    for name, members in (("lab", ["ann"]), ("guests", [])):
        act(server, "POST", "/v1/groups", {"name": name, "members": members}, status=201)
    act(server, "POST", "/v1/shared", {"name": "demo", "readers": ["guests"], "writers": ["lab"]}, status=201)
    yield
    for one in server.get("/v1/shared", server.root):
        act(server, "DELETE", f"/v1/shared/{one['datacenter']}/{one['name']}?recursive=true", status=204)
    for name in ("lab", "guests"):
        server.ask("DELETE", f"/v1/groups/{name}", token=server.root)


def act(server: Running, method: str, path: str, body: object = None, status: int = 200) -> Any:
    """By an admin."""
    answer = server.ask(method, path, body, token=server.root)
    assert answer.status == status, answer.data
    return answer.json() if answer.data else None


def put(server: Running, path: str, content: bytes, token: str | None = None) -> int:
    return server.ask("PUT", f"/v1/files{path}", content, token=token).status


def names(server: Running, path: str, token: str | None = None) -> list[str]:
    return [one["path"].rpartition("/")[2] for one in server.get(f"/v1/folders{path}", token)["items"]]


def test_members_see_read_and_write_it_and_it_is_seen_by_them_alone(server: Running) -> None:
    assert put(server, f"{DEMO}/a/b", b"text") == 200
    assert server.ask("GET", f"/v1/files{DEMO}/a/b").data == b"text"
    assert names(server, "/pfs/dc") == ["home", "public", "shared"]
    assert names(server, "/pfs/dc/shared") == ["demo"]
    assert names(server, f"{DEMO}?recursive=true") == ["a", "b"]
    assert names(server, "/pfs/dc", server.bob) == ["home", "public"]
    assert names(server, "/pfs/dc/shared", server.bob) == []
    assert names(server, "/pfs/far") == ["home", "public"]


def everything(server: Running, token: str) -> Iterator[tuple[str, int]]:
    """All that the PFS can be asked for there, and what it answered."""
    home = "/pfs/dc/home/bob"
    put(server, f"{home}/mine", b"mine", server.bob)
    calls: list[tuple[str, str, object]] = [
        ("GET", f"/v1/files{DEMO}/secret", None),
        ("GET", f"/v1/files{home}/../../shared/demo/secret", None),
        ("PUT", f"/v1/files{DEMO}/new", b"new"),
        ("DELETE", f"/v1/files{DEMO}/secret", None),
        ("GET", f"/v1/folders{DEMO}", None),
        ("GET", f"/v1/folders{DEMO}?recursive=true", None),
        ("GET", f"/v1/matches{DEMO}/*", None),
        ("GET", f"/v1/matches{DEMO}", None),
        ("POST", "/v1/folders", {"path": f"{DEMO}/made"}),
        ("POST", "/v1/folders", {"path": DEMO}),
        ("POST", "/v1/moves", {"source": f"{DEMO}/secret", "target": f"{home}/taken"}),
        ("POST", "/v1/moves", {"source": f"{home}/mine", "target": f"{DEMO}/given"}),
        ("POST", "/v1/copies", {"files": [{"source": f"{DEMO}/secret", "target": f"{home}/copied"}]}),
        ("POST", "/v1/copies", {"files": [{"source": f"{home}/mine", "target": f"{DEMO}/given"}]}),
        ("POST", "/v1/drafts", {"path": f"{DEMO}/planned", "size": 0, "chunks": []}),
        ("POST", "/v1/room", {"path": DEMO, "size": 1}),
        ("POST", "/v1/jobs", {"roles": [ROLE], "inputs": [{"source": f"{DEMO}/secret", "target": "data"}]}),
        ("POST", "/v1/jobs", {"roles": [ROLE], "package": DEMO}),
    ]
    for method, path, body in calls:
        found = server.ask(method, path, body, token=token)
        yield f"{method} {path} {body}: {found.data!r}", found.status


ROLE = {"name": "trainer", "count": 1, "command": "true"}


def test_who_is_no_member_finds_nothing_there_by_any_call(server: Running) -> None:
    put(server, f"{DEMO}/secret", b"secret")
    for token in (server.bob, server.root):
        for call, status in everything(server, token):
            assert status in (403, 404, 422), call
    assert names(server, DEMO) == ["secret"]
    assert names(server, "/pfs/dc/home/bob", server.bob) == ["mine", "output"]
    packed = server.ask("POST", "/v1/packs/read", {"paths": [f"{DEMO}/secret"]}, token=server.bob)
    assert b"secret" not in packed.data
    with pytest.raises(NotFoundError):
        server.services.pfs.write_all(Who(user="bob"), [("/pfs/dc/home/bob/x", b""), (f"{DEMO}/x", b"")])
    with pytest.raises(NotFoundError):
        server.services.incoming.fill(Who(user="bob"), f"{DEMO}/secret", 0, b"S")


def test_the_same_calls_are_answered_to_who_may_write_there(server: Running) -> None:
    put(server, f"{DEMO}/secret", b"secret")
    act(server, "PUT", "/v1/groups/lab/members/bob")
    for call, status in everything(server, server.bob):
        if "secret" in call:
            put(server, f"{DEMO}/secret", b"secret")  # as it was, for the next
        assert status < 300, call
    for path in ("mine", "taken", "copied"):
        server.ask("DELETE", f"/v1/files/pfs/dc/home/bob/{path}", token=server.bob)


def test_nothing_tells_a_folder_that_is_there_from_one_that_is_not(server: Running) -> None:
    for path in ("", "/secret", "/deep/er"):
        there = server.ask("GET", f"/v1/files{DEMO}{path}", token=server.bob)
        absent = server.ask("GET", f"/v1/files/pfs/dc/shared/nome{path}", token=server.bob)
        assert there.status == absent.status == 404
        assert there.json()["detail"].replace("demo", "nome") == absent.json()["detail"]


def test_readers_read_and_change_nothing(server: Running) -> None:
    put(server, f"{DEMO}/a", b"text")
    act(server, "PUT", "/v1/groups/guests/members/bob")
    assert server.ask("GET", f"/v1/files{DEMO}/a", token=server.bob).data == b"text"
    assert put(server, f"{DEMO}/a", b"other", server.bob) == 403
    assert server.ask("DELETE", f"/v1/files{DEMO}/a", token=server.bob).status == 403
    moved = {"source": f"{DEMO}/a", "target": "/pfs/dc/home/bob/a"}
    assert server.ask("POST", "/v1/moves", moved, token=server.bob).status == 403
    copied = {"files": [{"source": f"{DEMO}/a", "target": "/pfs/dc/home/bob/a"}]}
    assert server.ask("POST", "/v1/copies", copied, token=server.bob).status == 200
    assert server.ask("GET", "/v1/files/pfs/dc/home/bob/a", token=server.bob).data == b"text"
    act(server, "PUT", "/v1/shared/dc/demo/groups/guests?write=true")
    assert put(server, f"{DEMO}/a", b"other", server.bob) == 200


def test_a_member_who_leaves_loses_it_at_once_and_so_does_a_group_that_it_is_taken_from(server: Running) -> None:
    put(server, f"{DEMO}/a", b"text")
    for taken, given in (
        (("DELETE", "/v1/groups/lab/members/ann"), ("PUT", "/v1/groups/lab/members/ann")),
        (("DELETE", "/v1/shared/dc/demo/groups/lab"), ("PUT", "/v1/shared/dc/demo/groups/lab?write=true")),
    ):
        assert server.ask("GET", f"/v1/files{DEMO}/a").status == 200
        act(server, *taken)
        assert server.ask("GET", f"/v1/files{DEMO}/a").status == 404
        assert put(server, f"{DEMO}/b", b"") == 404
        assert names(server, "/pfs/dc/shared") == []
        act(server, *given)
    act(server, "DELETE", "/v1/groups/lab", status=204)
    assert server.ask("GET", f"/v1/files{DEMO}/a").status == 404
    act(server, "POST", "/v1/groups", {"name": "lab", "members": ["ann"]}, status=201)
    assert server.ask("GET", f"/v1/files{DEMO}/a").status == 404  # another group of the same name is another


def test_what_one_member_has_begun_is_theirs_until_it_is_whole(server: Running) -> None:
    act(server, "PUT", "/v1/groups/lab/members/bob")
    incoming, ann, bob = server.services.incoming, Who(user="ann"), Who(user="bob")
    for who in (ann, bob):
        incoming.begin(who, f"{DEMO}/x", 8)
    incoming.fill(ann, f"{DEMO}/x", 0, b"anns")
    assert incoming.chunk(ann, f"{DEMO}/x", 0, 4) == b"anns"
    assert incoming.chunk(bob, f"{DEMO}/x", 0, 4) is None
    assert incoming.fill(bob, f"{DEMO}/x", 0, b"bobs own")
    assert server.ask("GET", f"/v1/files{DEMO}/x").data == b"bobs own"
    act(server, "DELETE", "/v1/groups/lab/members/ann")
    with pytest.raises(NotFoundError):
        incoming.fill(ann, f"{DEMO}/x", 4, b"rest")


def test_what_is_published_of_it_is_nothing(server: Running) -> None:
    put(server, f"{DEMO}/a", b"text")
    token = server.services.old_tokens.token_of(server.user("ann"))
    answer = server.pool.request(
        "POST",
        f"{server.url}/api/v1/publish/",
        body=json.dumps({"path": f"{DEMO}/a"}),
        headers={"Authorization": f"Token {token}"},
    )
    assert "url" not in answer.json()
    assert "shared with a group" in answer.data.decode()
    assert server.services.publications.list("ann") == []


def test_everybody_and_the_admins_may_be_granted_a_folder(server: Running) -> None:
    act(server, "POST", "/v1/shared", {"name": "all", "readers": ["default"], "writers": ["admin"]}, status=201)
    assert put(server, "/pfs/dc/shared/all/a", b"text", server.root) == 200
    assert server.ask("GET", "/v1/files/pfs/dc/shared/all/a", token=server.bob).data == b"text"
    assert put(server, "/pfs/dc/shared/all/a", b"", server.bob) == 403
    deputy = server.add_user("deputy", Role.ADMIN, Scope.ADMIN)
    assert put(server, "/pfs/dc/shared/all/b", b"", deputy) == 200
    server.users.change("deputy", role=Role.USER)
    assert put(server, "/pfs/dc/shared/all/b", b"", deputy) == 403


def test_users_list_what_is_shared_with_them_and_by_which_of_their_groups(server: Running) -> None:
    act(server, "POST", "/v1/shared", {"name": "other", "datacenter": "far", "readers": ["guests"]}, status=201)
    (mine,) = server.get("/v1/shared")
    assert (mine["path"], mine["readers"], mine["writers"]) == (DEMO, [], ["lab"])
    assert server.get("/v1/shared", server.bob) == []
    paths = [(one["path"], one["readers"]) for one in server.get("/v1/shared", server.root)]
    assert paths == [(DEMO, ["guests"]), ("/pfs/far/shared/other", ["guests"])]


def test_only_admins_change_anything_and_what_cannot_be_is_refused_with_what_to_do(server: Running) -> None:
    for method, path, body in (
        ("POST", "/v1/shared", {"name": "mine"}),
        ("PUT", "/v1/shared/dc/demo/groups/lab", None),
        ("DELETE", "/v1/shared/dc/demo/groups/lab", None),
        ("DELETE", "/v1/shared/dc/demo", None),
    ):
        assert server.ask(method, path, body).status == 403
    wrong: list[tuple[dict[str, object], int, str]] = [
        ({"name": "demo"}, 409, "exists already"),
        ({"name": "ann"}, 409, "a user's name"),
        ({"name": "user"}, 422, "WebHDFS"),
        ({"name": "../x"}, 422, "letters, digits"),
        ({"name": ".."}, 422, "letters, digits"),
        ({"name": "a/b"}, 422, "letters, digits"),
        ({"name": "x", "datacenter": "moon"}, 422, "this server has dc, far"),
        ({"name": "x", "readers": ["nobody"]}, 404, "group list"),
    ]
    for asked, status, said in wrong:
        answer = server.ask("POST", "/v1/shared", asked, token=server.root)
        assert (answer.status, said in answer.json()["detail"]) == (status, True), answer.data
    assert "no shared folder" in act(server, "PUT", "/v1/shared/dc/none/groups/lab", status=404)["detail"]
    assert "group list" in act(server, "PUT", "/v1/shared/dc/demo/groups/nobody", status=404)["detail"]
    assert len(server.get("/v1/shared", server.root)) == 1


def test_a_folder_with_files_is_removed_only_as_a_whole_and_the_next_of_its_name_is_empty(server: Running) -> None:
    put(server, f"{DEMO}/a/b", b"text")
    assert "-r" in act(server, "DELETE", "/v1/shared/dc/demo", status=409)["detail"]
    act(server, "DELETE", "/v1/shared/dc/demo?recursive=true", status=204)
    assert server.ask("GET", f"/v1/files{DEMO}/a/b").status == 404
    act(server, "POST", "/v1/shared", {"name": "demo", "writers": ["lab"]}, status=201)
    assert names(server, DEMO) == []
    assert server.get("/v1/shared")[0]["size_bytes"] == 0
    acts = server.get("/v1/audit?action=share&limit=2", server.root)["items"]
    assert [(one["action"], one["target"]) for one in acts] == [("share.add", DEMO), ("share.remove", DEMO)]


def test_its_files_take_its_own_space_and_nobodys_quota(server: Running) -> None:
    server.users.change("ann", quotas={"": Quota(space_bytes=1000)})
    put(server, f"{DEMO}/big", bytes(5000))
    put(server, "/pfs/dc/home/ann/small", bytes(600))
    assert server.get("/v1/shared")[0]["size_bytes"] == 5000
    assert server.get("/v1/quota")["space_bytes"] == 600
    refused = server.ask("POST", "/v1/moves", {"source": f"{DEMO}/big", "target": "/pfs/dc/home/ann/big"})
    assert (refused.status, refused.json()["code"]) == (403, "quota")
    moved = server.ask("POST", "/v1/moves", {"source": "/pfs/dc/home/ann/small", "target": f"{DEMO}/small"})
    assert moved.status == 200, moved.data
    assert (server.get("/v1/shared")[0]["size_bytes"], server.get("/v1/quota")["space_bytes"]) == (5600, 0)
    server.ask("DELETE", f"/v1/files{DEMO}/big")
    assert server.get("/v1/shared")[0]["size_bytes"] == 600
    kinds = {one["kind"]: one["used"]["files"] for one in server.get("/v1/space?now=true", server.root)["shares"]}
    assert kinds["shared"] >= 1
    server.users.change("ann", quotas={"": None})
