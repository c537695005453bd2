"""A file as an answer: whole or in part (RFC 9110), with digests when asked for (RFC 9530), in pieces.

A digest takes as long as the file is large, and job code can make a file as large as it likes: it is made a little at
a time, in threads of its own, and only as long as somebody waits for it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice

from anyio import to_thread
from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from paddlecloud.files.base import StoredFile
from paddlecloud.model.errors import ConflictError, InvalidError, PaddleCloudError
from paddlecloud.model.tree import RANGE_BYTES
from paddlecloud.server.problems import problem, request_id
from paddlecloud.server.shares import Shares

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
_PIECES_AT_ONCE = 16
_SLICE_BYTES = 256 * 1024  # more at once than a socket takes would be copied again and again by asyncio
_OF_ALL, _OF_PART = "repr-digest", "content-digest"


def send(request: Request, opened: StoredFile, digest: Digest, *, media: str = "application/octet-stream") -> Response:
    """The answer, which closes the file when it has been sent."""
    try:
        answer = _answer(request, opened, digest, media)
    except BaseException:
        opened.close()
        raise
    if not isinstance(answer, StreamingResponse):
        opened.close()
    return answer


def _answer(request: Request, opened: StoredFile, digest: Digest, media: str) -> Response:
    size, headers = opened.entry.size, request.headers
    if "if-match" in headers and not _matches(headers["if-match"], opened.etag):
        changed = ConflictError("the file has changed since: fetch it from its beginning")
        return _refused(changed, 412, request, {"ETag": opened.etag})
    if "if-none-match" in headers and _matches(headers["if-none-match"], opened.etag):
        return Response(status_code=304, headers={"ETag": opened.etag})
    asked = headers.get("range")
    if headers.get("if-range", opened.etag) != opened.etag:
        asked = None
    described = {"ETag": opened.etag, "Accept-Ranges": "bytes", "Cache-Control": "no-cache"}
    found = _RANGE.fullmatch(asked.strip()) if asked else None
    # Other units and lists of ranges may be answered with the whole.
    part = _part(found[1], found[2], size) if found else (0, size)
    if part is None:
        wrong = InvalidError(f"range {asked!r} is not within the file's {size} bytes", field="Range")
        return _refused(wrong, 416, request, {"ETag": opened.etag, "Content-Range": f"bytes */{size}"})
    start, end = part
    if found:
        described["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    wanted = frozenset(name for name in (_OF_ALL, _OF_PART) if "sha-256" in headers.get(f"want-{name}", ""))
    if end - start > RANGE_BYTES:
        wanted -= {_OF_PART}
    status = 206 if found else 200
    return _Part(opened, part, status=status, headers=described, media=media, digest=digest, wanted=wanted)


def _part(first: str, last: str, size: int) -> tuple[int, int] | None:
    """Where a range begins and ends (exclusive); None: nothing of the file is in it."""
    if not first:
        start, end = size - int(last or 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
    start = max(start, 0)
    return (start, end) if start < end else None


def _matches(listed: str, etag: str) -> bool:
    return listed.strip() == "*" or etag in [one.strip() for one in listed.split(",")]


class _Part(StreamingResponse):
    """The bytes of a file in a range, with the digests that are `wanted`."""

    def __init__(
        self,
        opened: StoredFile,
        part: tuple[int, int],
        *,
        status: int,
        headers: dict[str, str],
        media: str,
        digest: Digest,
        wanted: AbstractSet[str],
    ) -> None:
        start, end = part
        described = headers | {"Content-Length": str(end - start)}
        super().__init__(_pieces(opened, start, end), status, described, media)
        self._opened = opened
        self._part = part
        self._digest = digest
        self._wanted = wanted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with AsyncExitStack() as stack:
                if _OF_ALL in self._wanted:
                    self.headers[_OF_ALL] = _member(await self._digest(self._opened, Request(scope, receive)))
                if _OF_PART in self._wanted:
                    content, digest = await stack.enter_async_context(self._digest.held(self._opened, *self._part))
                    self.headers[_OF_PART] = _member(digest)
                    self.body_iterator = _slices(content)
                await super().__call__(scope, receive, send)
        except FileCutError:
            # Its length was told, so the answer cannot end well: the client sees it broken and asks anew.
            raise ClientDisconnect from None
        finally:
            self._opened.close()


def _member(digest: bytes) -> str:
    return f"sha-256=:{base64.b64encode(digest).decode()}:"


async def _slices(content: bytes) -> AsyncIterator[memoryview]:
    for start in range(0, len(content), _SLICE_BYTES):
        yield memoryview(content)[start : start + _SLICE_BYTES]


class FileCutError(Exception):
    """The file became shorter while it was being sent."""


def _pieces(opened: StoredFile, start: int, end: int) -> Iterator[bytes]:
    for piece in opened.pieces(start, end):
        start += len(piece)
        yield piece
    if start < end:
        raise FileCutError


class Digest:
    """SHA-256 of a file, or of a part of it, made in the turn of one user."""

    def __init__(self, shares: Shares, user: str) -> None:
        self._shares = shares
        self._user = user

    async def __call__(self, opened: StoredFile, request: Request) -> bytes:
        digest = hashlib.sha256()
        pieces = opened.pieces()

        def go_on() -> bool:
            some = 0
            for piece in islice(pieces, _PIECES_AT_ONCE):
                digest.update(piece)
                some += 1
            return some == _PIECES_AT_ONCE

        async with self._shares.digests.take(self._user):
            while await to_thread.run_sync(go_on, limiter=self._shares.hashing):
                if await request.is_disconnected():
                    raise ClientDisconnect
        return digest.digest()

    @asynccontextmanager
    async def held(self, opened: StoredFile, start: int, end: int) -> AsyncIterator[tuple[bytes, bytes]]:
        """A small part, read once, and its digest: of the very bytes that are sent. Held in the user's own memory."""

        def read() -> tuple[bytes, bytes]:
            content = opened.read(start, end)
            if len(content) < end - start:
                raise FileCutError
            return content, hashlib.sha256(content).digest()

        async with self._shares.bodies.take(self._user, end - start):
            async with self._shares.digests.take(self._user):
                found = await to_thread.run_sync(read, limiter=self._shares.hashing)
            yield found


def _refused(error: PaddleCloudError, status: int, request: Request, headers: dict[str, str]) -> Response:
    answer = problem(error, request_id(request), status=status)
    answer.headers.update(headers)
    return answer
