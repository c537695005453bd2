"""Operations that only read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import islice

from anyio import to_thread
from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from paddlecloud.files.base import StoredFile
from paddlecloud.model import hdfspath, pfs
from paddlecloud.model.attributes import NOTHING_SAID
from paddlecloud.model.errors import ConflictError, InvalidError, NotFoundError
from paddlecloud.model.hdfspath import Spot
from paddlecloud.model.transfers import FileEntry
from paddlecloud.model.tree import Kind
from paddlecloud.server.dialects.answers import FileAnswer
from paddlecloud.server.dialects.webhdfs import errors, shapes
from paddlecloud.server.dialects.webhdfs.call import BYTES, Call, Holding, json_answer, nothing
from paddlecloud.server.dialects.webhdfs.checksum import FileChecksum
from paddlecloud.server.dialects.webhdfs.errors import HdfsError
from paddlecloud.server.pages import PAGE

PIECE_BYTES = 1024 * 1024
LISTED = 100_000
_LIST_BYTES = 48 * 1024 * 1024  # about what that many files are in an answer
_HASHED_BYTES = 8 * 1024 * 1024


async def open_file(call: Call) -> Response:
    """The bytes at once: no client needs to be sent elsewhere for them."""
    offset, length = call.query.number("offset") or 0, call.query.number("length")
    held = AsyncExitStack()
    await held.enter_async_context(call.services.shares.bodies.take(call.user, 2 * PIECE_BYTES))
    try:
        opened = await call.in_turn(_open, call)
        try:
            size = opened.entry.size
            _check_offset(call, offset, size)
        except BaseException:
            opened.close()
            raise
    except BaseException:
        await held.aclose()
        raise
    end = size if length is None else min(size, offset + length)
    return Holding(FileAnswer(opened, offset, end, piece_bytes=PIECE_BYTES, media=BYTES), held)


def _check_offset(call: Call, offset: int, size: int) -> None:
    if offset > size == 0:
        raise HdfsError("EOFException", "Cannot seek after EOF")
    if offset >= size > 0:
        raise HdfsError("IOException", f"Offset={offset} out of the range [0, {size}); OPEN, path={call.spot.path}")


def _open(call: Call) -> StoredFile:
    spot, files = call.spot, call.services.pfs
    if spot.above:
        raise _no_file(spot)
    try:
        if spot.inode is not None:
            return call.services.inodes.open(call.user, spot.inode, lambda path: files.open(call.who, path))
        return files.open(call.who, call.path_of(spot))
    except NotFoundError:
        raise errors.not_found(spot.path) from None
    except ConflictError:
        raise _no_file(spot) from None


def _no_file(spot: Spot) -> HdfsError:
    return HdfsError("FileNotFoundException", f"Path is not a file: {spot.path}")


async def get_status(call: Call) -> Response:
    return json_answer({"FileStatus": await call.in_turn(_status, call)})


def _status(call: Call) -> dict[str, object]:
    entry = call.found(call.spot)
    if entry.kind is Kind.FILE:
        call.services.inodes.note(call.user, entry)
    return shapes.status(entry, call.said(entry))


async def list_status(call: Call) -> Response:
    held = AsyncExitStack()
    await held.enter_async_context(call.services.shares.bodies.take(call.user, _LIST_BYTES))
    try:
        answer = await call.in_turn(lambda: json_answer({"FileStatuses": {"FileStatus": _listed(call)}}))
    except BaseException:
        await held.aclose()
        raise
    return Holding(answer, held)


def _listed(call: Call) -> list[dict[str, object]]:
    try:
        children = list(islice(call.children(call.spot), LISTED + 1))
    except NotFoundError:
        raise HdfsError("FileNotFoundException", f"File {call.spot.path} does not exist.") from None
    if len(children) > LISTED:
        raise HdfsError(
            "IOException", f"{call.spot.path} has more than {LISTED} files in it: list its folders one by one"
        )
    if children and not children[0][0]:
        return [shapes.status(entry, call.said(entry)) for _, entry in children]
    if call.spot.above:
        return [shapes.status(entry, call.said(entry), name) for name, entry in children]
    said = call.services.attributes.of_all(_folder_of(children), [entry for _, entry in children])
    return [shapes.status(entry, said.get(entry.path, NOTHING_SAID), name) for name, entry in children]


def _folder_of(children: Sequence[tuple[str, FileEntry]]) -> str:
    return children[0][1].path.rpartition("/")[0] if children else ""


async def get_summary(call: Call) -> Response:
    """Counted page by page, so that others have their turns in between, and it ends with who asked for it."""
    counted = _Counted()
    top = await call.in_turn(call.found, call.spot)
    if top.kind is not Kind.FOLDER:
        counted.add(top)
    elif call.spot.above:
        await _count_above(call, call.spot, counted)
    else:
        await _count(call, call.path_of(call.spot), counted)
    told = shapes.summary(folders=counted.folders, files=counted.files, length=counted.length)
    return json_answer({"ContentSummary": told})


@dataclass(slots=True)
class _Counted:
    folders: int = 0
    files: int = 0
    length: int = 0

    def add(self, entry: FileEntry) -> None:
        if entry.kind is Kind.FOLDER:
            self.folders += 1
        else:
            self.files += 1
            self.length += entry.size


async def _count_above(call: Call, spot: Spot, counted: _Counted) -> None:
    """Each file once, by whichever of its names."""
    counted.folders += 1
    tops = {hdfspath.named(found.pfs, call.view): found.pfs for found in _below(call, spot) if found.pfs}
    for path in tops.values():
        await _count(call, path, counted)


def _below(call: Call, spot: Spot) -> Iterator[Spot]:
    for name in hdfspath.above(spot.path, call.view):
        found = call.locate(hdfspath.joined(spot.path, name))
        if found.above:
            yield from _below(call, found)
        elif name != pfs.ROOT:
            yield found


async def _count(call: Call, path: str, counted: _Counted) -> None:
    counted.folders += 1
    cursor: str | None = None
    while True:
        try:
            page = await call.in_turn(call.services.pfs.walk, call.who, path, cursor=cursor, limit=PAGE)
        except InvalidError:
            for entry in (await call.in_turn(call.services.pfs.list, call.who, path, limit=PAGE)).items:
                await _count(call, entry.path, counted)
            return
        for entry in page.items:
            counted.add(entry)
        cursor = page.next_cursor
        if cursor is None:
            return
        await _check_there(call.request)


async def get_checksum(call: Call) -> Response:
    shares = call.services.shares
    opened = await call.in_turn(_open, call)
    checksum, at = FileChecksum(), 0
    try:
        async with shares.digests.take(call.user):
            while at < opened.entry.size:
                end = min(at + _HASHED_BYTES, opened.entry.size)
                await to_thread.run_sync(_digest, checksum, opened, at, end, limiter=shares.hashing)
                at = end
                await _check_there(call.request)
    finally:
        opened.close()
    return json_answer({"FileChecksum": checksum.result()})


def _digest(checksum: FileChecksum, opened: StoredFile, start: int, end: int) -> None:
    piece = opened.read(start, end)
    if len(piece) != end - start:
        raise HdfsError("IOException", "the file became shorter while it was read: ask again")
    checksum.update(piece)


async def _check_there(request: Request) -> None:
    if await request.is_disconnected():
        raise ClientDisconnect


async def get_acl(call: Call) -> Response:
    return json_answer({"AclStatus": await call.in_turn(_acl, call)})


def _acl(call: Call) -> dict[str, object]:
    entry = call.found(call.spot)
    return shapes.acl_status(entry, call.said(entry))


async def check_access(call: Call) -> Response:
    """Whether it is there, and the caller may see it: which bits were set decides nothing."""
    await call.in_turn(call.found, call.spot)
    return nothing()


async def get_home(call: Call) -> Response:
    return json_answer({"Path": hdfspath.home(call.view)})


async def get_trash(call: Call) -> Response:
    return json_answer({"Path": hdfspath.joined(hdfspath.home(call.view), hdfspath.TRASH)})
