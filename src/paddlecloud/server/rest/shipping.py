"""Routes for a job's own tasks, on machines that do not share the server's disk."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from paddlecloud.backends import shipped
from paddlecloud.model import wire
from paddlecloud.model.away import Claim, OutputLength, Run, TaskNews
from paddlecloud.model.log import LogLength
from paddlecloud.server.caller import Called, LogBody, OfTask, identify_task, known_parameters
from paddlecloud.server.openapi import BYTES, says
from paddlecloud.server.rest.answers import answer, done, made_of

router = APIRouter(
    prefix="/v1", tags=["tasks"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)

Offset = Annotated[int, Query(ge=0, lt=2**63, description="The byte of the file at which the piece begins.")]


@router.get(
    "/jobs/{job_id}/runtime",
    dependencies=[Depends(identify_task)],
    openapi_extra=says(bytes, media=BYTES, errors=(409,), security=("task",)),
)
def get_runtime() -> Response:
    """What supervises a task on its node: a zip archive with programs of Python."""
    return Response(shipped.archive(), media_type=BYTES)


@router.post("/jobs/{job_id}/claims", openapi_extra=says(Claim, body=Run, errors=(404, 409, 413), security=("task",)))
def claim_task(job: OfTask, called: Called, body: LogBody) -> Response:
    """What a task is to do, told to the first run of it alone."""
    return answer(called.shipping.claim(job, wire.decode(Run, body)))


@router.get("/jobs/{job_id}/tree", openapi_extra=says(bytes, media=BYTES, errors=(404, 409), security=("task",)))
def get_tree(job: OfTask, called: Called) -> Response:
    """The files that the job was submitted with: a tar archive."""
    return made_of(called.shipping.tree(job), called.shares, job.user)


@router.get(
    "/jobs/{job_id}/tasks/{task}/inputs/{number}",
    openapi_extra=says(bytes, media=BYTES, errors=(404, 409), security=("task",)),
)
def get_input(task: str, number: int, job: OfTask, called: Called) -> Response:
    """What of an input of the job, by its number, is for a task: a tar archive."""
    return made_of(called.shipping.input(job, task, number), called.shares, job.user)


@router.put(
    "/jobs/{job_id}/tasks/{task}/news",
    status_code=204,
    openapi_extra=says(status=204, body=TaskNews, errors=(404, 409, 413, 507), security=("task",)),
)
def tell_news(task: str, job: OfTask, called: Called, body: LogBody) -> Response:
    """What became of a task so far; its end is told when all that it leaves has come."""
    called.shipping.tell(job, task, wire.decode(TaskNews, body))
    return done()


@router.put(
    "/jobs/{job_id}/tasks/{task}/log",
    openapi_extra=says(LogLength, body=bytes, body_media=BYTES, errors=(404, 409, 413, 507), security=("task",)),
)
def append_log(task: str, job: OfTask, called: Called, body: LogBody, offset: Offset) -> Response:
    """A piece of a task's log; sent twice it is there once. The answer says how much is there, durably."""
    return answer(called.shipping.append_log(job, task, offset, body))


@router.put(
    "/jobs/{job_id}/tasks/{task}/output",
    openapi_extra=says(OutputLength, body=bytes, body_media=BYTES, errors=(404, 409, 413, 507), security=("task",)),
)
def append_output(
    task: str,
    job: OfTask,
    called: Called,
    body: LogBody,
    offset: Offset,
    path: Annotated[str, Query(max_length=4096, description="Where it goes, below the job's results.")],
    last: Annotated[bool, Query(description="The file ends with this piece.")] = False,
    executable: Annotated[bool, Query(description="It may be run.")] = False,
) -> Response:
    """A piece of a file that a task leaves; at 0 it begins anew."""
    made = called.shipping.append_output(job, task, path, offset, body, last=last, executable=executable)
    return answer(made)
