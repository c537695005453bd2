"""Requests as OpenPAI's clients send them, to a server of a test."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import urllib3

from paddlecloud.model.user import Role
from paddlecloud.server.app import utc_now
from tests.unit.server.running import Running

PASSWORD = "right horse"
FORM = "application/x-www-form-urlencoded"


class Pai:
    def __init__(self, server: Running) -> None:
        self.server = server
        server.users.add("carl", Role.USER, PASSWORD, utc_now())

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """To a path below /rest-server/api, or to one that begins with two slashes as it is; `token` "": none."""
        url = path[1:] if path.startswith("//") else f"/rest-server/api{path}"
        sent = dict(headers or {})
        if token is None:
            token = self.server.ann
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        if isinstance(body, dict):
            return self.server.pool.request(method, self.server.url + url, json=body, headers=sent)
        raw = body if isinstance(body, (bytes, str)) else None
        return self.server.pool.request(method, self.server.url + url, body=raw, headers=sent)

    def get(self, path: str, token: str | None = None) -> Any:
        answer = self.send("GET", path, token=token)
        assert answer.status == 200, answer.data
        return answer.json()

    def refused(self, method: str, path: str, body: object = None, **more: Any) -> tuple[int, str]:
        """The status and the code of a refusal."""
        answer = self.send(method, path, body, **more)
        assert set(answer.json()) == {"code", "message"}, answer.data
        return answer.status, answer.json()["code"]

    def form(self, path: str, **fields: str) -> urllib3.BaseHTTPResponse:
        return self.send("POST", path, urlencode(fields), token="", headers={"Content-Type": FORM})

    def login(self, name: str = "carl", password: str = PASSWORD, expiration: str = "4000") -> str:
        answer = self.form("/v2/authn/basic/login", username=name, password=password, expiration=expiration)
        assert answer.status == 200, answer.data
        return str(answer.json()["token"])
