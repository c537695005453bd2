"""The connection: signing, trying again, and the errors that come back."""

from __future__ import annotations

import json
import socket
import time
from dataclasses import replace

import pytest

from paddlecloud.model.errors import (
    BY_CODE,
    ConflictError,
    PaddleCloudError,
    QuotaError,
    RateError,
    UnauthenticatedError,
    UnreachableError,
)
from paddlecloud.model.signature import SignedRequest, fits, parse_authorization
from paddlecloud.sdk.http import Http
from paddlecloud.sdk.profile import Profile
from tests.unit.sdk.answering import Answer, Asked, web


def problem(status: int, code: str, detail: str = "no") -> Answer:
    body = {"type": "x", "title": "x", "status": status, "detail": detail, "code": code, "field": "name"}
    return Answer(status, json.dumps(body).encode(), "application/problem+json")


def test_a_request_carries_a_signature_of_exactly_what_was_sent() -> None:
    with web(lambda asked: Answer()) as there:
        Http(there.profile).request("POST", "/v1/users/a b@x", query={"name": "ü&=", "all": True}, body=b'{"a":1}')
        (asked,) = there.asked
    path, _, query = asked.path.partition("?")
    assert path == "/v1/users/a%20b%40x"
    assert query == "name=%C3%BC%26%3D&all=true"
    signed = SignedRequest(
        method="POST",
        path=path,
        query=query,
        body_hash=asked.headers["X-PC-Content-SHA256"],
        date=asked.headers["X-PC-Date"],
        nonce=asked.headers["X-PC-Nonce"],
    )
    said = parse_authorization(asked.headers["Authorization"])
    assert said.ak == "ak"
    assert fits("sk", signed, said.signature)
    assert asked.body == b'{"a":1}'


def test_every_try_is_signed_anew() -> None:
    answers = iter([Answer(503), None, Answer(502), Answer()])
    with web(lambda asked: next(answers)) as there:
        Http(there.profile).request("GET", "/v1/jobs")
        nonces = {asked.headers["X-PC-Nonce"] for asked in there.asked}
    assert len(nonces) == 4


def test_a_call_that_cannot_be_repeated_is_sent_once() -> None:
    with web(lambda asked: None) as there:
        with pytest.raises(UnreachableError, match=there.url):
            Http(there.profile).request("POST", "/v1/users")
        assert len(there.asked) == 1


def test_a_call_that_can_be_repeated_is_given_up_after_a_while_with_the_url_and_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    profile = Profile(server=f"http://127.0.0.1:{port}", token="t", sources={"server": "the environment"})
    with pytest.raises(UnreachableError) as caught:
        Http(profile).request("GET", "/v1/me")
    assert f"http://127.0.0.1:{port}" in caught.value.message
    assert "connection refused" in caught.value.message
    assert "the environment" in caught.value.message


@pytest.mark.parametrize("code", [code for code in BY_CODE if code not in ("unreachable", "stale")])
def test_the_class_that_the_server_raised_is_raised_here(code: str) -> None:
    with web(lambda asked: problem(400, code, "what happened")) as there:
        with pytest.raises(PaddleCloudError) as caught:
            Http(there.profile).request("GET", "/v1/me")
    assert type(caught.value) is BY_CODE[code]
    assert (caught.value.message, caught.value.field) == ("what happened", "name")


def test_an_unknown_code_and_an_answer_that_is_not_ours_are_still_errors_of_ours() -> None:
    answers = iter([problem(418, "teapot", "short and stout"), Answer(404, b"<html>", "text/html"), Answer(401, b"")])
    with web(lambda asked: next(answers)) as there:
        http = Http(there.profile)
        with pytest.raises(PaddleCloudError, match="short and stout"):
            http.request("GET", "/v1/me")
        with pytest.raises(PaddleCloudError, match="/v1/me answered 404"):
            http.request("GET", "/v1/me")
        with pytest.raises(UnauthenticatedError):
            http.request("GET", "/v1/me")


def test_a_quota_error_is_not_tried_again() -> None:
    with web(lambda asked: problem(403, "quota")) as there:
        with pytest.raises(QuotaError):
            Http(there.profile).request("GET", "/v1/me")
        assert len(there.asked) == 1


