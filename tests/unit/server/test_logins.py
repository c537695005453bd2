"""Logging in over HTTP: guessing is slow, a stranger locks nobody out, and every try is on record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from paddlecloud.model.accounts import LoginRequest
from paddlecloud.model.errors import RateError, UnauthenticatedError
from paddlecloud.model.user import Role
from paddlecloud.server.app import utc_now
from paddlecloud.server.audit import Origin
from paddlecloud.server.logins import Logins
from paddlecloud.server.rates import Rates
from tests.unit.server.running import Running, a_spec, running

PLAIN = {"rates": {"logins_a_minute": 3, "submits_a_minute": 4}, "clusters": {"local": {"policy": "open"}}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "data", PLAIN) as made:
        made.users.add("carl", Role.USER, "right horse", utc_now())
        yield made


def login(server: Running, name: str = "carl", password: str = "wrong") -> urllib3.BaseHTTPResponse:
    return server.ask("POST", "/v1/login", {"name": name, "password": password}, token="none")


def record(server: Running, action: str) -> list[dict[str, Any]]:
    return list(server.get(f"/v1/audit?action={action}", server.root)["items"])


def test_the_fourth_wrong_password_in_a_minute_is_not_even_looked_at(server: Running) -> None:
    assert [login(server).status for _ in range(3)] == [401, 401, 401]
    refused = login(server, password="right horse")
    assert (refused.status, refused.json()["code"]) == (429, "rate")
    assert refused.json()["title"] == "Too often"
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert 1 <= int(refused.headers["Retry-After"]) <= 20
    assert "3 wrong passwords a minute" in refused.json()["detail"]
    assert len(record(server, "login.refused")) == 3


def test_right_passwords_are_no_guesses(server: Running) -> None:
    assert [login(server, password="right horse").status for _ in range(10)] == [200] * 10


def test_a_name_that_nobody_has_is_counted_as_well(server: Running) -> None:
    assert [login(server, "nobody").status for _ in range(4)] == [401, 401, 401, 429]
    assert login(server, "somebody").status == 401


def test_every_try_is_on_record_and_no_secret_is(server: Running) -> None:
    login(server)
    login(server, "a password in the wrong place")
    made = login(server, password="right horse").json()
    server.users.change("carl", disabled=True)
    login(server, password="right horse")
    refused = record(server, "login.refused")
    assert [(one["user"], one["target"], one["detail"]) for one in refused] == [
        ("", "carl", "user carl is disabled: ask an admin of this server"),
        ("", "", "no such user"),
        ("", "carl", "wrong user name or password"),
    ]
    (came_in,) = [one for one in record(server, "login") if one["action"] == "login"]
    assert (came_in["user"], came_in["detail"]) == ("carl", f"token {made['token']['id']}")
    assert {one["address"] for one in [*refused, came_in]} == {"127.0.0.1"}
    assert len({one["request_id"] for one in [*refused, came_in]}) == 4
    everything = str(server.get("/v1/audit", server.root))
    for secret in (made["secret"], "wrong place", "right horse"):
        assert secret not in everything


def test_a_password_that_is_only_checked_is_counted_and_recorded_alike(server: Running) -> None:
    logins = Logins(
        accounts=server.services.accounts,
        users=server.users,
        rates=Rates(logins_a_minute=2),
        audit=server.services.audit,
        clock=utc_now,
    )
    origin = Origin(address="127.0.0.1", request_id="r-1")

    async def check(*passwords: str) -> list[str]:
        return [(await logins.check(LoginRequest(name="carl", password=one), origin)).name for one in passwords]

    assert asyncio.run(check(*["right horse"] * 5)) == ["carl"] * 5
    for refusal in (UnauthenticatedError, UnauthenticatedError, RateError):
        with pytest.raises(refusal):
            asyncio.run(check("wrong"))
    assert [(one["target"], one["detail"]) for one in record(server, "login.refused")] == [
        ("carl", "wrong user name or password")
    ] * 2
    came_in = [one for one in record(server, "login") if one["action"] == "login"]
    assert {(one["user"], one["detail"], one["request_id"]) for one in came_in} == {("carl", "password", "r-1")}
    assert server.users.tokens("carl") == []


def test_a_users_submits_are_limited_and_a_repeated_one_is_no_new_job(server: Running) -> None:
    headers = {"Idempotency-Key": "once"}
    first = [server.ask("POST", "/v1/jobs", a_spec(), headers=headers) for _ in range(6)]
    assert [answer.status for answer in first] == [201] * 6
    assert len({answer.json()["id"] for answer in first}) == 1
    assert [server.ask("POST", "/v1/jobs", a_spec()).status for _ in range(4)] == [201, 201, 201, 429]
    refused = server.ask("POST", "/v1/jobs", a_spec())
    assert refused.json()["detail"].startswith("too often: 4 jobs a minute of one user are allowed")
    assert 1 <= int(refused.headers["Retry-After"]) <= 15
    assert server.ask("POST", "/v1/jobs", a_spec(), token=server.bob).status == 201
