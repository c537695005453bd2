"""A connection without a network: calls go straight to the server's own Transfers, and can be broken."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from threading import Lock
from urllib.parse import quote, unquote

from paddlecloud.files.opened import OpenedFile
from paddlecloud.model import wire
from paddlecloud.model.errors import ConflictError, PaddleCloudError, UnreachableError
from paddlecloud.model.transfers import PackRequest
from paddlecloud.model.tree import Manifest
from paddlecloud.sdk.connections import BrokenError
from paddlecloud.server.transfers import Transfers
from tests.contract.records import the_job


class Counted:
    """Progress that is only counted."""

    def __init__(self) -> None:
        self.expected = 0
        self.moved = 0

    def total(self, size: int) -> None:
        self.expected += size

    def advance(self, size: int) -> None:
        self.moved += size


class DirectAnswer:
    def __init__(self, status: int, data: bytes, headers: Mapping[str, str], breaks_after: int | None = None) -> None:
        self.status = status
        self.headers = headers
        self.data = data
        self._breaks_after = breaks_after

    def stream(self, size: int = 2**16) -> Iterator[bytes]:
        for at in range(0, len(self.data), size):
            if self._breaks_after is not None and at >= self._breaks_after:
                raise BrokenError(ConnectionResetError("connection broken"))
            yield self.data[at : at + size]

    def close(self) -> None:
        pass


class DirectHttp:
    """Serves one user. `breaks` is asked before each call, as (method, path), and may raise or cut the answer.

    `date` is what its clock shows: long after all files were written.
    """

    def __init__(self, transfers: Transfers, user: str = "ann") -> None:
        self._transfers = transfers
        self._user = user
        self._lock = Lock()
        self.calls: list[str] = []
        self.breaks: Callable[[str, str], int | None] = lambda method, path: None
        self.digests = True
        self.date = "Thu, 01 Jan 2099 00:00:00 GMT"

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | bool | None] | None = None,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        repeatable: bool = False,
        stream: bool = False,
    ) -> DirectAnswer:
        with self._lock:
            self.calls.append(f"{method} {path}")
            breaks_after = self.breaks(method, path)
        path = unquote(quote(path))
        if (method, path) == ("POST", "/v1/trees"):
            return _json(self._transfers.plan(self._user, wire.decode(Manifest, body)))
        if (method, path) == ("POST", "/v1/chunks"):
            self._transfers.put_pack(self._user, body)
            return DirectAnswer(204, b"", {})
        if found := re.fullmatch(r"/v1/chunks/(.*)", path):
            self._transfers.put(self._user, found[1], body)
            return DirectAnswer(204, b"", {})
        if found := re.fullmatch(r"/v1/jobs/([^/]*)/files", path):
            asked = dict(query or {})
            cursor = asked.get("cursor")
            prefix, limit = str(asked.get("prefix") or ""), int(asked.get("limit") or 100)
            page = self._transfers.list(the_job(found[1]), prefix, None if cursor is None else str(cursor), limit)
            return DirectAnswer(200, wire.encode(page), {"date": self.date})
        if found := re.fullmatch(r"/v1/jobs/([^/]*)/pack", path):
            asked_for = wire.decode(PackRequest, body).paths
            return DirectAnswer(200, b"".join(self._transfers.pack(the_job(found[1]), asked_for)), {})
        if found := re.fullmatch(r"/v1/jobs/([^/]*)/files/(.*)", path, re.DOTALL):
            return self._file(self._transfers.open(the_job(found[1]), found[2]), headers or {}, breaks_after)
        raise PaddleCloudError(f"no such call: {method} {path}")

    def _file(self, opened: OpenedFile, asked: Mapping[str, str], breaks_after: int | None) -> DirectAnswer:
        with closing(opened):
            if asked.get("If-Match", opened.etag) != opened.etag:
                raise ConflictError("the file has changed since")
            headers = {"etag": opened.etag}
            start, end = 0, opened.entry.size
            if "Range" in asked and asked.get("If-Range", opened.etag) == opened.etag:
                first, _, last = asked["Range"].removeprefix("bytes=").partition("-")
                start, end = int(first), int(last or end - 1) + 1
                headers["content-range"] = f"bytes {start}-{end - 1}/{opened.entry.size}"
            content = b"".join(opened.pieces(start, end))
            if self.digests and "Want-Repr-Digest" in asked:
                headers["repr-digest"] = _digest(b"".join(opened.pieces()))
            if self.digests and "Want-Content-Digest" in asked:
                headers["content-digest"] = _digest(content)
        return DirectAnswer(206 if "content-range" in headers else 200, content, headers, breaks_after)


def _digest(content: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(content).digest()).decode()}:"


def unreachable_after(calls: int, what: str) -> Callable[[str, str], int | None]:
    """Lets so many calls of a kind through, then none."""
    seen = 0

    def breaks(method: str, path: str) -> int | None:
        nonlocal seen
        if f"{method} {path}".startswith(what):
            seen += 1
            if seen > calls:
                raise UnreachableError("the server does not answer")
        return None

    return breaks


def _json(value: object) -> DirectAnswer:
    return DirectAnswer(200, wire.encode(value), {})
