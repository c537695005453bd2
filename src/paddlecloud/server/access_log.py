"""One line for each request, with an id that its answer carries too; queries, bodies and secrets in paths are left
out. What nobody foresaw becomes an answer here: the traceback goes to the log, the id to the user."""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paddlecloud.model.errors import InternalError
from paddlecloud.server import logs
from paddlecloud.server.problems import problem
from paddlecloud.server.secret_paths import has_secret, without_secret

log = logging.getLogger("paddlecloud.access")
faults = logging.getLogger(__name__)

HEADER = "X-Request-Id"
NO_ROUTE = "none"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_GONE = 499  # nginx's number for a client that did not wait for its answer


@dataclass(slots=True)
class Served:
    """What became of one request. `seconds` is the time until its answer began: how long a stream or a download goes
    on is for its reader to say."""

    method: str
    route: str = NO_ROUTE  # as the table of routes has it: /v1/jobs/{job_id}
    status: int = 0
    seconds: float = 0.0
    received_bytes: int = 0
    sent_bytes: int = 0


class AccessLog:
    def __init__(self, app: ASGIApp, observe: Callable[[Served], None] = lambda _: None) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope).get(HEADER, "")
        state = scope.setdefault("state", {})
        state["request_id"] = asked if _ACCEPTED.fullmatch(asked) else secrets.token_hex(8)
        began = time.monotonic()
        served = Served(scope["method"])
        with logs.concerning(state):
            try:
                await self._answer(scope, receive, send, served, began)
            finally:
                self._tell(scope, served, time.monotonic() - began)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, served: Served, began: float) -> None:
        request_id: str = scope["state"]["request_id"]

        async def receive_counted() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                served.received_bytes += len(message.get("body", b""))
            return message

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                served.status = message["status"]
                served.seconds = time.monotonic() - began
                MutableHeaders(scope=message)[HEADER] = request_id
            else:
                served.sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive_counted, send_with_id)
        except ClientDisconnect:
            served.status = _GONE
        except Exception:
            faults.exception("%s %s failed", scope["method"], _path(scope))
            if served.status:
                raise  # the answer has begun: closing the connection is all that can still be said
            message = f"the server met a fault of its own; its log has it under request id {request_id}"
            await problem(InternalError(message), request_id)(scope, receive, send_with_id)

    def _tell(self, scope: Scope, served: Served, took: float) -> None:
        served.route = getattr(scope.get("route"), "path", NO_ROUTE)
        served.seconds = served.seconds or took
        self._observe(served)
        if not log.isEnabledFor(logging.INFO):
            return
        state, path = scope["state"], _path(scope)
        address = (scope.get("client") or ("-",))[0]
        log.info(
            "%s %s %s %s %d %.1f ms, %d bytes in, %d out, %s",
            *(state["request_id"], state.get("user", "-"), served.method, path, served.status, 1000 * took),
            *(served.received_bytes, served.sent_bytes, address),
            extra={
                "access": {
                    "method": served.method,
                    "route": served.route,
                    "path": path,
                    "status": served.status,
                    "ms": round(1000 * took, 1),
                    "received": served.received_bytes,
                    "sent": served.sent_bytes,
                    "address": address,
                }
            },
        )


def _path(scope: Scope) -> str:
    """The path as it was sent, percent-encoded, so that it cannot break the line; without a secret that it holds."""
    path: str = scope["path"]
    if has_secret(path):
        return "…".join(map(quote, without_secret(path).split("…")))
    raw: bytes = scope.get("raw_path") or b""
    return raw.decode("latin-1") if raw.isascii() else ascii(path)
