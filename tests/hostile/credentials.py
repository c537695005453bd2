"""Every kind of credential that a request may come with, each able to sign or mark any request."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from paddlecloud.model import signature
from paddlecloud.model.user import Role, Scope
from paddlecloud.server.app import utc_now
from tests.unit.server.running import Running


class Nobody(AuthBase):
    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers.pop("Authorization", None)
        return request


class Bearer(AuthBase):
    def __init__(self, secret: str) -> None:
        self._secret = secret

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._secret}"
        return request


class Signed(AuthBase):
    def __init__(self, ak: str, sk: str) -> None:
        self._ak, self._sk = ak, sk

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        where = urlsplit(str(request.url))
        body = request.body or b""
        assert isinstance(body, str | bytes)
        hashed = hashlib.sha256(body.encode() if isinstance(body, str) else body).hexdigest()
        nonce = secrets.token_hex(signature.NONCE_BYTES)
        signed = signature.headers(
            self._ak, self._sk, str(request.method), where.path, where.query, hashed, utc_now(), nonce
        )
        request.headers.update(signed)
        return request


def _key(server: Running, user: str) -> AuthBase:
    key, sk = server.users.add_key(user, utc_now())
    return Signed(key.ak, sk)


def _task(server: Running) -> AuthBase:
    job = server.run()
    return Bearer(server.services.shipping.token(server.services.records.get(job)))


def _admin_key(server: Running) -> AuthBase:
    server.users.add("key-admin", Role.ADMIN, None, utc_now())
    return _key(server, "key-admin")


KINDS: Mapping[str, Callable[[Running], AuthBase]] = {
    "nobody": lambda _: Nobody(),
    "read token": lambda server: Bearer(server.token("ann", Scope.READ)),
    "write token": lambda server: Bearer(server.token("ann", Scope.WRITE)),
    "admin token": lambda server: Bearer(server.root),
    "access key": lambda server: _key(server, "ann"),
    "admin's access key": _admin_key,
    "task token": _task,
}
