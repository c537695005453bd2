"""Jobs as version 2 of OpenPAI's API has them: lists, details, attempts, events, and what is done to them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.job import RoleSpec
from paddlecloud.model.views import JobDetail
from paddlecloud.server.audit import Origin
from paddlecloud.server.caller import Called, FromWhere
from paddlecloud.server.dialects.openpai import filters, refusals, shapes
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.route import (
    Caller,
    HeldList,
    PaiRoute,
    Sender,
    Sent,
    Visitor,
    json_answer,
    text_of,
)
from paddlecloud.server.services import Services
from paddlecloud.store.attempts import Span

router = APIRouter(prefix=f"{ROOT}/api/v2/jobs", route_class=PaiRoute, include_in_schema=False)


class Found:
    """A job that a caller may see, by the name that they call it by."""

    def __init__(self, called: Services, visitor: Visitor, frame: str) -> None:
        self._called = called
        self.frame = frame
        user, _, name = frame.partition("~")
        job_id = find(called, visitor, user, name)
        if job_id is None:
            raise refusals.no_job(frame)
        self.id = job_id
        self.user = user
        self.name = name
        self.detail = called.jobs.detail(visitor.user, job_id, everyone=visitor.admin)

    def attempt(self, number: str) -> tuple[JobDetail, Span | None]:
        """One attempt of it, as OpenPAI counts them; the first is there before it has begun."""
        spans = self._called.records.attempts(self.id)
        wanted = int(number) + 1 if number.isascii() and number.isdigit() and len(number) < 9 else 0
        span = next((span for span in spans if span.attempt == wanted), None)
        if span is None:
            if wanted == 1 and not spans:
                return self.detail, None
            raise refusals.Refusal(404, "NoJobAttemptError", f"Attempt {number[:20]} of job {self.frame} is not found.")
        return self.at(span), span

    def attempts(self) -> list[tuple[JobDetail, Span | None]]:
        """All of its attempts, newest first."""
        spans = self._called.records.attempts(self.id)
        return [(self.at(span), span) for span in reversed(spans)] or [(self.detail, None)]

    def at(self, span: Span) -> JobDetail:
        if span.attempt == self.detail.job.attempt:
            return self.detail
        return JobDetail(job=self.detail.job, tasks=tuple(self._called.records.tasks_of(span.handle)))

    def role(self, name: str, index: str) -> tuple[RoleSpec, int]:
        for role in self.detail.job.spec.roles:
            if role.name == name and index.isascii() and index.isdigit() and len(index) < 9 and int(index) < role.count:
                return role, int(index)
        raise refusals.Refusal(404, "NoTaskError", f"Task {name[:80]}-{index[:20]} of job {self.frame} is not found.")


def find(called: Services, visitor: Visitor, user: str, name: str) -> str | None:
    """The id of the job that is meant, of those that the caller may see: by its name, or by its id."""
    if not (visitor.admin or user == visitor.user.name):
        return None
    found = called.listing.find(user, name)
    if found is not None:
        return found
    try:
        job = called.jobs.get(visitor.user, name, everyone=visitor.admin)
    except NotFoundError:
        return None
    return job.id if job.user == user else None


def meant(frame: str, caller: Caller, called: Called) -> Found:
    return Found(called, caller, frame)


Meant = Annotated[Found, Depends(meant)]


@router.get("")
def list_jobs(request: Request, _: HeldList, caller: Caller, called: Called) -> Response:
    """The caller's jobs; an admin's list has everybody's."""
    query = request.query_params
    wanted = filters.wanted(query, only=None if caller.admin else caller.user.name)
    listed = called.listing.list(wanted, filters.page(query))
    items = [shapes.item(job) for job in listed]
    if query.get("withTotalCount", "").lower() != "true":
        return json_answer(items)
    return json_answer({"totalCount": called.listing.count(wanted), "data": items})


@router.get("/{frame}")
def get_job(job: Meant) -> Response:
    return json_answer(shapes.detail(job.detail, job.name, None))


@router.get("/{frame}/attempts/{number}")
def get_attempt(number: str, job: Meant) -> Response:
    detail, span = job.attempt(number)
    return json_answer(shapes.detail(detail, job.name, span))


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
    return executed(Found(called, caller, frame), caller, called, sent, origin)


def executed(job: Found, caller: Visitor, called: Services, sent: Sent, origin: FromWhere) -> Response:
    """STOP ends a job. START is what every job is told when it is submitted: there is no way back from an end."""
    value = text_of(sent.fields(), "value")
    if value not in ("START", "STOP"):
        raise refusals.invalid('"value" must be one of [START, STOP]')
    if value == "STOP":
        stop(called, caller, job.id, origin)
    elif job.detail.job.state.final:
        raise refusals.Refusal(
            400, "InvalidParametersError", f"Job {job.frame} has ended and cannot be started again: submit it anew."
        )
    return json_answer({"status": 202, "message": f"Execute job {job.frame} successfully."}, 202)


def stop(called: Services, caller: Visitor, job_id: str, origin: Origin) -> None:
    """Have a job end; one that has ended is as it was asked for."""
    try:
        called.jobs.kill(caller.user, job_id, origin=origin, everyone=caller.admin)
    except ConflictError:
        if not called.jobs.get(caller.user, job_id, everyone=caller.admin).state.final:
            raise


@router.get("/{frame}/config")
def get_config(job: Meant) -> Response:
    raise refusals.no_config(job.frame)
