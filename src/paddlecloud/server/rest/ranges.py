"""A file as an answer: whole or in part (RFC 9110), with its digest when asked for (RFC 9530), in pieces."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator

from fastapi import Request, Response
from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse

from paddlecloud.model.errors import ConflictError, InvalidError, PaddleCloudError
from paddlecloud.server.problems import problem, request_id
from paddlecloud.server.transfers import OpenFile

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


def send(
    request: Request,
    opened: OpenFile,
    digest: Callable[[OpenFile], bytes],
    *,
    media: str = "application/octet-stream",
) -> Response:
    """The answer, which closes the file when it has been sent."""
    try:
        answer = _answer(request, opened, digest, media)
    except BaseException:
        opened.file.close()
        raise
    if not isinstance(answer, StreamingResponse):
        opened.file.close()
    return answer


def _answer(request: Request, opened: OpenFile, digest: Callable[[OpenFile], bytes], media: str) -> Response:
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
    if "sha-256" in headers.get("want-repr-digest", ""):
        described["Repr-Digest"] = f"sha-256=:{base64.b64encode(digest(opened)).decode()}:"
    found = _RANGE.fullmatch(asked.strip()) if asked else None
    if found is None:
        # Other units and lists of ranges may be answered with the whole.
        return _stream(opened, 0, size, 200, described, media)
    part = _part(found[1], found[2], size)
    if part is None:
        wrong = InvalidError(f"range {asked!r} is not within the file's {size} bytes", field="Range")
        return _refused(wrong, 416, request, {"ETag": opened.etag, "Content-Range": f"bytes */{size}"})
    start, end = part
    return _stream(opened, start, end, 206, described | {"Content-Range": f"bytes {start}-{end - 1}/{size}"}, media)


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


def _stream(opened: OpenFile, start: int, end: int, status: int, headers: dict[str, str], media: str) -> Response:
    def pieces() -> Iterator[bytes]:
        with opened.file:
            yield from opened.pieces(start, end)

    return StreamingResponse(
        pieces(),
        status,
        headers | {"Content-Length": str(end - start)},
        media,
        BackgroundTask(opened.file.close),
    )


def _refused(error: PaddleCloudError, status: int, request: Request, headers: dict[str, str]) -> Response:
    answer = problem(error, request_id(request), status=status)
    answer.headers.update(headers)
    return answer
