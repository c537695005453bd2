"""One call as its operation sees it: who asks, by which path, with which parameters, and the files as they see them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar
from urllib.parse import quote

import msgspec
from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from paddlecloud.model import hdfspath, paths
from paddlecloud.model.attributes import Attributes
from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.hdfspath import Spot, View
from paddlecloud.model.pfs import Access, Area, Place, Who
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.auth import Identity
from paddlecloud.server.dialects.webhdfs import errors, shapes
from paddlecloud.server.dialects.webhdfs.errors import HdfsError
from paddlecloud.server.dialects.webhdfs.query import Query
from paddlecloud.server.hdfs_callers import Claim
from paddlecloud.server.inodes import number_of
from paddlecloud.server.pages import PAGE
from paddlecloud.server.services import Services

P = ParamSpec("P")
T = TypeVar("T")

JSON = "application/json"
BYTES = "application/octet-stream"
_HOST = re.compile(r"[A-Za-z0-9._\-:\[\]]{1,255}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`prefix` is what stands before the path in this very address, the secret and all."""

    request: Request
    services: Services
    identity: Identity
    claim: Claim
    query: Query
    prefix: str
    spot: Spot
    view: View

    @property
    def user(self) -> str:
        return self.identity.user.name

    @property
    def who(self) -> Who:
        return self.identity.who

    async def in_turn(self, act: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What reads or writes, in a thread, when it is the caller's turn."""
        async with self.services.shares.turns.take(self.user):
            return await run_in_threadpool(partial(act, *args, **kwargs))

    def locate(self, path: str) -> Spot:
        return hdfspath.locate(path, self.view)

    def look(self, spot: Spot) -> FileEntry | None:
        """What is at a path; None: nothing."""
        if spot.above:
            return self._folder_above(spot.path)
        try:
            found = self.services.pfs.stat(self.who, self.path_of(spot))
        except NotFoundError:
            return None
        return found if spot.inode in (None, number_of(found)) else None

    def found(self, spot: Spot) -> FileEntry:
        entry = self.look(spot)
        if entry is None:
            raise errors.missing(spot.path)
        return entry

    def path_of(self, spot: Spot) -> str:
        """The path of the PFS; NotFoundError where there is none."""
        if spot.inode is not None:
            return self.services.inodes.path(self.user, spot.inode)
        if not spot.pfs:
            raise NotFoundError(f"File does not exist: {spot.path}", field="path")
        return spot.pfs

    def to_change(self, spot: Spot) -> str:
        """The path of the PFS of what is to be made, moved or removed; who may is settled by the PFS."""
        if spot.above or not spot.pfs:
            raise HdfsError(
                "AccessControlException",
                f'Permission denied: user={self.user}, access=WRITE, inode="{spot.path}": '
                f"use {hdfspath.home(self.view)}, or a folder that an operator shares with you",
            )
        return spot.pfs

    def children(self, spot: Spot) -> Iterator[tuple[str, FileEntry]]:
        """What is in a folder, with its names; a file is itself, without one."""
        if spot.above:
            for name in hdfspath.above(spot.path, self.view):
                entry = self.look(self.locate(hdfspath.joined(spot.path, name)))
                if entry is not None:
                    yield name, entry
            return
        path, cursor = self.path_of(spot), None
        itself = self.services.pfs.locate(self.who, path, Access.READ).path
        while True:
            page = self.services.pfs.list(self.who, path, cursor=cursor, limit=PAGE)
            for entry in page.items:
                yield "" if entry.path == itself else entry.path.rpartition("/")[2], entry
            cursor = page.next_cursor
            if cursor is None:
                return

    def said(self, entry: FileEntry) -> Attributes:
        return self.services.attributes.of(entry)

    def to_say(self, spot: Spot) -> tuple[Place, FileEntry]:
        """A place that the caller may say something about, and what is there: who may write in it may."""
        entry, path = self.found(spot), self.to_change(spot)
        place = self.services.pfs.locate(self.who, path, Access.READ)
        inside = f"{path}/x" if not place.below and place.area is not Area.ABOVE else path
        self.services.pfs.locate(self.who, inside, Access.WRITE)
        return place, entry

    def location(self) -> str:
        """Where the second of two requests goes: to the very host that the first was sent to."""
        return (
            f"{self._scheme()}://{self.host()}{self.prefix}{quote(paths.raw_of(self.spot.path))}?{self.query.again()}"
        )

    def host(self) -> str:
        given = self.request.headers.get("host", "")
        if _HOST.fullmatch(given):
            return given
        host, port = self.request.scope.get("server") or ("localhost", None)
        host = f"[{host}]" if ":" in host else host
        return f"{host}:{port}" if port else host

    def _scheme(self) -> str:
        """As a proxy in front of the server says, which may be where the encryption ends."""
        told = self.request.headers.get("x-forwarded-proto", "")
        return told if told in ("http", "https") else self.request.url.scheme

    def _folder_above(self, path: str) -> FileEntry:
        return FileEntry(path=path, size=0, modified_at=shapes.EPOCH, kind=Kind.FOLDER)


def json_answer(value: object, status: int = 200) -> Response:
    try:
        # Ten times as fast as Python's own, beside which nobody else is answered.
        body = msgspec.json.encode(value)
    except UnicodeEncodeError:
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(body, status, media_type=JSON)


def boolean(value: bool) -> Response:
    return json_answer({"boolean": value})


def nothing() -> Response:
    return Response(b"", 200, media_type=BYTES)


class Holding(Response):
    """An answer that gives back what was held for it when its last byte is sent."""

    def __init__(self, answer: Response, held: AsyncExitStack) -> None:
        super().__init__(status_code=answer.status_code)
        self._answer = answer
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await self._answer(scope, receive, send)
