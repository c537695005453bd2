"""What holds for every request: who sends it, how large it may be, and one shape for every refusal."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
import socket

import pytest
import urllib3
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from paddlecloud.model import signature
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.user import Scope as TokenScope
from paddlecloud.server.access_log import AccessLog
from paddlecloud.server.app import utc_now
from paddlecloud.server.caller import read_from_stranger
from tests.unit.server.running import Running, a_spec
from tests.waiting import wait_until


def signed(server: Running, method: str, path: str, body: bytes, *, body_hash: str | None = None) -> dict[str, str]:
    key, sk = server.users.add_key("ann", utc_now())
    return signature.headers(
        key.ak,
        sk,
        method=method,
        path=path.partition("?")[0],
        query=path.partition("?")[2],
        body_hash=body_hash or hashlib.sha256(body).hexdigest(),
        date=utc_now(),
        nonce=secrets.token_hex(16),
    )


def send(server: Running, raw: bytes, *, seconds: float = 30.0) -> bytes:
    """The first line of the answer to bytes of our own making; nothing, if there is none in this time."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=seconds) as connection:
        connection.sendall(raw)
        try:
            return connection.recv(65536).partition(b"\r\n")[0]
        except TimeoutError:
            return b""


def jobs(server: Running) -> int:
    return len(server.get("/v1/jobs?limit=1000")["items"])


def test_a_signed_request_is_taken_once(server: Running) -> None:
    headers = signed(server, "GET", "/v1/jobs?limit=1&name=a%20b", b"")
    for status in (200, 401):
        answer = urllib3.request("GET", f"{server.url}/v1/jobs?limit=1&name=a%20b", headers=headers)
        assert answer.status == status, answer.data


def test_a_body_other_than_the_one_signed_changes_nothing(server: Running) -> None:
    before = jobs(server)
    body = json.dumps(a_spec()).encode()
    headers = signed(server, "POST", "/v1/jobs", body, body_hash=hashlib.sha256(b"other").hexdigest())
    answer = urllib3.request("POST", f"{server.url}/v1/jobs", body=body, headers=headers)
    assert (answer.status, answer.json()["code"]) == (401, "unauthenticated")
    assert jobs(server) == before


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_a_body_cut_in_the_middle_changes_nothing(server: Running, share: float) -> None:
    before = jobs(server)
    body = json.dumps(a_spec()).encode()
    lines = {**signed(server, "POST", "/v1/jobs", body), "Host": "x", "Content-Length": str(len(body))}
    head = "POST /v1/jobs HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
    assert send(server, head.encode() + body[: int(len(body) * share)], seconds=0.5) == b""
    assert jobs(server) == before


def test_a_chunked_body_cut_before_its_end_changes_nothing(server: Running) -> None:
    before = jobs(server)
    body = json.dumps(a_spec()).encode()
    head = (
        "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        f"Authorization: Bearer {server.ann}\r\n\r\n{len(body):x}\r\n"
    )
    assert send(server, head.encode() + body + b"\r\n", seconds=0.5) == b""
    assert jobs(server) == before
    assert send(server, head.encode() + body + b"\r\n0\r\n\r\n") == b"HTTP/1.1 201 Created"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_above_the_limit_is_refused_however_it_is_sent(server: Running, chunked: bool) -> None:
    body = b" " * (1024 * 1024 + 1)
    headers = {"Authorization": f"Bearer {server.ann}"}
    answer = urllib3.request(
        "POST", f"{server.url}/v1/jobs", body=iter([body]) if chunked else body, headers=headers, retries=False
    )
    assert (answer.status, answer.json()["code"]) == (413, "too_large")
    assert "1.0 MiB" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/login", "/v1/registrations"])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_stranger_may_send_no_more_than_a_name_and_a_password_take(server: Running, path: str, chunked: bool) -> None:
    body = b" " * (16 * 1024 + 1)
    answer = urllib3.request("POST", f"{server.url}{path}", body=iter([body]) if chunked else body, retries=False)
    assert (answer.status, answer.json()["code"]) == (413, "too_large")
    assert "16.0 KiB is the most here" in answer.json()["detail"]


@pytest.mark.timeout(30)
def test_a_stranger_has_one_deadline_for_the_whole_body_however_it_drips() -> None:
    async def drip() -> Message:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    request = Request({"type": "http", "method": "POST", "path": "/v1/login", "headers": []}, drip)
    with pytest.raises(InvalidError, match=r"did not come within 0\.2 s"):
        asyncio.run(read_from_stranger(request, seconds=0.2))


