"""A file as an answer: whole or in part (RFC 9110), with its digest when asked for (RFC 9530), in pieces.

A digest takes as long as the file is large, and job code can make a file as large as it likes: it is made a little at
a time, in threads of its own, and only as long as somebody waits for it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from itertools import islice

from anyio import to_thread
from fastapi import Request, Response
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from paddlecloud.model.errors import ConflictError, InvalidError, PaddleCloudError
from paddlecloud.server.problems import problem, request_id
from paddlecloud.server.shares import Shares
from paddlecloud.server.transfers import OpenFile

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)
_PIECES_AT_ONCE = 16


def send(request: Request, opened: OpenFile, digest: Digest, *, media: str = "application/octet-stream") -> Response:
    """The answer, which closes the file when it has been sent."""
    try:
        answer = _answer(request, opened, digest, media)
    except BaseException:
        opened.file.close()
        raise
    if not isinstance(answer, StreamingResponse):
        opened.file.close()
    return answer


def _answer(request: Request, opened: OpenFile, digest: Digest, media: str) -> Response:
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
    wanted = digest if "sha-256" in headers.get("want-repr-digest", "") else None
    found = _RANGE.fullmatch(asked.strip()) if asked else None
    if found is None:
        # Other units and lists of ranges may be answered with the whole.
        return _Part(opened, 0, size, status=200, headers=described, media=media, digest=wanted)
    part = _part(found[1], found[2], size)
    if part is None:
        wrong = InvalidError(f"range {asked!r} is not within the file's {size} bytes", field="Range")
        return _refused(wrong, 416, request, {"ETag": opened.etag, "Content-Range": f"bytes */{size}"})
    start, end = part
    described["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    return _Part(opened, start, end, status=206, headers=described, media=media, digest=wanted)


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
    """The bytes of a file from `start` up to `end`, after the `digest` of all of it if there is one to be made."""

    def __init__(
        self,
        opened: OpenFile,
        start: int,
        end: int,
        *,
        status: int,
        headers: dict[str, str],
        media: str,
        digest: Digest | None,
    ) -> None:
        described = headers | {"Content-Length": str(end - start)}
        super().__init__(_pieces(opened, start, end), status, described, media)
        self._opened = opened
        self._digest = digest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._digest is not None:
                found = await self._digest(self._opened, Request(scope, receive))
                self.headers["Repr-Digest"] = f"sha-256=:{base64.b64encode(found).decode()}:"
            await super().__call__(scope, receive, send)
        except FileCutError:
            # Its length was told, so the answer cannot end well: the client sees it broken and asks anew.
            raise ClientDisconnect from None
        finally:
            self._opened.file.close()


class FileCutError(Exception):
    """The file became shorter while it was being sent."""


def _pieces(opened: OpenFile, start: int, end: int) -> Iterator[bytes]:
    for piece in opened.pieces(start, end):
        start += len(piece)
        yield piece
    if start < end:
        raise FileCutError


class Digest:
    """SHA-256 of a file, made in the turn of one user."""

    def __init__(self, shares: Shares, user: str) -> None:
        self._shares = shares
        self._user = user

    async def __call__(self, opened: OpenFile, request: Request) -> bytes:
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


def _refused(error: PaddleCloudError, status: int, request: Request, headers: dict[str, str]) -> Response:
    answer = problem(error, request_id(request), status=status)
    answer.headers.update(headers)
    return answer
