"""Old clients whose endpoint was written with a slash at its end ask for `//api/v1/…`, and mean `/api/v1/…`."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

_OLD = (b"/api/", b"/api-token-auth/", b"/filepub/", b"/healthz")


class OneSlash:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("//"):
            raw = b"/" + (scope.get("raw_path") or scope["path"].encode()).lstrip(b"/")
            if raw.startswith(_OLD):
                scope = {**scope, "path": "/" + scope["path"].lstrip("/"), "raw_path": raw}
        await self._app(scope, receive, send)
