"""CREATE and APPEND: two requests each, of which the second brings the bytes, to the disk as they come.

A file is seen by nobody until all of it is here: what breaks off leaves what was there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, AsyncExitStack
from urllib.parse import quote

from fastapi import Response
from fastapi.concurrency import contextmanager_in_threadpool
from msgspec.structs import replace

from paddlecloud.model import hdfspath, paths
from paddlecloud.model.attributes import Attributes
from paddlecloud.model.errors import ConflictError
from paddlecloud.model.pfs import Access
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.caller import body_pieces
from paddlecloud.server.dialects.webhdfs import errors
from paddlecloud.server.dialects.webhdfs.call import BYTES, Call, json_answer
from paddlecloud.server.dialects.webhdfs.errors import HdfsError
from paddlecloud.server.dialects.webhdfs.query import DATA
from paddlecloud.server.incoming import Arriving

_GATHERED_BYTES = 1024 * 1024
_MOST_COPIES = 32767


async def create(call: Call) -> Response:
    attributes, overwrite = _asked(call), call.query.flag("overwrite")
    await call.in_turn(_check_new, call, overwrite=overwrite)
    if not call.query.flag(DATA):
        return _sent_on(call)
    path = call.to_change(call.spot)

    def finish(arriving: Arriving) -> None:
        try:
            written = arriving.finish(lambda: _check_new(call, overwrite=overwrite))
        except ConflictError as error:
            raise HdfsError("ParentNotDirectoryException", error.message) from None
        if attributes is not None:
            call.services.attributes.say(call.services.pfs.locate(call.who, path, Access.READ), written, attributes)

    await _receive(call, call.services.incoming.whole(call.who, path), finish)
    made = f"hdfs://{call.host()}{quote(paths.raw_of(call.spot.path))}"
    return Response(b"", 201, {"Location": made}, BYTES)


async def append(call: Call) -> Response:
    entry = await call.in_turn(_check_there, call)
    if not call.query.flag(DATA):
        return _sent_on(call)
    path, said = call.to_change(call.spot), await call.in_turn(call.said, entry)

    def finish(arriving: Arriving) -> None:
        written = arriving.finish()
        if said != Attributes():
            place = call.services.pfs.locate(call.who, path, Access.READ)
            call.services.attributes.say(place, written, replace(said, modified_ms=None))

    try:
        await _receive(call, call.services.incoming.longer(call.who, path), finish)
    except ConflictError as error:
        raise HdfsError("AlreadyBeingCreatedException", error.message) from None
    return Response(b"", 200, media_type=BYTES)


def _asked(call: Call) -> Attributes | None:
    """What the new file is said to be; None: nothing is."""
    query = call.query
    asked = Attributes(
        permission=query.permission(),
        replication=query.number("replication", least=1, most=_MOST_COPIES),
        block_bytes=query.number("blocksize", least=1),
    )
    query.number("buffersize", least=1)
    return asked if asked != Attributes() else None


def _check_new(call: Call, *, overwrite: bool) -> None:
    """Raise unless a file may be made here: asked before the first byte, and before it is put in its place."""
    spot = call.spot
    call.services.pfs.locate(call.who, call.to_change(spot), Access.WRITE)
    there = call.look(spot)
    if there is not None and there.kind is Kind.FOLDER:
        raise HdfsError("FileAlreadyExistsException", f"{spot.path} already exists as a directory")
    if there is not None and not overwrite:
        address = call.request.client.host if call.request.client else "-"
        raise HdfsError("FileAlreadyExistsException", f"{spot.path} for client {address} already exists")
    if there is None:
        _check_above(call, spot.path)


def _check_above(call: Call, path: str) -> None:
    while (path := hdfspath.parent(path)) != "/":
        above = call.look(call.locate(path))
        if above is not None and above.kind is not Kind.FOLDER:
            raise HdfsError("ParentNotDirectoryException", f"{path} (is not a directory)")
        if above is not None:
            return


def _check_there(call: Call) -> FileEntry:
    call.services.pfs.locate(call.who, call.to_change(call.spot), Access.WRITE)
    there = call.look(call.spot)
    if there is None:
        raise errors.not_found(call.spot.path)
    if there.kind is Kind.FOLDER:
        raise HdfsError(
            "FileAlreadyExistsException",
            f"Cannot append to directory {call.spot.path}; already exists as a directory.",
        )
    return there


def _sent_on(call: Call) -> Response:
    if call.query.flag("noredirect"):
        return json_answer({"Location": call.location()})
    return Response(b"", 307, {"Location": call.location()}, BYTES)


async def _receive(call: Call, arriving: AbstractContextManager[Arriving], finish: Callable[[Arriving], None]) -> None:
    """The body, a piece at a time, each in a turn of the caller's; it is there when this returns, or nothing is."""
    shares = call.services.shares
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(shares.bodies.take(call.user, 2 * _GATHERED_BYTES))
        async with shares.turns.take(call.user):
            opened = await stack.enter_async_context(contextmanager_in_threadpool(arriving))
        async for piece in _gathered(body_pieces(call.request)):
            await call.in_turn(opened.take, piece)
        # It may have come for hours: who was shut out meanwhile has nothing kept.
        await call.services.hdfs_callers.recheck(call.claim)
        await call.in_turn(finish, opened)


async def _gathered(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in fewer pieces: each costs a thread's attention."""
    gathered = bytearray()
    async for piece in pieces:
        gathered += piece
        if len(gathered) >= _GATHERED_BYTES:
            yield bytes(gathered)
            gathered.clear()
    if gathered:
        yield bytes(gathered)
