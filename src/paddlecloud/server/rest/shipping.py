"""Routes for a job's own tasks, on machines that do not share the server's disk."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from paddlecloud.model.log import LogLength
from paddlecloud.server.caller import Called, LogBody, OfTask, known_parameters
from paddlecloud.server.openapi import BYTES, says
from paddlecloud.server.rest.answers import answer

router = APIRouter(
    prefix="/v1", tags=["tasks"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)


@router.put(
    "/jobs/{job_id}/tasks/{task}/log",
    openapi_extra=says(LogLength, body=bytes, body_media=BYTES, errors=(404, 409, 413, 507), security=("task",)),
)
def append_log(
    task: str,
    job: OfTask,
    called: Called,
    body: LogBody,
    offset: Annotated[int, Query(ge=0, lt=2**63, description="The byte of the log at which the piece begins.")],
) -> Response:
    """A piece of a task's log; sent twice it is there once. The answer says how much is there, durably."""
    return answer(called.shipping.append_log(job, task, offset, body))
