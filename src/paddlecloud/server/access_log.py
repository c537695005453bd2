"""One line for each request, with an id that its answer carries too; queries and bodies, which may hold secrets, are
left out. What nobody foresaw becomes an answer here: the traceback goes to the log, the id to the user."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paddlecloud.model.errors import InternalError
from paddlecloud.server.problems import problem

log = logging.getLogger("paddlecloud.access")
faults = logging.getLogger(__name__)

HEADER = "X-Request-Id"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_GONE = 499  # nginx's number for a client that did not wait for its answer


class AccessLog:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        asked = Headers(scope=scope).get(HEADER, "")
        request_id = asked if _ACCEPTED.fullmatch(asked) else secrets.token_hex(8)
        state = scope.setdefault("state", {})
        state["request_id"] = request_id
        began = time.monotonic()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            status = _GONE
        except Exception:
            faults.exception("request %s: %s %s failed", request_id, scope["method"], _path(scope))
            if status:
                raise  # the answer has begun: closing the connection is all that can still be said
            message = f"the server met a fault of its own; its log has it under request id {request_id}"
            await problem(InternalError(message), request_id)(scope, receive, send_with_id)
        finally:
            took = 1000 * (time.monotonic() - began)
            user = state.get("user", "-")
            log.info("%s %s %s %s %d %.1f ms", request_id, user, scope["method"], _path(scope), status, took)


def _path(scope: Scope) -> str:
    """The path as it was sent, percent-encoded, so that it cannot break the line."""
    raw: bytes = scope.get("raw_path") or b""
    return raw.decode("latin-1") if raw.isascii() else ascii(scope["path"])
