"""The audit record over HTTP: each act names who, what, when and from where, and nothing that is secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddlecloud.model.user import Role, Scope
from paddlecloud.server.app import utc_now
from paddlecloud.store.audit import Audit
from paddlecloud.store.db import Database
from tests.unit.server.running import Running, a_spec, running


def newest(server: Running) -> dict[str, Any]:
    found: dict[str, Any] = server.get("/v1/audit?limit=1", server.root)["items"][0]
    return found


def said(entry: dict[str, Any]) -> tuple[str, str, str, str]:
    return entry["user"], entry["action"], entry["target"], entry["detail"]


def test_what_is_done_to_accounts_is_on_record_with_its_request(server: Running) -> None:
    root, ann = server.root, server.ann
    asked = server.ask(
        "POST", "/v1/users", {"name": "nina", "password": "a password"}, token=root, headers={"X-Request-Id": "r-1"}
    )
    assert asked.headers["X-Request-Id"] == "r-1"
    entry = newest(server)
    assert said(entry) == ("root-of-all", "user.add", "nina", "role=user")
    assert (entry["address"], entry["request_id"]) == ("127.0.0.1", "r-1")

    change = {"role": "admin", "password": "another password", "quota": {"running_jobs": 2}}
    assert server.ask("PATCH", "/v1/users/nina", change, token=root).status == 200
    user, action, target, detail = said(newest(server))
    assert (user, action, target) == ("root-of-all", "user.change", "nina")
    assert 'role="admin"' in detail
    assert "password," in detail
    assert '"running_jobs": 2' in detail

    key = server.ask("POST", "/v1/keys", {"user": "nina"}, token=root).json()
    assert said(newest(server)) == ("root-of-all", "key.create", key["key"]["ak"], "of nina")
    assert server.ask("DELETE", f"/v1/keys/{key['key']['ak']}", token=root).status == 204
    assert said(newest(server)) == ("root-of-all", "key.revoke", key["key"]["ak"], "")

    token = server.ask("POST", "/v1/tokens", {"name": "ci", "scope": "read"}).json()
    assert said(newest(server)) == ("ann", "token.create", token["token"]["id"], "'ci', scope=read")
    assert server.ask("DELETE", f"/v1/tokens/{token['token']['id']}", token=ann).status == 204
    assert said(newest(server)) == ("ann", "token.revoke", token["token"]["id"], "")

    assert server.ask("DELETE", "/v1/users/nina/old-clients", token=root).status == 204
    assert said(newest(server)) == ("root-of-all", "token.revoke_old", "nina", "")
    assert server.ask("DELETE", "/v1/users/nina/old-clients", token=ann).status == 403
    assert newest(server)["target"] == "nina"

    everything = str(server.get("/v1/audit?limit=1000", root))
    for secret in ("a password", "another password", key["sk"], token["secret"]):
        assert secret not in everything


def test_submits_and_kills_are_on_record_and_whose_job_an_admin_killed(server: Running) -> None:
    job = server.submit()
    assert said(newest(server)) == ("ann", "job.submit", job, "")
    assert server.ask("POST", f"/v1/jobs/{job}/kill", token=server.root).status == 200
    assert said(newest(server)) == ("root-of-all", "job.kill", job, "of ann")
    server.reaches(job, "killed")
    assert server.ask("POST", f"/v1/jobs/{job}/kill").status == 409
    assert said(newest(server))[0] == "root-of-all"


def test_what_is_refused_is_not_told_as_done(server: Running) -> None:
    before = newest(server)["seq"]
    assert server.ask("POST", "/v1/users", {"name": "ann"}, token=server.root).status == 409
    assert server.ask("PATCH", "/v1/users/bob", {"disabled": True}).status == 403
    assert server.ask("DELETE", f"/v1/keys/{'0' * 32}").status == 404
    assert server.ask("POST", "/v1/jobs", a_spec(count=0)).status == 422
    assert server.ask("POST", "/v1/jobs/job-" + "0" * 32 + "/kill").status == 404
    assert newest(server)["seq"] == before


def test_the_start_of_a_server_is_on_record(server: Running) -> None:
    (started,) = server.get("/v1/audit?action=server.start", server.root)["items"]
    assert started["detail"].startswith("version ")


def test_the_end_of_a_server_is_on_record(tmp_path: Path) -> None:
    with running(tmp_path / "data"):
        pass
    database = Database.open(f"sqlite:///{tmp_path / 'data' / 'paddlecloud.db'}")
    assert [entry.action for entry in Audit(database).list(action="server").items] == ["server.stop", "server.start"]
    database.close()


def test_only_admins_read_it_and_a_filter_that_is_wrong_is_named(server: Running) -> None:
    server.users.add("curious", Role.USER, None, utc_now())
    for token in (server.ann, server.token("root-of-all", Scope.WRITE), server.token("curious", Scope.ADMIN)):
        assert server.ask("GET", "/v1/audit", token=token).status == 403
    for query, field in (
        ("action=logn", "action"),
        ("since=yesterday", "since"),
        ("cursor=x", "cursor"),
        ("limit=0", "limit"),
        ("of=ann", "of"),
    ):
        answer = server.ask("GET", f"/v1/audit?{query}", token=server.root)
        assert (answer.status, answer.json()["field"]) == (422, field), query
    assert "did you mean 'login'?" in server.ask("GET", "/v1/audit?action=logn", token=server.root).json()["detail"]


def test_the_record_can_be_read_in_pages_by_who_what_and_since_when(server: Running) -> None:
    for _ in range(3):
        server.submit(token=server.bob)
    page = server.get("/v1/audit?user=bob&action=job&since=10m&limit=2", server.root)
    assert [item["action"] for item in page["items"]] == ["job.submit"] * 2
    rest = server.get(f"/v1/audit?user=bob&action=job&limit=2&cursor={page['next_cursor']}", server.root)
    assert [item["user"] for item in rest["items"]] == ["bob"]
    assert rest["next_cursor"] is None
    assert server.get("/v1/audit?since=2100-01-01T00:00:00Z", server.root)["items"] == []
