"""Every address of OpenPAI in one spelling, below /rest-server, and open to scripts of other origins.

Its clients reach the REST server by way of a gateway (`/rest-server/api/…`) or at a port of its own (`/api/…`), with
and without a slash at the end. Of `/api/v1/…` only what no PaddlePaddle Cloud client asks for is meant. No cookie
counts below /rest-server: a page of another origin can do nothing there but what its own token lets it.
"""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ROOT = "/rest-server"
_VERSIONS = ("/api/v1", "/api/v2")
# The rest of /api/v1 is seed 001's: jobs/ (with its slash), pservers/, workers/, quota/, logs, registry/, file/, …
_OURS_OF_V1 = frozenset(
    {
        *("token", "tokens", "authn", "info", "user", "users", "group", "groups", "virtual-clusters"),
        *("storages", "cluster", "kubernetes"),
    }
)
# What version 0.1.5 of the SDK asks for where it means /api/v1/user/U/jobs/J/config.
_SDK_CONFIG = re.compile(r"/rest-server/api/v1/jobs/([^/]+)/jobs/([^/]+)/config")


def spelled(path: str) -> str | None:
    """The address below /rest-server that is meant; None: it is not one of OpenPAI's."""
    if path == ROOT or path.startswith(f"{ROOT}/"):
        found = path
    elif path.startswith(_VERSIONS) and _is_ours(path):
        found = ROOT + path
    else:
        return None
    found = found.rstrip("/") or ROOT
    return _SDK_CONFIG.sub(rf"{ROOT}/api/v1/user/\1/jobs/\2/config", found)


def _is_ours(path: str) -> bool:
    _, _, version, *rest = path.split("/")
    if version == "v2":
        return True
    if version != "v1":
        return False
    first = rest[0] if rest else ""
    if first == "jobs":
        return len(rest) == 1 or rest[1] != ""
    return first in _OURS_OF_V1 or not any(rest)


class Addresses:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = spelled(scope["path"]) if scope["type"] == "http" else None
        if found is None:
            await self._app(scope, receive, send)
            return

        async def send_openly(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Access-Control-Allow-Origin"] = "*"
            await send(message)

        await self._app({**scope, "path": found}, receive, send_openly)
