"""PFS calls of the Go client, both generations: `ls cp mkdir rm` by methods, offsets and MD5 sums of chunks.

Every answer is `{"err": text, "results": …}` with status 200, but for a chunk to be downloaded: a 200 that is not
multipart would make the client fall over.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated, Any
from urllib.parse import parse_qs, urlencode

from fastapi import APIRouter, Depends, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError, PaddleCloudError, UnauthenticatedError
from paddlecloud.model.pfs import Access, Area, Who, is_pattern
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import Called, declared_bytes
from paddlecloud.server.dialects.answers import FileAnswer, Frame
from paddlecloud.server.dialects.paddlecloud.multipart import Part, receive
from paddlecloud.server.dialects.paddlecloud.route import (
    LISTED,
    PIECE_BYTES,
    Caller,
    HeldList,
    HeldPiece,
    OldRoute,
    Sender,
    reading_object,
)
from paddlecloud.server.pages import PAGE
from paddlecloud.server.services import Services

BOUNDARY = "8d7b0e5709d756e21e971ff4d9ac3b20"
_CHUNK_BYTES = range(4096, 32 * 1024 * 1024 + 1)
_CHUNKS = 10_000
_JSON_BYTES = 2048
_FRAME_BYTES = 16 * 1024
Asked = Annotated[dict[str, Any], Depends(reading_object(_JSON_BYTES), scope="function")]
_EPOCH = datetime.fromtimestamp(0, UTC)


class PfsRoute(OldRoute):
    """Every error, but for a chunk to be downloaded, in a 200."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super(OldRoute, self).get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except UnauthenticatedError:
                return _results(None, "get username error:server error: 401 Unauthorized")
            except PaddleCloudError as error:
                return _results(None, error.message)

        return answer