def test_a_call_that_was_signed_while_the_server_was_starting_is_signed_and_sent_again() -> None:
    answers = iter([problem(401, "stale"), Answer()])
    with web(lambda asked: next(answers)) as there:
        Http(there.profile).request("POST", "/v1/keys")
        assert len({asked.headers["X-PC-Nonce"] for asked in there.asked}) == 2


def too_often(after: str) -> Answer:
    return replace(problem(429, "rate", "2 jobs a minute are allowed"), headers={"Retry-After": after})


def test_a_call_is_signed_anew_for_longer_than_a_first_answer_is_waited_for() -> None:
    """A server that starts again takes its time, and then refuses what was signed while it started."""
    began = time.monotonic()

    def starting(_: Asked) -> Answer | None:
        passed = time.monotonic() - began
        return None if passed < 0.3 else problem(401, "stale") if passed < 4.0 else Answer()

    with web(starting) as seen:
        assert Http(seen.profile).request("GET", "/v1/x").status == 200
    assert len({asked.headers["X-PC-Nonce"] for asked in seen.asked}) == len(seen.asked)


def test_what_was_asked_too_often_is_asked_again_when_its_turn_has_come(caplog: pytest.LogCaptureFixture) -> None:
    answers = iter([too_often("1"), too_often("0"), Answer()])
    with web(lambda asked: next(answers)) as there:
        began = time.monotonic()
        Http(there.profile).request("POST", "/v1/jobs", body=b"{}")
        assert time.monotonic() - began >= 1.0
        assert len({asked.headers["X-PC-Nonce"] for asked in there.asked}) == 3
    assert caplog.messages == ["2 jobs a minute are allowed; waiting"] * 2


@pytest.mark.parametrize("after", ["61", "-1", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_turn_that_is_far_away_or_never_told_is_not_waited_for(after: str) -> None:
    with web(lambda asked: too_often(after)) as there:
        with pytest.raises(RateError) as caught:
            Http(there.profile).request("GET", "/v1/jobs")
        assert len(there.asked) == 1
    assert caught.value.retry_after_seconds == (61 if after == "61" else None)


def test_a_token_is_sent_as_it_is() -> None:
    with web(lambda asked: Answer()) as there:
        Http(Profile(server=there.url, token="pct_x")).request("GET", "/v1/me")
        assert there.asked[0].headers["Authorization"] == "Bearer pct_x"


def test_a_password_is_turned_into_a_token_once() -> None:
    token = {"id": "i", "user": "u", "name": "login", "scope": "write", "created_at": "2020-01-01T00:00:00Z"}

    def respond(asked: Asked) -> Answer:
        if asked.path == "/v1/login":
            return Answer(200, json.dumps({"token": token, "secret": "pct_new"}).encode())
        return Answer()

    with web(respond) as there:
        http = Http(Profile(server=there.url, user="u", password="p"))
        http.request("GET", "/v1/me")
        http.request("GET", "/v1/me")
        assert [asked.path for asked in there.asked] == ["/v1/login", "/v1/me", "/v1/me"]
        assert json.loads(there.asked[0].body)["password"] == "p"
        assert there.asked[2].headers["Authorization"] == "Bearer pct_new"


def test_a_broken_stream_is_taken_up_after_the_last_event() -> None:
    first = b": keep-alive\n\nid: 7\nevent: moved\ndata: one\n\nid: 8\nevent: mov"
    second = b"id: 8\nevent: moved\ndata: two\n\nid: 9\nevent: end\ndata: {}\n\nid: 10\nevent: moved\ndata: never\n\n"
    answers = iter([Answer(200, first, cut=True), None, Answer(200, b""), Answer(200, second)])
    with web(lambda asked: next(answers)) as there:
        found = list(Http(there.profile).follow("/v1/events", {}, is_last=lambda event: event.name == "end"))
        asked_for = [asked.headers.get("Last-Event-ID") for asked in there.asked]
    assert [event.data for event in found] == ["one", "two", "{}"]
    assert asked_for == [None, "7", "7", "7"]


def test_an_error_in_a_stream_is_raised_not_tried_again() -> None:
    with web(lambda asked: problem(409, "conflict")) as there:
        with pytest.raises(ConflictError):
            list(Http(there.profile).follow("/v1/events", {}, is_last=lambda event: False))
        assert len(there.asked) == 1
