"""The answer to a copy: a line of JSON each second, so that nobody between takes a long copy for a dead server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from anyio import to_thread
from starlette.responses import StreamingResponse

from paddlecloud.model import wire
from paddlecloud.server.copies import Copying
from paddlecloud.server.shares import Shares

LINES = "application/x-ndjson"
_TELL_SECONDS = 1.0


def told(copying: Copying, shares: Shares, user: str) -> StreamingResponse:
    """Made in a turn of the user's, in the threads for what takes as long as a file is large."""
    # nginx holds a stream back unless it is told not to.
    return StreamingResponse(_lines(copying, shares, user), media_type=LINES, headers={"X-Accel-Buffering": "no"})


async def _lines(copying: Copying, shares: Shares, user: str) -> AsyncIterator[bytes]:
    working = asyncio.create_task(_made(copying, shares, user))
    try:
        while not (await asyncio.wait({working}, timeout=_TELL_SECONDS))[0]:
            yield wire.encode(copying.report()) + b"\n"
        await working
        yield wire.encode(copying.report(last=True)) + b"\n"
    finally:
        copying.stop()


async def _made(copying: Copying, shares: Shares, user: str) -> None:
    async with shares.digests.take(user):
        await to_thread.run_sync(copying.run, limiter=shares.hashing)
