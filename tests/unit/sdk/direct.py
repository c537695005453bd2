"""A connection without a network: calls go straight to the server's own Transfers, and can be broken."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from urllib.parse import quote, unquote

from urllib3 import HTTPHeaderDict
from urllib3.exceptions import ProtocolError

from paddlecloud.model import wire
from paddlecloud.model.errors import PaddleCloudError, UnreachableError
from paddlecloud.model.tree import Manifest
from paddlecloud.server.transfers import OpenFile, Transfers


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
        self.headers = HTTPHeaderDict(headers)
        self.data = data
        self._breaks_after = breaks_after

    def stream(self, amt: int | None = 2**16) -> Iterator[bytes]:
        for at in range(0, len(self.data), amt or 2**16):
            if self._breaks_after is not None and at >= self._breaks_after:
                raise ProtocolError("connection broken")
            yield self.data[at : at + (amt or 2**16)]

    def close(self) -> None:
        pass

    def release_conn(self) -> None:
        pass


class DirectHttp:
    """Serves one user. `breaks` is asked before each call, as (method, path), and may raise or cut the answer."""

    def __init__(self, transfers: Transfers, user: str = "ann") -> None:
        self._transfers = transfers
        self._user = user
        self._lock = Lock()
        self.calls: list[str] = []
        self.breaks: Callable[[str, str], int | None] = lambda method, path: None
        self.digests = True

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
            return _json(self._transfers.list(found[1], prefix, None if cursor is None else str(cursor), limit))
        if found := re.fullmatch(r"/v1/jobs/([^/]*)/files/(.*)", path, re.DOTALL):
            return self._file(self._transfers.open(found[1], found[2]), headers or {}, breaks_after)
        raise PaddleCloudError(f"no such call: {method} {path}")

    def _file(self, opened: OpenFile, asked: Mapping[str, str], breaks_after: int | None) -> DirectAnswer:
        with opened.file:
            headers = {"etag": opened.etag}
            if self.digests and "Want-Repr-Digest" in asked:
                digest = hashlib.sha256(b"".join(opened.pieces())).digest()
                headers["repr-digest"] = f"sha-256=:{base64.b64encode(digest).decode()}:"
            start = 0
            if asked.get("If-Range") == opened.etag:
                start = int(asked["Range"].removeprefix("bytes=").removesuffix("-"))
            content = b"".join(opened.pieces(start))
        return DirectAnswer(206 if start else 200, content, headers, breaks_after)


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
