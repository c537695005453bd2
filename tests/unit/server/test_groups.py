"""Groups over HTTP: admins make and change them, members see their own, and each change is on record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from paddlecloud.model.user import Role, Scope
from tests.unit.server.running import Running, running

SETTINGS = {
    "clusters": {"local": {"policy": "open"}},
    "queues": {"long": {"cluster": "local"}, "short": {"cluster": "local"}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("server") / "data", SETTINGS) as made:
        yield made


@pytest.fixture(autouse=True)
def removed(server: Running) -> None:
    for one in server.get("/v1/groups", server.root):
        if one["created_at"] is not None:
            assert server.ask("DELETE", f"/v1/groups/{one['name']}", token=server.root).status == 204


def made(server: Running, name: str = "lab", **asked: Any) -> dict[str, Any]:
    answer = server.ask("POST", "/v1/groups", {"name": name, **asked}, token=server.root)
    assert answer.status == 201, answer.data
    found: dict[str, Any] = answer.json()
    return found


def acts(server: Running, count: int) -> list[tuple[str, str, str]]:
    found = server.get(f"/v1/audit?action=group&limit={count}", server.root)["items"]
    return [(one["action"], one["target"], one["detail"]) for one in reversed(found)]


def test_an_admin_makes_changes_and_removes_a_group_and_it_is_on_record(server: Running) -> None:
    extension = {"acls": {"admin": False, "virtualClusters": ["default"], "storageConfigs": []}, "x": [1, None, "é"]}
    group = made(server, members=["ann"], queues=["long", "long"], external_name="cn=lab", extension=extension)
    assert (group["members"], group["queues"], group["external_name"]) == (["ann"], ["long"], "cn=lab")
    assert group["extension"] == extension
    change = {"description": "the lab", "quota": {"running_jobs": 3}, "quotas": {"local": {"instances": 2}}}
    changed = server.ask("PATCH", "/v1/groups/lab", change, token=server.root).json()
    assert (changed["description"], changed["quota"]["running_jobs"]) == ("the lab", 3)
    assert changed["quotas"]["local"]["instances"] == 2
    assert server.get("/v1/groups/lab", server.root) == changed
    assert server.ask("PUT", "/v1/groups/lab/members/bob", token=server.root).json()["members"] == ["ann", "bob"]
    assert server.ask("DELETE", "/v1/groups/lab/members/ann", token=server.root).json()["members"] == ["bob"]
    assert server.ask("DELETE", "/v1/groups/lab", token=server.root).status == 204
    assert server.ask("GET", "/v1/groups/lab", token=server.root).status == 404
    assert acts(server, 5) == [
        ("group.add", "lab", ""),
        ("group.change", "lab", "description, quota, quotas"),
        ("group.join", "lab", "bob"),
        ("group.leave", "lab", "ann"),
        ("group.remove", "lab", ""),
    ]


def test_members_see_their_own_groups_and_nobody_elses(server: Running) -> None:
    made(server, "lab", members=["ann"])
    made(server, "other", members=["bob"])
    mine = server.get("/v1/groups")
    assert [one["name"] for one in mine] == ["default", "lab"]
    assert [one["members"] for one in mine] == [["ann"], ["ann"]]  # who else is here is the admins' to know
    assert server.get("/v1/groups/lab")["members"] == ["ann"]
    for name in ("other", "admin", "no_such"):
        refused = server.ask("GET", f"/v1/groups/{name}")
        assert (refused.status, refused.json()["code"]) == (404, "not_found")
    assert [one["name"] for one in server.get("/v1/groups", server.root)] == ["default", "admin", "lab", "other"]
    server.ask("DELETE", "/v1/groups/lab/members/ann", token=server.root)
    assert server.ask("GET", "/v1/groups/lab").status == 404


def test_only_an_admin_changes_anything(server: Running) -> None:
    made(server, members=["ann"])
    weak = server.token("root-of-all", Scope.WRITE)
    for token in (server.ann, weak):
        for method, path, body in (
            ("POST", "/v1/groups", {"name": "mine"}),
            ("PATCH", "/v1/groups/lab", {"quota": {}}),
            ("DELETE", "/v1/groups/lab", None),
            ("PUT", "/v1/groups/lab/members/ann", None),
            ("DELETE", "/v1/groups/lab/members/ann", None),
        ):
            assert server.ask(method, path, body, token=token).status == 403, path
    assert server.get("/v1/groups/lab")["members"] == ["ann"]


def test_everybody_and_the_admins_are_computed_and_cannot_be_made_or_changed(server: Running) -> None:
    everybody = server.get("/v1/groups/default", server.root)["members"]
    assert set(everybody) == {user.name for user in server.users.list()}
    assert "root-of-all" in server.get("/v1/groups/admin", server.root)["members"]
    assert "ann" not in server.get("/v1/groups/admin", server.root)["members"]
    server.add_user("deputy", Role.ADMIN, Scope.ADMIN)
    assert "deputy" in server.get("/v1/groups/admin", server.root)["members"]
    for name in ("default", "admin"):
        for method, path, body in (
            ("POST", "/v1/groups", {"name": name}),
            ("PATCH", f"/v1/groups/{name}", {"description": "mine"}),
            ("DELETE", f"/v1/groups/{name}", None),
            ("PUT", f"/v1/groups/{name}/members/ann", None),
        ):
            refused = server.ask(method, path, body, token=server.root)
            assert (refused.status, refused.json()["field"]) == (422, "name"), path
            assert "by itself" in refused.json()["detail"]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a-b", "é", "a" * 61, "..", "a\n", "a\0"])
def test_a_name_that_openpai_would_not_take_is_refused(server: Running, name: str) -> None:
    refused = server.ask("POST", "/v1/groups", {"name": name}, token=server.root)
    assert (refused.status, refused.json()["field"]) == (422, "name")


def test_what_cannot_be_meant_is_refused_with_what_to_do_and_nothing_is_made(server: Running) -> None:
    for asked, field, said in (
        ({"members": ["carol"]}, "members", "paddlecloud user add"),
        ({"queues": ["lon"]}, "queues", "did you mean 'long'?"),
        ({"quota": {"running_jobs": -1}}, "running_jobs", "0 or more"),
        ({"quotas": {"moon": {}}}, "quotas.moon", "it has local"),
        ({"quotas": {"local": {"space_bytes": 1}}}, "space_bytes", "set it for all clusters"),
        ({"extension": {"a": "x" * 70_000}}, "extension", "is the most"),
        ({"description": "x" * 1001}, "description", "is the most"),
        ({"colour": 1}, "colour", "not a known field"),
    ):
        refused = server.ask("POST", "/v1/groups", {"name": "lab", **asked}, token=server.root)
        assert refused.status in (404, 422), refused.data
        assert refused.json()["field"] == field
        assert said in refused.json()["detail"]
    assert server.ask("GET", "/v1/groups/lab", token=server.root).status == 404
    made(server)
    assert server.ask("POST", "/v1/groups", {"name": "lab"}, token=server.root).status == 409


def test_a_user_who_is_disabled_stays_a_member_and_one_is_taken_out_of_all_groups_at_once(server: Running) -> None:
    token = server.add_user("gone")
    made(server, "lab", members=["gone"])
    made(server, "other", members=["gone", "ann"])
    server.users.change("gone", disabled=True)
    assert server.ask("GET", "/v1/groups", token=token).status == 401
    assert server.get("/v1/groups/lab", server.root)["members"] == ["gone"]
    server.users.change("gone", disabled=False)
    assert [one["name"] for one in server.get("/v1/groups", token)] == ["default", "lab", "other"]


def test_a_user_sets_their_own_address_and_extension_and_an_admin_anybodys(server: Running) -> None:
    changed = server.ask("PATCH", "/v1/users/ann", {"email": "ann@lab.example", "extension": {"a": 1}}).json()
    assert (changed["email"], changed["extension"]) == ("ann@lab.example", {"a": 1})
    assert server.ask("PATCH", "/v1/users/bob", {"email": "x@lab.example"}).status == 403
    assert server.ask("PATCH", "/v1/users/bob", {"email": "x@lab.example"}, token=server.root).status == 200
    for wrong in ("nowhere", "@lab", "a@", "a b@c", "a@b\n", "a@" + "b" * 300):
        refused = server.ask("PATCH", "/v1/users/ann", {"email": wrong})
        assert (refused.status, refused.json()["field"]) == (422, "email")
    asked = {"name": "mailed", "email": "m@lab.example", "extension": {"b": [None]}}
    added = server.ask("POST", "/v1/users", asked, token=server.root).json()
    assert (added["email"], added["extension"]) == ("m@lab.example", {"b": [None]})
