"""Registry secrets over HTTP: one's own, never with their passwords, and each change is on record."""

from __future__ import annotations

import pytest

from paddlecloud.model.user import Scope
from tests.unit.server.running import Running

ASKED = {"name": "lab", "server": "hub.lab:5000", "username": "robot", "password": "s3cret-of-lab"}


@pytest.fixture(autouse=True)
def removed(server: Running) -> None:
    for one in server.get("/v1/registries"):
        assert server.ask("DELETE", f"/v1/registries/{one['name']}").status == 204


def acts(server: Running) -> list[tuple[str, str, str]]:
    found = server.get("/v1/audit?action=registry&limit=2", server.root)["items"]
    return [(one["user"], one["action"], one["target"]) for one in found]


def test_a_secret_is_added_listed_and_removed_and_its_password_is_told_nowhere(server: Running) -> None:
    added = server.ask("POST", "/v1/registries", ASKED)
    assert added.status == 201
    shown = {key: value for key, value in ASKED.items() if key != "password"}
    assert {key: value for key, value in added.json().items() if key != "created_at"} == shown
    assert server.get("/v1/registries") == [added.json()]
    assert server.services.registries.login("ann", "lab").password == "s3cret-of-lab"
    assert server.ask("DELETE", "/v1/registries/lab").status == 204
    assert server.get("/v1/registries") == []
    assert acts(server) == [("ann", "registry.delete", "lab"), ("ann", "registry.add", "lab")]
    assert "s3cret" not in str(server.get("/v1/audit?limit=1000", server.root)) + str(added.json())


def test_nobody_sees_or_removes_what_is_anothers_not_even_an_admin(server: Running) -> None:
    server.ask("POST", "/v1/registries", ASKED)
    for token in (server.bob, server.root):
        assert server.get("/v1/registries", token) == []
        assert server.ask("DELETE", "/v1/registries/lab", token=token).status == 404
    assert server.ask("POST", "/v1/registries", ASKED, token=server.bob).status == 201
    assert server.services.registries.login("bob", "pcloud-registry-lab").username == "robot"
    assert server.ask("DELETE", "/v1/registries/pcloud-registry-lab", token=server.bob).status == 204


def test_who_may_only_read_adds_and_removes_nothing(server: Running) -> None:
    reader = server.token("ann", Scope.READ)
    assert server.ask("POST", "/v1/registries", ASKED, token=reader).status == 403
    server.ask("POST", "/v1/registries", ASKED)
    assert server.ask("DELETE", "/v1/registries/lab", token=reader).status == 403
    assert server.ask("GET", "/v1/registries", token=reader).status == 403
    assert len(server.get("/v1/registries")) == 1


def test_what_was_refused_is_not_on_record(server: Running) -> None:
    server.ask("POST", "/v1/registries", ASKED)
    before = acts(server)
    assert server.ask("POST", "/v1/registries", ASKED).status == 409
    for changed in ({"name": "a/b"}, {"server": "a b"}, {"username": ""}, {"password": ""}):
        refused = server.ask("POST", "/v1/registries", ASKED | changed)
        assert (refused.status, refused.json()["field"]) == (422, next(iter(changed)))
        assert "s3cret" not in refused.data.decode()
    assert server.ask("DELETE", "/v1/registries/other").status == 404
    assert acts(server) == before
