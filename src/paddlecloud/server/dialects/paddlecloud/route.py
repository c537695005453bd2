"""What all routes of this dialect share: who calls, bodies within limits, and answers as the Go client reads them.

It takes an answer as good only if its status line is literally `200 OK`, so errors of the application are 200 with a
text in them; only where a 200 would make a client fall over, or believe an error to be its file, is it another status.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from paddlecloud.model.errors import InvalidError, PaddleCloudError, RateError, UnauthenticatedError
from paddlecloud.server.audit import Origin
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import check_hash, read_body, services
from paddlecloud.server.caller import identify as identify_ours
from paddlecloud.server.caller import origin as find_origin
from paddlecloud.server.old_tokens import OLD_SCHEMES
from paddlecloud.server.services import Services

JSON_BYTES = 1024 * 1024
PIECE_BYTES = 1024 * 1024
LISTED = 100_000

_LIST_BYTES = 32 * 1024 * 1024  # about what that many files are in an answer
_LOG_BYTES = 16 * 1024 * 1024


class OldRoute(APIRoute):
    """Errors as the old server wrote them: `detail` beside the status, or `code` and `msg` in a 200.

    There `error`, which old clients pass over, tells ours which one it is.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except PaddleCloudError as error:
                return refused(error)

        return answer


def refused(error: PaddleCloudError) -> Response:
    if isinstance(error, UnauthenticatedError):
        return json_answer({"detail": error.message}, 401, {"WWW-Authenticate": 'Basic realm="api"'})
    if isinstance(error, RateError):
        later = {} if error.retry_after_seconds is None else {"Retry-After": str(error.retry_after_seconds)}
        return json_answer({"detail": error.message}, 429, later)
    if error.status >= 500:
        return json_answer({"detail": error.message}, error.status)
    return json_answer({"code": 500, "msg": error.message, "error": error.code})


def json_answer(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(value, ensure_ascii=False), status, headers, "application/json")


def said(code: int, message: str, *, status: int = 200) -> Response:
    """`code` is never left out: without it a client falls over."""
    return json_answer({"code": code, "msg": message}, status)


async def identify(
    request: Request,
    services: Annotated[Services, Depends(services)],
    origin: Annotated[Origin, Depends(find_origin)],
) -> Identity:
    """Who calls, by what an old client sends, or by what ours does, which asks here for what old clients are shown."""
    authorization = request.headers.get("authorization", "")
    if authorization.partition(" ")[0].lower() not in OLD_SCHEMES and authorization:
        return await identify_ours(request, services)
    identity = await services.old_tokens.identify(authorization, origin, services.clock())
    request.state.user = identity.user.name
    return identity


async def take_turn(
    identity: Annotated[Identity, Depends(identify)], services: Annotated[Services, Depends(services)]
) -> AsyncIterator[Identity]:
    async with services.shares.turns.take(identity.user.name):
        yield identity


def reading_object(limit: int) -> Callable[[Request, Identity, Services], AsyncIterator[dict[str, Any]]]:
    async def read_object(
        request: Request,
        identity: Annotated[Identity, Depends(identify)],
        services: Annotated[Services, Depends(services)],
    ) -> AsyncIterator[dict[str, Any]]:
        """The body, a JSON object; the client sends one with DELETE too."""
        user = identity.user.name
        async with services.shares.bodies.take(user, limit):
            body = await read_body(request, limit)
            async with services.shares.turns.take(user):
                await check_hash(body, identity)
                yield parse_object(body)

    return read_object


def holding(amount: int) -> Callable[[Identity, Services], AsyncIterator[None]]:
    async def hold(
        identity: Annotated[Identity, Depends(identify)], services: Annotated[Services, Depends(services)]
    ) -> AsyncIterator[None]:
        """Memory of the caller's own for an answer, until its last byte is sent: they may be slow to read it."""
        async with services.shares.bodies.take(identity.user.name, amount):
            yield

    return hold


def parse_object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise InvalidError("parse json error: the body is not JSON", field="body") from None
    if not isinstance(found, dict):
        raise InvalidError("parse json error: the body is not a JSON object", field="body")
    return found


Caller = Annotated[Identity, Depends(take_turn, scope="function")]
Sender = Annotated[Identity, Depends(identify)]
Sent = Annotated[dict[str, Any], Depends(reading_object(JSON_BYTES), scope="function")]
# To stand before a Caller: whoever has a turn must not wait for memory.
HeldPiece = Annotated[None, Depends(holding(2 * PIECE_BYTES), scope="request")]
HeldList = Annotated[None, Depends(holding(_LIST_BYTES), scope="request")]
HeldLog = Annotated[None, Depends(holding(_LOG_BYTES), scope="request")]
