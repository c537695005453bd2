"""Jobs as version 1 of OpenPAI's API had them in 0.14, where reading took no token: a guest sees nothing here.

With `[openpai] open_lists` guests see every job, as they did there; nobody but its user and admins ever changes one.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Request, Response

from paddlecloud.server.caller import Called, FromWhere
from paddlecloud.server.dialects.openpai import acts, filters, refusals, shapes
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.found import Found
from paddlecloud.server.dialects.openpai.route import (
    Body,
    Caller,
    Guest,
    PaiRoute,
    Sender,
    Sent,
    Visitor,
    hold_guest,
    json_answer,
    said,
)
from paddlecloud.server.services import Services

router = APIRouter(
    prefix=f"{ROOT}/api/v1", route_class=PaiRoute, default_response_class=Response, include_in_schema=False
)

_ONLY_LATER = ("tags", "submissionTime")  # fields that 0.14 did not have
_GUESTS_MOST = 1000
_USER_JOBS = "/user/{user}/jobs"
_JOB = "/user/{user}/jobs/{name}"


@router.get("/jobs", dependencies=[Depends(hold_guest, scope="request")])
def list_jobs(request: Request, caller: Guest, called: Called) -> Response:
    """The jobs of the caller, of an admin everybody's; newest first."""
    return _listed(caller, called, {**request.query_params})


@router.get(_USER_JOBS, dependencies=[Depends(hold_guest, scope="request")])
def list_jobs_of(user: str, request: Request, caller: Guest, called: Called) -> Response:
    return _listed(caller, called, {**request.query_params, "username": user})


def _listed(caller: Visitor | None, called: Services, query: dict[str, str]) -> Response:
    if caller is None and not called.settings.openpai.open_lists:
        return json_answer([])
    only = None if caller is None or caller.admin else caller.user.name
    if caller is None:
        query.setdefault("limit", str(_GUESTS_MOST))
    page = filters.page(query, most=filters.MOST if caller else _GUESTS_MOST)
    items = [shapes.item(job) for job in called.listing.list(filters.wanted(query, only=only), page)]
    return json_answer([_older(item) for item in items])


@router.get("/jobs/{frame}")
def get_framework(frame: str, caller: Guest, called: Called) -> Response:
    return _shown(_framed(called, caller, frame))


@router.get(_JOB)
def get_job(user: str, name: str, caller: Guest, called: Called) -> Response:
    """By this the VS Code client finds out whether a name is free: 404 says that it is."""
    return _shown(_found(called, caller, user, name))


@router.get("/jobs/{frame}/config")
def get_framework_config(frame: str, request: Request, caller: Guest, called: Called) -> Response:
    return _written(request, called, _framed(called, caller, frame))


@router.get(f"{_JOB}/config")
def get_config(user: str, name: str, request: Request, caller: Guest, called: Called) -> Response:
    return _written(request, called, _found(called, caller, user, name))


@router.get("/jobs/{frame}/ssh")
def no_framework_ssh(frame: str, caller: Guest, called: Called) -> Response:
    raise refusals.no_ssh(_framed(called, caller, frame).frame)


@router.get(f"{_JOB}/ssh")
def no_ssh(user: str, name: str, caller: Guest, called: Called) -> Response:
    raise refusals.no_ssh(_found(called, caller, user, name).frame)


@router.post("/jobs")
def submit_own(request: Request, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    return _submitted(request, caller, called, sent, origin, {})


@router.post(_USER_JOBS)
def submit(user: str, request: Request, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    _own(caller, user)
    return _submitted(request, caller, called, sent, origin, {})


@router.put(_JOB)
def submit_named(
    user: str, name: str, request: Request, caller: Sender, called: Called, sent: Sent, origin: FromWhere
) -> Response:
    _own(caller, user)
    return _submitted(request, caller, called, sent, origin, {"jobName": name})


@router.put("/jobs/{name}")
def submit_own_named(
    name: str, request: Request, caller: Sender, called: Called, sent: Sent, origin: FromWhere
) -> Response:
    return _submitted(request, caller, called, sent, origin, {"jobName": name})


def _submitted(
    request: Request, caller: Visitor, called: Services, sent: Body, origin: Any, named: dict[str, str]
) -> Response:
    user, fields = caller.user, {**sent.fields(), **named}
    made = acts.submitted(
        lambda: called.openpai.submit_v1(user, fields, origin=origin, form=sent.form),
        user.name,
        code="InvalidParametersError",
    )
    name = made.job.spec.name
    headers = {"Location": f"{request.url.path.partition('/jobs')[0]}/jobs/{name}", **acts.warned(made)}
    return json_answer({"message": f"update job {name} successfully"}, 202, headers)


@router.put("/jobs/{frame}/executionType")
def execute_framework(frame: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    return _executed(_framed(called, caller, frame), caller, called, sent, origin)


@router.put(f"{_JOB}/executionType")
def execute(user: str, name: str, caller: Sender, called: Called, sent: Sent, origin: FromWhere) -> Response:
    return _executed(_found(called, caller, user, name), caller, called, sent, origin)


def _executed(job: Found, caller: Visitor, called: Services, sent: Body, origin: Any) -> Response:
    acts.execute(job, caller, called, sent, origin)
    return said(f"execute job {job.name} successfully", 202)


@router.delete("/jobs/{frame}")
def delete_framework(frame: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    return _deleted(_framed(called, caller, frame), caller, called, origin)


@router.delete(_JOB)
def delete(user: str, name: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    return _deleted(_found(called, caller, user, name), caller, called, origin)


def _deleted(job: Found, caller: Visitor, called: Services, origin: Any) -> Response:
    """The job is stopped if it runs, and out of the lists, so that its name is free; its record stays, by its id."""
    acts.stop(called, caller, job.id, origin)
    called.jobs.hide(caller.user, job.id, origin=origin, everyone=caller.admin)
    return said(f"deleted job {job.name} successfully", 202)


def _own(caller: Visitor, user: str) -> None:
    if user != caller.user.name:
        raise refusals.forbidden(f"User {caller.user.name} is not allowed to submit a job of {user[:80]}.")


def _framed(called: Services, caller: Visitor | None, frame: str) -> Found:
    """U~J; without a user the caller's own is meant."""
    user, tilde, name = frame.partition("~")
    if not tilde:
        user, name = "" if caller is None else caller.user.name, frame
    return _found(called, caller, user, name)


def _found(called: Services, caller: Visitor | None, user: str, name: str) -> Found:
    if caller is None and not called.settings.openpai.open_lists:
        raise refusals.no_job(name)
    return Found(called, caller, user, name, called_by=name)


def _shown(job: Found) -> Response:
    whole = shapes.detail(job.detail, job.name, None)
    return json_answer({field: whole[field] for field in ("name", "jobStatus", "taskRoles")})


def _older(item: dict[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in item.items() if field not in _ONLY_LATER}


def _written(request: Request, called: Services, job: Found) -> Response:
    return acts.written(called, job, as_json="yaml" not in request.headers.get("accept", ""))
