"""Routes of the PFS: `/v1/files/pfs/…` are bytes, `/v1/folders/pfs/…` what is in folders."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from paddlecloud.model import tree, wire
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.transfers import (
    CopyReport,
    CopyRequest,
    Datacenter,
    FileEntry,
    FilePage,
    FilePlan,
    FileRequest,
    FolderRequest,
    MoveRequest,
    Packed,
    PackRequest,
    RoomRequest,
)
from paddlecloud.server.caller import (
    Called,
    Caller,
    ChunkBody,
    JsonBody,
    ManifestBody,
    PackBody,
    Sender,
    known_parameters,
)
from paddlecloud.server.openapi import BYTES, says
from paddlecloud.server.rest.answers import answer, done, made_of
from paddlecloud.server.rest.copying import LINES, told
from paddlecloud.server.rest.ranges import Digest, send

router = APIRouter(
    prefix="/v1", tags=["pfs"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)

Recursive = Annotated[bool, Query(description="With all that is below.")]


@router.get("/datacenters", openapi_extra=says(list[Datacenter]))
def list_datacenters(caller: Caller, called: Called) -> Response:
    """The datacenters whose names may stand in a path, the first being the one with the results of jobs."""
    return answer(called.pfs.describe(caller.user.name))


@router.get("/folders/{path:any_path}", openapi_extra=says(FilePage, errors=(403, 404)))
def list_folder(
    path: str,
    caller: Caller,
    called: Called,
    recursive: Recursive = False,
    cursor: Annotated[str | None, Query(description="The next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """What is in a folder of the PFS, by name, or all below it; a file is listed itself."""
    find = called.pfs.walk if recursive else called.pfs.list
    return answer(find(caller.who, _absolute(path), cursor=cursor, limit=limit))


@router.get("/matches/{path:any_path}", openapi_extra=says(FilePage, errors=(403, 404)))
def match_files(path: str, caller: Caller, called: Called) -> Response:
    """What a pattern such as /pfs/local/home/you/part-* means; a path without one means itself."""
    return answer(FilePage(items=tuple(called.pfs.glob(caller.who, _absolute(path)))))


@router.post("/folders", openapi_extra=says(FileEntry, body=FolderRequest, errors=(403, 409, 507)))
def make_folder(caller: Sender, called: Called, body: JsonBody) -> Response:
    """Make a folder, and those above it; one that is there stays as it is."""
    return answer(called.pfs.make_folder(caller.who, wire.decode(FolderRequest, body).path))


@router.get("/files/{path:any_path}", openapi_extra=says(bytes, media=BYTES, errors=(403, 404, 409, 412, 416)))
def read_file(path: str, request: Request, caller: Caller, called: Called) -> Response:
    """A file; takes Range, If-Match, If-None-Match, If-Range, Want-Repr-Digest and Want-Content-Digest."""
    opened = called.pfs.open(caller.who, _absolute(path))
    return send(request, opened, Digest(called.shares, caller.user.name))


@router.put(
    "/files/{path:any_path}",
    openapi_extra=says(FileEntry, body=bytes, body_media=BYTES, errors=(403, 409, 413, 507)),
)
def write_file(path: str, caller: Sender, called: Called, body: ChunkBody) -> Response:
    """Make or replace a file of at most 8 MiB; a larger one begins with POST /v1/drafts."""
    return answer(called.pfs.write(caller.who, _absolute(path), [body], size=len(body)))


@router.delete("/files/{path:any_path}", status_code=204, openapi_extra=says(status=204, errors=(403, 404, 409)))
def remove_file(path: str, caller: Caller, called: Called, recursive: Recursive = False) -> Response:
    """Remove a file; a folder only if recursive. What an ended job left goes as a whole, by its folder in `output`."""
    called.pfs.remove(caller.who, _absolute(path), recursive=recursive)
    return done()


@router.post("/moves", openapi_extra=says(FileEntry, body=MoveRequest, errors=(403, 404, 409)))
def move_file(caller: Sender, called: Called, body: JsonBody) -> Response:
    """Rename a file or a folder within a datacenter."""
    asked = wire.decode(MoveRequest, body)
    return answer(called.pfs.move(caller.who, asked.source, asked.target))


@router.post("/copies", openapi_extra=says(CopyReport, media=LINES, body=CopyRequest, errors=(403, 409, 413)))
def copy_files(caller: Sender, called: Called, body: PackBody) -> Response:
    """Copy files within the PFS, each to its very target. Answered by a line of JSON each second until the last one,
    which says so, and what error ended it if not all were copied: those that are counted are there."""
    copying = called.copies.begin(caller.who, wire.decode(CopyRequest, body).files)
    return told(copying, called.shares, caller.user.name)


@router.post("/room", status_code=204, openapi_extra=says(status=204, body=RoomRequest, errors=(403, 507)))
def check_room(caller: Sender, called: Called, body: JsonBody) -> Response:
    """Whether so many bytes more may be kept at a path, asked before the first of them is sent."""
    asked = wire.decode(RoomRequest, body)
    called.pfs.check_space(caller.who, asked.path, asked.size)
    return done()


@router.post("/packs", status_code=204, openapi_extra=says(status=204, body=bytes, body_media=BYTES, errors=(403, 507)))
def write_files(caller: Sender, called: Called, body: PackBody) -> Response:
    """Make or replace many small files: framed as /v1/chunks takes them, the first frame being their paths as JSON."""
    called.pfs.write_all(caller.who, _unpacked(body))
    return done()


@router.post("/packs/read", openapi_extra=says(bytes, media=BYTES, body=PackRequest, errors=(403, 413)))
def read_files(caller: Sender, called: Called, body: PackBody) -> Response:
    """Many small files, in the order asked for, as /v1/chunks takes them; one that is not there, or is too large for a
    pack, has a SHA-256 of zeros and no bytes."""
    pieces = called.pfs.pack(caller.who, wire.decode(PackRequest, body).paths)
    return made_of(pieces, called.shares, caller.user.name)


@router.post("/drafts", openapi_extra=says(FilePlan, body=FileRequest, errors=(403, 409, 507)))
def begin_file(caller: Sender, called: Called, body: ManifestBody) -> Response:
    """What is missing of a large file; with nothing missing it is there."""
    asked = wire.decode(FileRequest, body)
    missing = called.incoming.plan(caller.who, asked.path, asked.size, asked.chunks)
    return answer(FilePlan(missing=tuple(missing)))


@router.put(
    "/drafts/{path:any_path}",
    status_code=204,
    openapi_extra=says(status=204, body=bytes, body_media=BYTES, errors=(403, 404, 507)),
)
def fill_file(
    path: str,
    caller: Sender,
    called: Called,
    body: ChunkBody,
    offset: Annotated[int, Query(ge=0, description="Where in the file the body belongs.")],
) -> Response:
    """A piece of a large file that was begun; with the last one it is there, whole."""
    called.incoming.fill(caller.who, _absolute(path), offset, body)
    return done()


def _absolute(path: str) -> str:
    return f"/{path}"


def _unpacked(body: bytes) -> Sequence[tuple[str, bytes]]:
    frames = tree.unpack(body)
    if any(hashlib.sha256(content).hexdigest() != digest for digest, content in frames):
        raise InvalidError("a part of the pack does not have its SHA-256: send it again", field="body")
    if not frames:
        raise InvalidError("the pack is empty: its first part must be the paths", field="body")
    paths = wire.decode(Packed, frames[0][1]).paths
    if len(paths) != len(frames) - 1:
        raise InvalidError(f"the pack has {len(paths)} paths for {len(frames) - 1} files", field="body")
    return list(zip(paths, (content for _, content in frames[1:]), strict=True))
