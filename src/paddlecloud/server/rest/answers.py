"""Records and streams as answers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager

from anyio import to_thread
from fastapi import Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from paddlecloud.model import wire
from paddlecloud.model.errors import UnauthenticatedError
from paddlecloud.server import streams
from paddlecloud.server.shares import Shares

_RECHECK_SECONDS = 2.0


def answer(value: object, status: int = 200) -> Response:
    return Response(wire.encode(value), status, media_type="application/json")


def done() -> Response:
    return Response(status_code=204)


def made_of(pieces: Iterator[bytes], shares: Shares, user: str) -> Response:
    """Bytes that take work to make: in the turn of one user, in the threads for that, as fast as they are read."""
    return StreamingResponse(_made(pieces, shares, user), media_type="application/octet-stream")


async def _made(pieces: Iterator[bytes], shares: Shares, user: str) -> AsyncIterator[bytes]:
    while True:
        async with shares.digests.take(user):
            piece = await to_thread.run_sync(next, pieces, None, limiter=shares.hashing)
        if piece is None:
            return
        yield piece


def stream(pieces: AsyncIterator[bytes], recheck: Callable[[], None], seat: AbstractContextManager[None]) -> Response:
    """A stream that keeps its `seat` and ends when `recheck` says that its reader is not welcome any more."""
    return _Stream(_while_welcome(pieces, recheck), seat)


class _Stream(StreamingResponse):
    def __init__(self, pieces: AsyncIterator[bytes], seat: AbstractContextManager[None]) -> None:
        # nginx holds a stream back unless it is told not to.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(pieces, headers=headers, media_type=streams.MEDIA_TYPE)
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._seat:
            await super().__call__(scope, receive, send)


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
