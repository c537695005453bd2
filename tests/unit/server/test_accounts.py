"""Users, keys, tokens and passwords over HTTP: nobody gets more than they came with."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

import pytest
import urllib3

from paddlecloud.model import signature, wire
from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.model.user import Quota, Role, Scope
from paddlecloud.server.app import utc_now
from tests.unit.server.running import Running

NO_LIMITS = wire.builtins(Quota())


def test_an_admin_adds_a_user_who_logs_in_and_is_known(server: Running) -> None:
    asked = {"name": "carol@example.com", "role": "user", "password": "correct horse"}
    assert server.ask("POST", "/v1/users", asked, token=server.root).status == 201
    again = server.ask("POST", "/v1/users", asked, token=server.root)
    assert (again.status, again.json()["code"]) == (409, "conflict")
    login = {"name": "carol@example.com", "password": "correct horse"}
    made = server.ask("POST", "/v1/login", login, token="none").json()
    assert (made["token"]["scope"], made["token"]["expires_at"] is not None) == ("write", True)
    assert server.get("/v1/me", made["secret"])["name"] == "carol@example.com"
    wrong = server.ask("POST", "/v1/login", {**login, "password": "wrong horse"})
    unknown = server.ask("POST", "/v1/login", {**login, "name": "nobody"})
    assert (wrong.status, unknown.status) == (401, 401)
    assert wrong.json()["detail"] == unknown.json()["detail"]
    server.users.change("carol@example.com", disabled=True)
    assert server.ask("POST", "/v1/login", login).status == 401


def test_a_user_may_not_see_or_change_others(server: Running) -> None:
    for method, path, body in (
        ("GET", "/v1/users", None),
        ("POST", "/v1/users", {"name": "x"}),
        ("GET", "/v1/users/bob", None),
        ("PATCH", "/v1/users/bob", {"password": "long enough"}),
        ("POST", "/v1/keys", {"user": "bob"}),
        ("GET", "/v1/keys?user=bob", None),
        ("GET", "/v1/quota?user=bob", None),
    ):
        answer = server.ask(method, path, body)
        assert (answer.status, answer.json()["code"]) == (403, "forbidden"), path
    assert server.get("/v1/users/ann")["name"] == "ann"


def test_a_user_changes_their_own_password_and_nothing_else_of_theirs(server: Running) -> None:
    token = server.add_user("gina")
    changes: list[dict[str, object]] = [{"role": "admin"}, {"disabled": False}, {"quota": {}}, {"quotas": {}}]
    for change in changes:
        assert server.ask("PATCH", "/v1/users/gina", change, token=token).status == 403
    short = server.ask("PATCH", "/v1/users/gina", {"password": "short"}, token=token)
    assert (short.status, short.json()["field"]) == (422, "password")
    assert server.ask("PATCH", "/v1/users/gina", {"password": "a new password"}, token=token).status == 200
    assert server.ask("GET", "/v1/me", token=token).status == 401
    assert server.ask("POST", "/v1/login", {"name": "gina", "password": "a new password"}).status == 200


def test_an_admin_changes_role_quota_and_whether_a_user_may_come_in(server: Running) -> None:
    token = server.add_user("dave")
    changed = server.ask("PATCH", "/v1/users/dave", {"quota": {"running_jobs": 2}}, token=server.root).json()
    assert changed["quota"] == NO_LIMITS | {"running_jobs": 2}
    assert server.get("/v1/users/dave", server.root) == changed
    assert "quota" not in server.get("/v1/me", token)
    assert server.ask("PATCH", "/v1/users/dave", {"disabled": True}, token=server.root).json()["disabled"]
    assert server.ask("GET", "/v1/me", token=token).status == 401
    for wrong in (
        {"quota": {"running_jobs": -1}},
        {"quota": {"running_jobs": 10**30}},
        {"quotas": {"local": {"minutes_a_day": -1}}},
        {"quotas": {"local": {"minutes": 1}}},
        {"role": "king"},
        {"rol": "user"},
    ):
        assert server.ask("PATCH", "/v1/users/dave", wrong, token=server.root).status == 422
    assert server.ask("PATCH", "/v1/users/no-such-user", {"disabled": True}, token=server.root).status == 404


def test_a_new_key_signs_until_it_is_revoked(server: Running) -> None:
    made = server.ask("POST", "/v1/keys", {})
    assert made.status == 201
    ak, sk = made.json()["key"]["ak"], made.json()["sk"]

    def signed() -> int:
        headers = signature.headers(
            ak,
            sk,
            method="GET",
            path="/v1/me",
            query="",
            body_hash=hashlib.sha256(b"").hexdigest(),
            date=utc_now(),
            nonce=secrets.token_hex(16),
        )
        return urllib3.request("GET", f"{server.url}/v1/me", headers=headers).status

    assert signed() == 200
    assert ak in [key["ak"] for key in server.get("/v1/keys")]
    assert sk not in str(server.get("/v1/keys"))
    assert server.ask("DELETE", f"/v1/keys/{ak}", token=server.bob).status == 404
    assert server.ask("DELETE", f"/v1/keys/{ak}").status == 204
    assert signed() == 401


def test_a_token_makes_none_stronger_than_itself(server: Running) -> None:
    writer = server.token("ann", Scope.WRITE)
    assert server.ask("POST", "/v1/tokens", {"name": "t", "scope": "admin"}, token=writer).status == 403
    made = server.ask("POST", "/v1/tokens", {"name": "t", "scope": "read", "expires_in_seconds": 60}, token=writer)
    assert made.status == 201
    identity = made.json()["token"]["id"]
    assert server.ask("DELETE", f"/v1/tokens/{identity}", token=made.json()["secret"]).status == 403
    assert identity in [token["id"] for token in server.get("/v1/tokens")]
    assert server.ask("DELETE", f"/v1/tokens/{identity}", token=server.bob).status == 404
    assert server.ask("DELETE", f"/v1/tokens/{identity}").status == 204
    assert server.ask("GET", "/v1/me", token=made.json()["secret"]).status == 401


def test_a_token_makes_none_that_outlasts_it(server: Running) -> None:
    ends = utc_now() + timedelta(hours=1)
    _, brief = server.users.add_token("ann", "brief", Scope.WRITE, ends, utc_now())

    def made(token: str, **asked: int) -> urllib3.BaseHTTPResponse:
        return server.ask("POST", "/v1/tokens", {"name": "t", **asked}, token=token)

    inherited = made(brief).json()["token"]
    assert datetime.fromisoformat(inherited["expires_at"]) == ends
    shorter = made(brief, expires_in_seconds=60).json()
    assert datetime.fromisoformat(shorter["token"]["expires_at"]) < ends
    longer = made(brief, expires_in_seconds=7200)
    assert (longer.status, longer.json()["code"]) == (403, "forbidden")
    assert "cannot make one that lasts longer" in longer.json()["detail"]
    assert made(shorter["secret"], expires_in_seconds=3000).status == 403
    assert made(server.ann).json()["token"]["expires_at"] is None


@pytest.mark.parametrize("seconds", [0, -1, 10**20])
def test_a_time_that_no_token_can_live_for_is_refused(server: Running, seconds: int) -> None:
    answer = server.ask("POST", "/v1/tokens", {"name": "t", "expires_in_seconds": seconds})
    assert (answer.status, answer.json()["field"]) == (422, "expires_in_seconds")


def test_an_admins_weaker_token_gets_no_key_no_password_and_so_no_admin(server: Running) -> None:
    server.users.add("second", Role.ADMIN, None, utc_now())
    weak = server.token("second", Scope.WRITE)
    assert server.ask("POST", "/v1/keys", {}, token=weak).status == 403
    assert server.ask("PATCH", "/v1/users/second", {"password": "long enough"}, token=weak).status == 403
    strong = server.token("second", Scope.ADMIN)
    assert server.ask("POST", "/v1/keys", {"user": "ann"}, token=strong).json()["key"]["user"] == "ann"


def test_of_a_change_that_is_refused_in_part_nothing_is_made(server: Running) -> None:
    server.add_user("whole")
    for wrong in ({"password": "x" * 2000}, {"password": "short"}, {"quota": {"running_jobs": -1}, "disabled": True}):
        change = {"quota": {"instances": 3}, "role": "admin"} | wrong
        assert server.ask("PATCH", "/v1/users/whole", change, token=server.root).status == 422
        assert server.users.account("whole").quota.instances is None
        assert (server.user("whole").role, server.user("whole").disabled) == (Role.USER, False)


def test_a_token_that_has_expired_is_not_kept_for_ever(server: Running) -> None:
    server.users.add("often", Role.USER, None, utc_now())
    long_ago = utc_now() - timedelta(days=2)
    server.users.add_token("often", "old", Scope.READ, long_ago + timedelta(days=1), long_ago)
    server.users.add_token("often", "new", Scope.READ, utc_now() + timedelta(days=1), utc_now())
    assert [token.name for token in server.users.tokens("often")] == ["new"]


def test_a_login_for_no_time_at_all_is_refused(server: Running) -> None:
    server.users.add("brief", Role.USER, "long enough", utc_now())
    asked = {"name": "brief", "password": "long enough", "expires_in_seconds": 0}
    assert server.ask("POST", "/v1/login", asked).status == 422


def test_whoever_is_no_admin_any_more_does_not_go_on_seeing_everything(server: Running) -> None:
    server.add_user("deputy", Role.ADMIN, Scope.ADMIN)
    key, _ = server.users.add_key("deputy", utc_now())
    signed = f"PC1-HMAC-SHA256 Credential={key.ak}, Signature={'0' * 64}"
    bearer = f"Bearer {server.token('deputy', Scope.ADMIN)}"
    for authorization in (signed, bearer):
        server.services.accounts.recheck(authorization, Role.ADMIN)
    server.users.change("deputy", role=Role.USER)
    for authorization in (signed, bearer):
        with pytest.raises(UnauthenticatedError, match="role of deputy"):
            server.services.accounts.recheck(authorization, Role.ADMIN)
