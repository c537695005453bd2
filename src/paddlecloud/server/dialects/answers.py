"""A file as an answer: read a little at a time, as its reader takes it, however many read and however slowly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from paddlecloud.files.base import StoredFile
from paddlecloud.model.errors import PaddleCloudError

_SLICE_BYTES = 256 * 1024  # more at once than a socket takes would be copied again and again by asyncio


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is sent before and after the bytes of a file."""

    head: bytes = b""
    tail: bytes = b""


NO_FRAME = Frame()


class FileAnswer(StreamingResponse):
    """The bytes of a file from `start` to `end`, `piece_bytes` of them in memory. It closes the file."""

    def __init__(
        self,
        opened: StoredFile,
        start: int,
        end: int,
        *,
        piece_bytes: int,
        frame: Frame = NO_FRAME,
        headers: Mapping[str, str] | None = None,
        media: str | None = None,
        threads: CapacityLimiter | None = None,
    ) -> None:
        length = len(frame.head) + end - start + len(frame.tail)
        super().__init__(
            _framed(frame, _pieces(opened, start, end, piece_bytes, threads)),
            200,
            {**(headers or {}), "Content-Length": str(length)},
            media,
        )
        self._opened = opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except PaddleCloudError:
            # Its length was told, so the answer cannot end well: the client sees it broken and asks anew.
            raise ClientDisconnect from None
        finally:
            self._opened.close()


async def _framed(frame: Frame, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes | memoryview]:
    if frame.head:
        yield frame.head
    async for piece in pieces:
        for start in range(0, len(piece), _SLICE_BYTES):
            yield memoryview(piece)[start : start + _SLICE_BYTES]
    if frame.tail:
        yield frame.tail


async def _pieces(
    opened: StoredFile, start: int, end: int, piece_bytes: int, threads: CapacityLimiter | None
) -> AsyncIterator[bytes]:
    while start < end:
        read = partial(opened.read, start, min(start + piece_bytes, end))
        piece = await to_thread.run_sync(read, limiter=threads)
        if not piece:
            raise ClientDisconnect  # the file became shorter while it was being sent
        start += len(piece)
        yield piece
