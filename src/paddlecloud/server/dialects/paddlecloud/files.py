"""`file put | get | ls` and `publish` of the Go client: whole files, by their paths."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Annotated, Any
from urllib.parse import quote

from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool
from starlette.concurrency import run_in_threadpool

from paddlecloud.files.base import StoredFile
from paddlecloud.model.audit import Action
from paddlecloud.model.errors import InvalidError, NotFoundError, PaddleCloudError
from paddlecloud.model.pfs import Access, Who
from paddlecloud.model.tree import Kind
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import Called, FromWhere
from paddlecloud.server.dialects.answers import FileAnswer
from paddlecloud.server.dialects.paddlecloud.multipart import Part, receive
from paddlecloud.server.dialects.paddlecloud.route import (
    LISTED,
    PIECE_BYTES,
    Caller,
    HeldList,
    HeldPiece,
    OldRoute,
    Sender,
    Sent,
    json_answer,
    said,
)
from paddlecloud.server.pages import PAGE
from paddlecloud.server.services import Services

router = APIRouter(route_class=OldRoute, default_response_class=Response, include_in_schema=False)

_STRANGERS_PIECE_BYTES = 256 * 1024  # what is held for somebody who has no share to take it out of


@router.post("/api/v1/file/")
async def put_file(request: Request, caller: Sender, called: Called, path: str = "") -> Response:
    """The body is written to the disk as it comes: the client sends files of any size in one piece."""
    if not path:
        return json_answer({"msg": "must specify path"})
    try:
        await _receive(request, caller, called, path)
    except PaddleCloudError as error:
        if error.status >= 500:
            raise
        return said(500, error.message)
    return said(200, "")


async def _receive(request: Request, caller: Identity, called: Services, path: str) -> None:
    turns, user = called.shares.turns, caller.user.name
    async with AsyncExitStack() as stack:
        async with turns.take(user):
            opening = contextmanager_in_threadpool(called.incoming.whole(caller.who, path))
            arriving = await stack.enter_async_context(opening)
        part = Part(request.headers.get("content-type", ""), arriving.take)
        await receive(part, request, caller, called)
        async with turns.take(user):
            await run_in_threadpool(arriving.finish)


@router.get("/api/v1/file/")
def get_file(_: HeldPiece, caller: Caller, called: Called, path: str = "") -> Response:
    """A missing file is a 404: with a 200 the client would keep the error as its file."""
    try:
        opened = called.pfs.open(caller.who, path)
    except PaddleCloudError as error:
        return json_answer({"msg": error.message}, 403 if error.status == 403 else 404)
    return _download(opened, PIECE_BYTES)


@router.get("/api/v1/filelist/")
def list_files(_: HeldList, caller: Caller, called: Called, path: str = "") -> Response:
    """The datacenter (`dc`) that clients send too stands in the path already."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        try:
            page = called.pfs.list(caller.who, path, cursor=cursor, limit=PAGE)
        except PaddleCloudError as error:
            message = "dir not exist" if isinstance(error, NotFoundError) and not cursor else error.message
            return json_answer({"code": 500, "items": [], "msg": f"{message}: {path}"})
        names += [entry.path.rpartition("/")[2] for entry in page.items]
        cursor = page.next_cursor
        if len(names) > LISTED:
            return json_answer({"code": 500, "items": [], "msg": f"more than {LISTED} files: {path}"})
        if cursor is None:
            return json_answer({"code": 200, "items": names, "msg": ""})


@router.post("/api/v1/publish/")
def publish(request: Request, caller: Sender, called: Called, origin: FromWhere, sent: Sent) -> Response:
    """Let anybody who has the address read one file of the caller's."""
    found = called.pfs.to_publish(caller.who, _path(sent))
    if found.kind is not Kind.FILE:
        return said(500, f"{found.path} is not a file: only a file can be published")
    user = caller.user.name
    with called.audit.beside(Action.FILE_PUBLISH, origin, user=user, target=found.path):
        published = called.publications.publish(user, found.path)
    return json_answer({"code": 200, "msg": "", "url": _address(request, published.uuid)})


@router.delete("/api/v1/publish/")
def unpublish(caller: Sender, called: Called, origin: FromWhere, sent: Sent) -> Response:
    """The file itself may be gone, and its datacenter too."""
    user, path = caller.user.name, _path(sent)
    try:
        path = called.pfs.locate(caller.who, path, Access.READ).path
    except NotFoundError:
        pass
    with called.audit.beside(Action.FILE_UNPUBLISH, origin, user=user, target=path):
        called.publications.unpublish(user, path)
    return said(200, "")


@router.get("/api/v1/publish/")
def list_published(request: Request, caller: Caller, called: Called) -> Response:
    found: list[dict[str, Any]] = [
        {"path": one.path, "url": _address(request, one.uuid)} for one in called.publications.list(caller.user.name)
    ]
    return json_answer({"code": 200, "items": found, "msg": ""})


async def _stranger(called: Called, origin: FromWhere) -> AsyncIterator[None]:
    with called.publications.reader(origin.address):
        yield


@router.get("/filepub/")
async def get_published(
    _: Annotated[None, Depends(_stranger, scope="request")], called: Called, uuid: str = ""
) -> Response:
    """A file that its owner has published, as it is now; nobody has to say who they are."""
    threads = called.publications.threads
    try:
        opened = await to_thread.run_sync(_open_published, called, uuid, limiter=threads)
    except PaddleCloudError:
        return json_answer({"msg": "there is no such file, or it is not published any more"}, 404)
    return _download(opened, _STRANGERS_PIECE_BYTES, threads)


def _open_published(called: Services, uuid: str) -> StoredFile:
    found = called.publications.find(uuid)
    return called.pfs.open(Who(user=found.user), found.path)


def _download(opened: StoredFile, piece_bytes: int, threads: CapacityLimiter | None = None) -> Response:
    name = quote(opened.entry.path.rpartition("/")[2])
    return FileAnswer(
        opened,
        0,
        opened.entry.size,
        piece_bytes=piece_bytes,
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
            "X-Content-Type-Options": "nosniff",
        },
        media="application/force-download",
        threads=threads,
    )


def _path(sent: dict[str, Any]) -> str:
    found = sent.get("path", "")
    if not isinstance(found, str):
        raise InvalidError("path must be a text", field="path")
    return found


def _address(request: Request, uuid: str) -> str:
    return f"{request.url.scheme}://{request.url.netloc}/filepub/?uuid={uuid}"
