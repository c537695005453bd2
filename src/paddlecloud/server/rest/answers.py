"""Records and streams as answers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from fastapi import Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from paddlecloud.model import wire
from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.server import streams

_RECHECK_SECONDS = 2.0


def answer(value: object, status: int = 200) -> Response:
    return Response(wire.encode(value), status, media_type="application/json")


def done() -> Response:
    return Response(status_code=204)


def stream(pieces: AsyncIterator[bytes], recheck: Callable[[], None]) -> Response:
    """A stream that ends when `recheck` says that its reader is not welcome any more."""
    # nginx holds a stream back unless it is told not to.
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_while_welcome(pieces, recheck), headers=headers, media_type=streams.MEDIA_TYPE)


async def _while_welcome(pieces: AsyncIterator[bytes], recheck: Callable[[], None]) -> AsyncIterator[bytes]:
    checked = time.monotonic()
    async for piece in pieces:
        if time.monotonic() - checked >= _RECHECK_SECONDS:
            try:
                await run_in_threadpool(recheck)
            except UnauthenticatedError:
                return
            checked = time.monotonic()
        yield piece
