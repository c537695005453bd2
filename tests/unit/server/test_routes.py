"""Every route there is, asked by everyone who might: strangers, weak tokens, and those who may not any more."""

from __future__ import annotations

import pytest
import urllib3
from fastapi.routing import APIRoute

from paddlecloud.model.user import Role, Scope
from paddlecloud.server.caller import take_turn
from paddlecloud.server.rest import ROUTERS
from tests.unit.server.running import Running

PUBLIC = {"/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/v1/login", "/v1/registrations"}
ADMINS = {("GET", "/v1/audit"), ("GET", "/v1/doctor"), ("GET", "/v1/users"), ("POST", "/v1/users")}
READING = {("POST", "/v1/jobs/{job_id}/pack"), ("POST", "/v1/packs/read")}
OF_TASKS = {  # no user's credential opens these
    ("GET", "/v1/jobs/{job_id}/runtime"),
    ("GET", "/v1/jobs/{job_id}/tree"),
    ("GET", "/v1/jobs/{job_id}/tasks/{task}/inputs/{number}"),
    ("POST", "/v1/jobs/{job_id}/claims"),
    *(("PUT", f"/v1/jobs/{{job_id}}/tasks/{{task}}/{what}") for what in ("log", "news", "output")),
}
ROUTES = sorted(
    (method, route.path)
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and route.path not in PUBLIC
    for method in route.methods or ()
)


def test_no_route_takes_two_turns_for_one_request() -> None:
    """Whoever holds one and waits for another would wait for ever once all are held so."""
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                needed = [dependency.call for dependency in route.dependant.dependencies]
                readers = [call for call in needed if "_signed" in getattr(call, "__qualname__", "")]
                assert not readers or take_turn not in needed, f"{route.path}: Sender goes with a body, not Caller"


def filled(path: str, job: str) -> str:
    parts = {"job_id": job, "name": "bob", "task": "trainer-0", "path:any_path": "log/trainer-0.log", "ak": "a" * 32}
    parts |= {"token_id": "token-1", "sha256": "0" * 64, "number": "0"}
    for name, value in (parts | {"user": "ann", "datacenter": "local", "group": "default"}).items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path
    return path + ("?follow=0" if path.endswith(("/events", "/logs")) else "")


@pytest.fixture(scope="module")
def bobs_job(server: Running) -> str:
    job = server.run(token=server.bob)
    server.say(job, "trainer-0", b"bob's secret\n")
    return job


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_stranger_is_refused_everywhere(server: Running, bobs_job: str, method: str, path: str) -> None:
    url = server.url + filled(path, bobs_job)
    for headers in ({}, {"Authorization": "Bearer pct_x"}, {"Authorization": "Bearer"}):
        assert urllib3.request(method, url, headers=headers, body=b"{}").status == 401


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_read_token_changes_nothing_and_another_users_things_are_not_there(
    server: Running, bobs_job: str, method: str, path: str
) -> None:
    url = filled(path, bobs_job)
    if (method, path) in OF_TASKS:
        assert {server.ask(method, url, b"", token=token).status for token in (server.bob, server.root)} == {401}
        return
    if method != "GET" and (method, path) not in READING:
        answer = server.ask(method, url, b"{}", token=server.token("bob", Scope.READ))
        assert (answer.status, answer.json()["code"]) == (403, "forbidden"), url
        assert "scope read" in answer.json()["detail"]
    answer = server.ask(method, url, b"{}", token=server.ann)
    assert b"secret" not in answer.data
    if "{job_id}" in path:
        assert answer.status == 404, answer.data
    if path.startswith("/v1/users/{name}") or (method, path) in ADMINS:
        assert answer.status == 403, answer.data


@pytest.mark.parametrize(("method", "path"), sorted(ADMINS))
def test_what_is_for_admins_takes_both_the_role_and_the_scope(server: Running, method: str, path: str) -> None:
    weak = server.token("root-of-all", Scope.WRITE)
    strong_of_a_user = server.token("bob", Scope.ADMIN)
    for token in (weak, strong_of_a_user, server.token("root-of-all", Scope.READ)):
        assert server.ask(method, path, {"name": "x"}, token=token).status == 403


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_disabled_admin_and_a_revoked_token_are_refused_everywhere(
    server: Running, bobs_job: str, method: str, path: str
) -> None:
    url = filled(path, bobs_job)
    if "gone" not in {user.name for user in server.users.list()}:
        server.add_user("gone", Role.ADMIN, Scope.ADMIN)
        server.users.change("gone", disabled=True)
    assert server.ask(method, url, b"{}", token=server.token("gone", Scope.ADMIN)).status == 401
    revoked = server.token("bob", Scope.ADMIN)
    server.users.revoke_token(server.users.token(revoked, server.services.clock())[1].id, "bob")
    assert server.ask(method, url, b"{}", token=revoked).status == 401
