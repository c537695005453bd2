"""Jobs as version 2 of OpenPAI's API has them: lists, details, attempts, events, and what is done to them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from paddlecloud.model.errors import NotFoundError
from paddlecloud.server.caller import Called, FromWhere
from paddlecloud.server.dialects.openpai import acts, filters, refusals, shapes
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.found import Found
from paddlecloud.server.dialects.openpai.route import (
    Caller,
    HeldList,
    PaiRoute,
    Sender,
    Sent,
    Visitor,
    json_answer,
    said,
    text_of,
)
from paddlecloud.server.services import Services

router = APIRouter(
    prefix=f"{ROOT}/api/v2/jobs", route_class=PaiRoute, default_response_class=Response, include_in_schema=False
)


def found(called: Services, visitor: Visitor, frame: str) -> Found:
    user, _, name = frame.partition("~")
    return Found(called, visitor, user, name, called_by=frame)


def meant(frame: str, caller: Caller, called: Called) -> Found:
    return found(called, caller, frame)


Meant = Annotated[Found, Depends(meant)]


@router.post("")
def submit(caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    """A job as YAML; JSON, which is YAML too, does as well."""
    user, text = caller.user, sent.text()
    made = acts.submitted(
        lambda: called.openpai.submit_v2(user, text, origin=origin), user.name, code="InvalidProtocolError"
    )
    message = f"Update job {made.job.spec.name} for user {user.name} successfully."
    return json_answer({"status": 202, "message": message}, 202, acts.warned(made))


@router.get("")
def list_jobs(request: Request, _: HeldList, caller: Caller, called: Called) -> Response:
    """The caller's jobs; an admin's list has everybody's."""
    query = request.query_params
    wanted = filters.wanted(query, only=None if caller.admin else caller.user.name)
    listed = called.listing.list(wanted, filters.page(query))
    tags = called.openpai.tags([job.id for job in listed])
    items = [shapes.item(job, tags.get(job.id, ())) for job in listed]
    if query.get("withTotalCount", "").lower() != "true":
        return json_answer(items)
    return json_answer({"totalCount": called.listing.count(wanted), "data": items})


@router.get("/{frame}")
def get_job(job: Meant) -> Response:
    return json_answer(shapes.detail(job.detail, job.name, None, job.tags))


@router.get("/{frame}/attempts/{number}")
def get_attempt(number: str, job: Meant) -> Response:
    detail, span = job.attempt(number)
    return json_answer(shapes.detail(detail, job.name, span, job.tags))


@router.get("/{frame}/job-attempts/healthz")
async def history_is_kept() -> Response:
    return Response("ok", media_type="text/plain")


@router.get("/{frame}/job-attempts")
def list_attempts(job: Meant) -> Response:
    return json_answer([shapes.job_attempt(detail, job.name, span) for detail, span in job.attempts()])


@router.get("/{frame}/job-attempts/{number}")
def get_job_attempt(number: str, job: Meant) -> Response:
    detail, span = job.attempt(number)
    return json_answer(shapes.job_attempt(detail, job.name, span))


@router.get("/{frame}/events")
def list_events(job: Meant, request: Request, called: Called) -> Response:
    asked = request.query_params.get("type", "")
    listed = shapes.events(job.detail, job.name, called.clock())
    listed = [event for event in listed if asked in ("", event["type"])]
    return json_answer({"totalCount": len(listed), "data": listed})


@router.get("/{frame}/config")
def get_config(job: Meant, called: Called) -> Response:
    return acts.written(called, job, as_json=False)


@router.get("/{frame}/ssh")
def no_ssh(job: Meant) -> Response:
    raise refusals.no_ssh(job.frame)


@router.get("/{frame}/attempts/{number}/taskRoles/{role}/taskIndex/{index}/attempts")
def list_task_attempts(number: str, role: str, index: str, job: Meant) -> Response:
    detail, span = job.attempt(number)
    of, at = job.role(role, index)
    return json_answer(shapes.task_attempts(detail, job.name, of, at, span))


@router.put("/{frame}/executionType")
def execute(frame: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    job = found(called, caller, frame)
    acts.execute(job, caller, called, sent, origin)
    return json_answer({"status": 202, "message": f"Execute job {job.frame} successfully."}, 202)


@router.put("/{frame}/tag")
def add_tag(frame: str, caller: Sender, called: Called, sent: Sent) -> Response:
    job, tag = found(called, caller, frame), text_of(sent.fields(), "value")
    called.openpai.tag(job.detail.job, tag)
    return json_answer({"status": 200, "message": f"Add tag {tag} for job {job.frame} successfully."})


@router.delete("/{frame}/tag")
def remove_tag(frame: str, caller: Sender, called: Called, sent: Sent) -> Response:
    job, tag = found(called, caller, frame), text_of(sent.fields(), "value")
    try:
        called.openpai.untag(job.detail.job, tag)
    except NotFoundError:
        raise refusals.no_tag(tag[:255]) from None
    return said(f"Delete tag {tag} from job {job.frame} successfully.")
