"""Bodies of old clients: one part, the one that was signed, and nobody else waits while it is read."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from paddlecloud.model.pfs import Who
from paddlecloud.server.dialects.paddlecloud.multipart import Part
from tests.unit.server.running import Running
from tests.unit.server.test_requests import signed

HOME = "/pfs/local/home/ann"
CHUNKS = "/api/v1/pfs/storage/chunks"
BOUNDARY = "b" * 40
KIND = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
ANN = Who(user="ann")


def a_part(content: bytes, filename: str = "x") -> bytes:
    disposition = f'Content-Disposition: form-data; name="chunk"; filename="{filename}"'
    return f"--{BOUNDARY}\r\n{disposition}\r\n\r\n".encode() + content + b"\r\n"


def ended(*parts: bytes) -> bytes:
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()])


def a_chunk(path: str, content: bytes) -> bytes:
    return ended(a_part(content, urlencode({"chunksize": len(content), "offset": 0, "path": path})))


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_part_is_taken_as_it_comes(pieces: int) -> None:
    found = bytearray()
    part = Part(KIND["Content-Type"], found.extend)
    body = ended(a_part(b"some\r\n--bytes", "name"))
    size = -(-len(body) // pieces)
    for start in range(0, len(body), size):
        part.feed(body[start : start + size])
    part.check()
    assert (bytes(found), part.name, part.filename) == (b"some\r\n--bytes", "chunk", "name")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (KIND["Content-Type"], ended(a_part(b"one"), a_part(b"two"))),
        (f"multipart/form-data; boundary={'b' * 300}", a_part(b"one")),
        (KIND["Content-Type"], a_part(b"one")),
        (KIND["Content-Type"], b"--other\r\n\r\n"),
        ("text/plain", b"one"),
    ],
)
@pytest.mark.parametrize("path", [CHUNKS, f"/api/v1/file/?path={quote(HOME)}%2Fodd"])
def test_odd_multipart_bodies_are_refused_in_words(server: Running, path: str, kind: str, body: bytes) -> None:
    answer = server.ask("POST", path, body, headers={"Content-Type": kind})
    assert answer.status == (400 if path == CHUNKS else 200)
    said: dict[str, Any] = answer.json()
    assert "multipart" in (said.get("err") or said.get("msg") or ""), said
    assert server.ask("GET", f"/api/v1/file/?path={quote(HOME)}%2Fodd").status == 404


def test_nobody_waits_for_a_body_of_a_million_parts(server: Running) -> None:
    empty = f"--{BOUNDARY}\r\n\r\n\r\n".encode()
    body = empty * (2**25 // len(empty))
    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(server.ask, "POST", CHUNKS, body, headers=KIND)
        longest, first = 0.0, time.monotonic()
        while not sent.done():
            began = time.monotonic()
            assert server.ask("GET", "/healthz/", token=server.bob).status == 200
            longest = max(longest, time.monotonic() - began)
        assert sent.result().status == 400
    assert longest < max(2.0, (time.monotonic() - first) / 2)  # else they waited for the most of it


@pytest.mark.parametrize(
    ("method", "path", "good", "evil", "kind"),
    [
        (
            "POST",
            "/api/v1/pfs/files",
            b'{"method":"mkdir","path":["/pfs/local/home/ann/good"]}',
            b'{"method":"mkdir","path":["/pfs/local/home/ann/evil"]}',
            {},
        ),
        (
            "DELETE",
            "/api/v1/pfs/files",
            b'{"method":"rm","path":["/pfs/local/home/ann/none"]}',
            b'{"method":"rm","path":["/pfs/local/home/ann/kept"]}',
            {},
        ),
        (
            "POST",
            "/api/v1/publish/",
            b'{"path":"/pfs/local/home/ann/none"}',
            b'{"path":"/pfs/local/home/ann/kept"}',
            {},
        ),
        ("POST", CHUNKS, a_chunk(f"{HOME}/kept", b"good"), a_chunk(f"{HOME}/kept", b"evil"), KIND),
        ("POST", f"/api/v1/file/?path={HOME}/evil", ended(a_part(b"good")), ended(a_part(b"evil")), KIND),
    ],
)
def test_a_body_that_was_not_signed_changes_nothing(
    server: Running, method: str, path: str, good: bytes, evil: bytes, kind: dict[str, str]
) -> None:
    server.services.pfs.write(ANN, f"{HOME}/kept", [b"kept"], size=4)
    before = [entry.path for entry in server.services.pfs.list(ANN, HOME).items]
    answer = server.ask(method, path, evil, headers=signed(server, method, path, good) | kind)
    assert answer.status == 401 or "401" in answer.json().get("err", "") or answer.json().get("code") == 500
    assert [entry.path for entry in server.services.pfs.list(ANN, HOME).items] == before
    assert server.ask("GET", f"/api/v1/file/?path={quote(HOME)}%2Fkept").data == b"kept"
    assert server.get("/api/v1/publish/")["items"] == []


def test_a_body_that_was_signed_is_taken(server: Running) -> None:
    body = b'{"method":"mkdir","path":["/pfs/local/home/ann/signed"]}'
    path = "/api/v1/pfs/files"
    answer = server.ask("POST", path, body, headers=signed(server, "POST", path, body))
    assert answer.json()["err"] == "", answer.data
    path = f"/api/v1/file/?path={HOME}/signed/x"
    body = ended(a_part(b"content"))
    answer = server.ask("POST", path, body, headers=signed(server, "POST", path, body) | KIND)
    assert answer.json() == {"code": 200, "msg": ""}
    assert server.ask("GET", f"/api/v1/file/?path={quote(HOME)}%2Fsigned%2Fx").data == b"content"
