"""Calls of WebHDFS, one request each, as recorded from the real clients."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import urllib3

from tests.unit.server.running import Running


class Hdfs:
    """Calls in the name of one user, by the secret in their address; `top` is what the address begins with."""

    def __init__(self, server: Running, token: str, user: str, top: str = "/webhdfs/v1") -> None:
        self.server = server
        self.user = user
        self.secret: str = server.ask("GET", "/v1/webhdfs", token=token).json()["path"]
        self.top = self.secret + top

    def ask(self, method: str, path: str, op: str, body: Any = None, **query: object) -> urllib3.BaseHTTPResponse:
        told = urlencode({"op": op, "user.name": self.user, **query})
        return self.raw(method, f"{self.top}{quote(path)}?{told}", body)

    def raw(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> urllib3.BaseHTTPResponse:
        return self.server.pool.request(method, self.server.url + path, body=body, headers=headers, redirect=False)

    def get(self, path: str, op: str, **query: object) -> Any:
        return good(self.ask("GET", path, op, **query))

    def put(self, path: str, op: str, **query: object) -> Any:
        return good(self.ask("PUT", path, op, **query))

    def write(self, path: str, content: Any = b"x", op: str = "CREATE", **query: object) -> urllib3.BaseHTTPResponse:
        """Both requests; the answer to the second, or to the first if that was refused."""
        method = "PUT" if op.upper() == "CREATE" else "POST"
        first = self.ask(method, path, op, **query)
        if first.status != 307:
            return first
        there = urlsplit(first.headers["Location"])
        return self.raw(method, f"{there.path}?{there.query}", content)

    def read(self, path: str, **query: object) -> bytes:
        answer = self.ask("GET", path, "OPEN", **query)
        assert answer.status == 200, answer.data
        return answer.data

    def status(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(path, "GETFILESTATUS")["FileStatus"]
        return found

    def names(self, path: str) -> list[str]:
        return [one["pathSuffix"] for one in self.get(path, "LISTSTATUS")["FileStatuses"]["FileStatus"]]


def good(answer: urllib3.BaseHTTPResponse) -> Any:
    assert answer.status == 200, answer.data
    return json.loads(answer.data) if answer.data else None


def refusal(answer: urllib3.BaseHTTPResponse) -> tuple[int, str, str]:
    """The status, the exception and the message of an error, which must have the shape that clients read."""
    told = json.loads(answer.data)
    assert list(told) == ["RemoteException"], answer.data
    assert set(told["RemoteException"]) == {"exception", "javaClassName", "message"}
    assert answer.status in (400, 401, 403, 404, 429, 500)
    return answer.status, told["RemoteException"]["exception"], told["RemoteException"]["message"]