class ChunkRoute(OldRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super(OldRoute, self).get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except PaddleCloudError as error:
                status = error.status if error.status in (401, 403, 404) or error.status >= 500 else 400
                return _results(None, error.message, status)

        return answer


router = APIRouter(route_class=PfsRoute, default_response_class=Response, include_in_schema=False)
chunk_router = APIRouter(route_class=ChunkRoute, default_response_class=Response, include_in_schema=False)


@router.get("/files")
@router.get("/files/")
def read_tree(_: HeldList, request: Request, caller: Caller, called: Called, method: str = "") -> Response:
    asked = request.query_params
    if method == "ls":
        return _results(_listed(called, caller.who, asked.getlist("arg"), recursive=asked.get("r") == "true"))
    if method == "stat":
        return _results(_attributes(called.pfs.stat(caller.who, asked.get("path", ""))))
    return _results(None, "", 405)


@router.post("/files")
@router.post("/files/")
def make_in_tree(caller: Sender, called: Called, asked: Asked) -> Response:
    if asked.get("method") == "mkdir":
        return _results(_make_folders(called, caller.who, _paths(asked)))
    if asked.get("method") == "touch":
        path, size = _path(asked), asked.get("filesize")
        if not isinstance(size, int):
            raise InvalidError("Bad Request: filesize must be a number", field="filesize")
        called.incoming.begin(caller.who, path, size)
        return _results({"path": path})
    return _results(None, "", 405)


@router.delete("/files")
@router.delete("/files/")
def remove_from_tree(caller: Sender, called: Called, asked: Asked) -> Response:
    if asked.get("method") != "rm":
        return _results(None, "", 405)
    removed = _remove(called, caller.who, _paths(asked), recursive=asked.get("r") is True)
    return _results(removed or None)


@router.get("/chunks")
async def describe_chunks(request: Request, caller: Sender, called: Called, method: str = "") -> Response:
    """The checksum of one chunk, or, for the first generation of clients, of all chunks of a file."""
    if method not in ("GetChunkMeta", "getchunkmeta"):
        return _results(None, "", 405)
    path, size = request.query_params.get("path", ""), _number(request.query_params.get("chunksize"), "chunksize")
    if size not in _CHUNK_BYTES:
        raise InvalidError("chunksize error", field="chunksize")
    async with called.shares.bodies.take(caller.user.name, size):
        if "offset" in request.query_params:
            offset = _number(request.query_params["offset"], "offset")
            return _results(await _in_turn(called, caller, _described, called, caller.who, path, offset, size))
        length = await _in_turn(called, caller, called.incoming.size, caller.who, path)
        if length > _CHUNKS * size:
            raise InvalidError(
                f"chunksize error: {path} has more than {_CHUNKS} chunks of {size} bytes: ask for larger ones, or for "
                "each by its offset",
                field="chunksize",
            )
        found = []
        for start in range(0, length, size):
            found.append(await _in_turn(called, caller, _described, called, caller.who, path, start, size))
            if await request.is_disconnected():
                raise ClientDisconnect
    return _results(found or None)


@router.post("/storage/chunks")
async def receive_chunk(request: Request, caller: Sender, called: Called) -> Response:
    """One part, whose filename says what it is: `chunksize=N&offset=O&path=…`."""
    limit = _CHUNK_BYTES[-1] + _FRAME_BYTES
    async with called.shares.bodies.take(caller.user.name, declared_bytes(request, limit)):
        content = bytearray()
        try:
            part = Part(request.headers.get("content-type", ""), content.extend)
            await receive(part, request, caller, called, limit=limit)
        except InvalidError as error:
            return _results(None, error.message, 400)
        asked = parse_qs(part.filename)
        path, offset = asked.get("path", [""])[0], _number(asked.get("offset", [""])[0], "offset")
        if _number(asked.get("chunksize", [""])[0], "chunksize") < len(content):
            raise InvalidError("chunksize error", field="chunksize")
        await _in_turn(called, caller, _fill, called, caller.who, path, offset, content)
    return _results(None)


@chunk_router.get("/storage/chunks")
def send_chunk(_: HeldPiece, request: Request, caller: Caller, called: Called) -> Response:
    asked = request.query_params
    size, offset = _number(asked.get("chunksize"), "chunksize"), _number(asked.get("offset"), "offset")
    path = asked.get("path", "")
    if not 0 < size <= _CHUNK_BYTES[-1]:
        raise InvalidError("chunksize error", field="chunksize")
    opened = called.pfs.open(caller.who, path)
    end = max(offset, min(offset + size, opened.entry.size))
    frame = _frame({"chunksize": str(end - offset), "offset": str(offset), "path": path})
    return FileAnswer(opened, offset, end, piece_bytes=PIECE_BYTES, frame=frame)


async def _in_turn(called: Services, caller: Identity, act: Callable[..., Any], *given: object) -> Any:
    async with called.shares.turns.take(caller.user.name):
        return await run_in_threadpool(act, *given)


def _fill(called: Services, who: Who, path: str, offset: int, content: bytearray) -> None:
    called.incoming.fill(who, path, offset, bytes(content))


def _listed(called: Services, who: Who, wanted: Sequence[str], *, recursive: bool) -> list[dict[str, Any]]:
    """What matches each path: files as they are, folders as what is in them."""
    found: list[FileEntry] = []
    for path in dict.fromkeys(wanted):
        matched = called.pfs.glob(who, path)
        if not matched:
            raise NotFoundError("no such file or directory", field="path")
        for entry in matched:
            inside = _inside(called, who, entry, recursive=recursive) if entry.kind is Kind.FOLDER else [entry]
            found += islice(inside, LISTED + 1 - len(found))
            if len(found) > LISTED:
                raise InvalidError(f"there are more than {LISTED} files: name fewer folders", field="path")
    return [_attributes(entry) for entry in found]


def _inside(called: Services, who: Who, folder: FileEntry, *, recursive: bool) -> Iterator[FileEntry]:
    find = called.pfs.walk if recursive else called.pfs.list
    cursor: str | None = None
    while True:
        page = find(who, folder.path, cursor=cursor, limit=PAGE)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def _attributes(entry: FileEntry) -> dict[str, Any]:
    return {
        "Path": entry.path,
        "ModTime": (entry.modified_at - _EPOCH) // timedelta(microseconds=1) * 1000,
        "Size": entry.size,
        "IsDir": entry.kind is Kind.FOLDER,
    }


def _make_folders(called: Services, who: Who, wanted: Sequence[str]) -> list[dict[str, str]]:
    for path in wanted:
        called.pfs.make_folder(who, path)
    return [{"path": path} for path in wanted]


def _remove(called: Services, who: Who, wanted: Sequence[str], *, recursive: bool) -> list[dict[str, str]]:
    """What no path matches is no error; before anything goes, all of it may."""
    found: dict[str, None] = {}
    for path in wanted:
        for entry in _matched(called, who, path):
            called.pfs.locate(who, entry.path, Access.WRITE)
            if entry.kind is Kind.FOLDER and not recursive:
                raise ConflictError(f"can't del directory:{entry.path}")
            found[entry.path] = None
    for path in found:
        with suppress(NotFoundError):  # it went with a folder that was named too
            called.pfs.remove(who, path, recursive=recursive)
    return [{"path": path} for path in found]


def _matched(called: Services, who: Who, path: str) -> Sequence[FileEntry]:
    """What a path to remove means: a pattern never means what jobs left, which only they write."""
    try:
        matched = called.pfs.glob(who, path, Access.WRITE)
    except NotFoundError:
        return ()
    if not is_pattern(path):
        return matched
    return [entry for entry in matched if called.pfs.locate(who, entry.path, Access.READ).area is not Area.OUTPUT]


def _described(called: Services, who: Who, path: str, offset: int, size: int) -> dict[str, Any]:
    """A chunk that is still to be sent has the checksum of nothing, which the client's differs from."""
    content = called.incoming.chunk(who, path, offset, offset + size) or b""
    return {
        "offset": offset,
        "checksum": hashlib.md5(content, usedforsecurity=False).hexdigest(),
        "len": len(content),
    }


def _frame(about: Mapping[str, str]) -> Frame:
    head = (
        f"--{BOUNDARY}\r\n"
        f'Content-Disposition: form-data; name="chunk"; filename="{urlencode(about)}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return Frame(head=head.encode(), tail=f"\r\n--{BOUNDARY}--\r\n".encode())


def _results(found: object, error: str = "", status: int = 200) -> Response:
    body = json.dumps({"err": error, "results": found}, ensure_ascii=False) + "\n"
    return Response(body, status, media_type="application/json; charset=UTF-8")


def _paths(asked: Mapping[str, Any]) -> Sequence[str]:
    found = asked.get("path")
    if not isinstance(found, list) or not found or not all(isinstance(path, str) for path in found):
        raise InvalidError("Bad Request: path must be a list of paths", field="path")
    return found


def _path(asked: Mapping[str, Any]) -> str:
    found = asked.get("path")
    if not isinstance(found, str):
        raise InvalidError("Bad Request: path must be a text", field="path")
    return found


def _number(given: str | None, name: str) -> int:
    if given is None or not given.isascii() or not given.isdigit() or len(given) > 15:
        raise InvalidError(f"Bad Request: {name} must be a number", field=name)
    return int(given)
