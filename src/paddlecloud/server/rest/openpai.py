"""Routes about files of OpenPAI: a job submitted as its file has it, and what a job was written as."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from paddlecloud.model import wire
from paddlecloud.model.openpai.submitted import OpenPaiJob, OpenPaiRequest
from paddlecloud.server.caller import Called, Caller, FromWhere, JsonBody, Sender, known_parameters
from paddlecloud.server.openapi import says
from paddlecloud.server.rest.answers import answer

router = APIRouter(
    prefix="/v1", tags=["jobs"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.post(
    "/openpai/jobs",
    status_code=201,
    openapi_extra=says(OpenPaiJob, status=201, body=OpenPaiRequest, errors=(409, 413, 429, 507)),
)
def submit_openpai(caller: Sender, called: Called, origin: FromWhere, body: JsonBody) -> Response:
    """Submit a job of OpenPAI as its file has it, in JSON or YAML."""
    return answer(called.openpai.submit(caller.user, wire.decode(OpenPaiRequest, body), origin=origin), 201)


@router.get("/jobs/{job_id}/config", openapi_extra=says(str, media="text/plain", errors=(404,)))
def get_config(job_id: str, caller: Caller, called: Called) -> Response:
    """What a job of OpenPAI was written as, without its secrets."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    return Response(called.openpai.config(job).text, media_type="text/plain; charset=utf-8")