def test_an_unknown_sender_is_refused_before_the_body_is_read(server: Running) -> None:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
    assert send(server, head) == b"HTTP/1.1 401 Unauthorized"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/v1/nowhere", 404, "not_found"),
        ("GET", "/v1/jobs/", 404, "not_found"),
        ("DELETE", "/v1/jobs", 405, "invalid"),
        ("PATCH", "/healthz", 405, "invalid"),
        ("GET", "/v1/jobs/job-1", 404, "not_found"),
        ("GET", "/v1/users/no-such-user", 403, "forbidden"),
        ("GET", "/v1/jobs?limit=a", 422, "invalid"),
        ("POST", "/v1/jobs", 422, "invalid"),
    ],
)
def test_every_refusal_is_a_problem_with_our_code(
    server: Running, method: str, path: str, status: int, code: str
) -> None:
    answer = server.ask(method, path, headers={"X-Request-Id": "mine-1"})
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == "mine-1"
    problem = answer.json()
    assert set(problem) == {"type", "title", "status", "detail", "code", "field", "request_id"}
    assert (problem["status"], problem["code"], problem["request_id"]) == (status, code, "mine-1")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[" * 200_000,
        b'{"roles":' * 100_000,
        b"\xff\xfe",
        b'{"roles":[{"name":"trainer","count":1,"command":"\\ud800"}]}',
        b'{"roles":[{"name":"trainer","count":1e400,"command":"x"}]}',
        b'{"roles":[{"name":"trainer","count":99999999999999999999999999,"command":"x"}]}',
        b'{"roles":[{"name":"trainer","count":true,"command":"x"}]}',
        b'{"roles":[{"name":"trainer","count":1,"command":"x"}],"env":{"\\u0000":"x"}}',
        b'{"roles":[{"name":"trainer","count":1,"command":"x"}],"name":null}',
        b'{"roles":[{"name":"trainer","count":1,"command":"x"}],"tree":"\\u0000"}',
        b'{"roles":[{"name":"trainer","count":1,"command":"x"}],"cluster":"\\n"}',
    ],
)
def test_a_hostile_body_is_refused_as_invalid(server: Running, body: bytes) -> None:
    answer = server.ask("POST", "/v1/jobs", body)
    assert answer.status == 422, answer.data


def test_a_fault_of_ours_shows_its_request_id_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    async def faulty(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("the secret inside")

    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send_message(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/x", "raw_path": b"/x", "headers": []}
    asyncio.run(AccessLog(faulty)(scope, receive, send_message))
    problem = json.loads(sent[1]["body"])
    assert (sent[0]["status"], problem["code"]) == (500, "internal")
    assert problem["request_id"] in problem["detail"]
    assert "secret" not in str(sent)
    assert "the secret inside" in caplog.text


def test_a_request_leaves_one_line_with_its_user_and_no_secret(
    server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "paddlecloud.access"):
        server.ask("GET", "/v1/jobs?name=secret-name", headers={"X-Request-Id": "a-line"})
        server.ask("GET", "/v1/x%0Ay", headers={"X-Request-Id": "bad\tid"})
        wait_until(lambda: len(caplog.messages) >= 2, "both are told")
    first = next(line for line in caplog.messages if line.startswith("a-line"))
    assert first.split()[:5] == ["a-line", "ann", "GET", "/v1/jobs", "200"]
    assert "secret-name" not in caplog.text
    assert server.ann not in caplog.text
    assert any("/v1/x%0Ay" in line for line in caplog.messages)


def test_a_revoked_token_a_disabled_user_and_a_strange_scheme_are_refused_at_once(server: Running) -> None:
    token = server.add_user("gone", scope=TokenScope.READ)
    assert server.ask("GET", "/v1/me", token=token).status == 200
    server.users.change("gone", disabled=True)
    assert server.ask("GET", "/v1/me", token=token).status == 401
    server.users.change("gone", disabled=False)
    server.users.revoke_token(server.users.tokens("gone")[0].id, "gone")
    answer = server.ask("GET", "/v1/me", token=token)
    assert answer.status == 401
    assert "Bearer" in answer.headers["www-authenticate"]
    for authorization in ("", "Basic YTpi", "Bearer", "PC1-HMAC-SHA256", "Bearer \xff"):
        answer = urllib3.request("GET", f"{server.url}/v1/me", headers={"Authorization": authorization})
        assert answer.status == 401, authorization


def test_health_needs_no_identity(server: Running) -> None:
    for path in ("/healthz", "/readyz"):
        answer = urllib3.request("GET", f"{server.url}{path}")
        assert (answer.status, answer.json()["status"]) == (200, "ok")


@pytest.mark.parametrize("begins", [b"GET /", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: "])
def test_a_head_without_end_is_cut_off(server: Running, begins: bytes) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(begins)
        with pytest.raises(ConnectionError):
            connection.sendall(b"a" * 2**26)
    assert server.ask("GET", "/v1/me", headers={"X-Long": "a" * 60_000}).status == 200
