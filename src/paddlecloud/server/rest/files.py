"""Routes about bytes: folders on their way in, results and raw logs on their way out."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from paddlecloud.model import paths, wire
from paddlecloud.model.transfers import FilePage, PackRequest, UploadPlan
from paddlecloud.model.tree import Manifest
from paddlecloud.server.caller import Called, Caller, ChunkBody, ManifestBody, PackBody, Sender, known_parameters
from paddlecloud.server.openapi import BYTES, TEXT, says
from paddlecloud.server.rest.answers import answer, done, made_of
from paddlecloud.server.rest.ranges import Digest, send

router = APIRouter(
    prefix="/v1", tags=["files"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.post("/trees", openapi_extra=says(UploadPlan, body=Manifest, errors=(413, 507)))
def plan_upload(caller: Sender, called: Called, body: ManifestBody) -> Response:
    """What is missing of a folder; with nothing missing it is laid out and a job may name it."""
    called.transfers.check_length(body)
    return answer(called.transfers.plan(caller.user.name, wire.decode(Manifest, body)))


@router.put(
    "/chunks/{sha256}",
    status_code=204,
    openapi_extra=says(status=204, body=bytes, body_media=BYTES, errors=(413, 507)),
)
def put_chunk(sha256: str, caller: Sender, called: Called, body: ChunkBody) -> Response:
    """One piece of a file, named by its SHA-256."""
    called.transfers.put(caller.user.name, sha256, body)
    return done()


@router.post(
    "/chunks", status_code=204, openapi_extra=says(status=204, body=bytes, body_media=BYTES, errors=(413, 507))
)
def put_chunks(caller: Sender, called: Called, body: PackBody) -> Response:
    """Many small pieces: for each 32 bytes of SHA-256, 4 bytes of length (big-endian), and its bytes."""
    called.transfers.put_pack(caller.user.name, body)
    return done()


@router.get("/jobs/{job_id}/files", openapi_extra=says(FilePage, errors=(404,)))
def list_files(
    job_id: str,
    caller: Caller,
    called: Called,
    prefix: Annotated[str, Query(description="A file or folder, such as log or output/<job>/rank-0.")] = "",
    cursor: Annotated[str | None, Query(description="The next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """A job's results, in the order of their paths."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    called.jobs.check_kept(job, prefix)
    return answer(called.transfers.list(job, prefix, cursor, limit))


@router.post("/jobs/{job_id}/pack", openapi_extra=says(bytes, media=BYTES, body=PackRequest, errors=(404, 413)))
def pack_files(job_id: str, caller: Sender, called: Called, body: PackBody) -> Response:
    """Many small files of a job's results, in the order asked for, as /v1/chunks takes them; one that is not there, or
    is too large for a pack, has a SHA-256 of zeros and no bytes."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    pieces = called.transfers.pack(job, wire.decode(PackRequest, body).paths)
    return made_of(pieces, called.shares, caller.user.name)


@router.get("/jobs/{job_id}/files/{path:any_path}", openapi_extra=says(bytes, media=BYTES, errors=(404, 412, 416)))
def get_file(job_id: str, path: str, request: Request, caller: Caller, called: Called) -> Response:
    """One file of a job's results; takes Range, If-Match, If-None-Match, If-Range, Want-Repr-Digest
    and Want-Content-Digest."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    with called.jobs.telling_removed(job, path):
        opened = called.transfers.open(job, path)
    return send(request, opened, Digest(called.shares, caller.user.name))


@router.get("/jobs/{job_id}/sent", openapi_extra=says(FilePage, errors=(404,)))
def list_sent(
    job_id: str,
    caller: Caller,
    called: Called,
    cursor: Annotated[str | None, Query(description="The next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """The files that a job was submitted with, for as long as they are kept."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    return answer(called.transfers.list_sent(job, cursor, limit))


@router.get("/jobs/{job_id}/sent/{path:any_path}", openapi_extra=says(bytes, media=BYTES, errors=(404, 412, 416)))
def get_sent(job_id: str, path: str, request: Request, caller: Caller, called: Called) -> Response:
    """One file that a job was submitted with; takes the same headers as one of its results."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    return send(request, called.transfers.open_sent(job, path), Digest(called.shares, caller.user.name))


@router.get("/jobs/{job_id}/tasks/{task}/log", openapi_extra=says(str, media=TEXT, errors=(404, 412, 416)))
def get_log(job_id: str, task: str, request: Request, caller: Caller, called: Called) -> Response:
    """A task's log as it is now; takes the same headers as a file."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    digest = Digest(called.shares, caller.user.name)
    with called.jobs.telling_removed(job, paths.LOGS):
        opened = called.transfers.open_log(job, task)
    return send(request, opened, digest, media="text/plain")
