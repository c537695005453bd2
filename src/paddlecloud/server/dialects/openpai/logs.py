"""Logs of tasks by links that last a while and need nothing else: OpenPAI's clients fetch them without a token.

A link is a pass for one task's log, in the query, which no access log has. Its user must still be one, and may still
see the job.
"""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from paddlecloud.model import paths
from paddlecloud.model.errors import NotFoundError, UnauthenticatedError
from paddlecloud.model.job import Job
from paddlecloud.model.paths import task_name
from paddlecloud.model.user import Role
from paddlecloud.server.caller import Called
from paddlecloud.server.dialects.openpai import refusals
from paddlecloud.server.dialects.openpai.addresses import ROOT
from paddlecloud.server.dialects.openpai.found import Found
from paddlecloud.server.dialects.openpai.route import Caller, PaiRoute, json_answer
from paddlecloud.server.rest.ranges import Digest, send
from paddlecloud.server.services import Services

router = APIRouter(route_class=PaiRoute, default_response_class=Response, include_in_schema=False)

USE = "log"
TAIL_BYTES = 16 * 1024
LASTING = timedelta(minutes=10)
_NAMES = ("all", "stdout")  # a task's two streams are one log here


@router.get(
    f"{ROOT}/api/v2/jobs/{{frame}}/attempts/{{number}}/taskRoles/{{role}}/taskIndex/{{index}}/attempts/{{run}}/logs"
)
def locate_logs(
    frame: str, number: str, role: str, index: str, request: Request, caller: Caller, called: Called
) -> Response:
    user, _, name = frame.partition("~")
    job = Found(called, caller, user, name)
    job.attempt(number)
    of, at = job.role(role, index)
    task = task_name(of.name, at)
    try:
        _check_there(called, job.detail.job, task)
    except NotFoundError as error:
        raise refusals.no_log(error.message) from None
    query = request.query_params
    tail = "true" in (query.get("tail-mode", "").lower(), query.get("tailMode", "").lower())
    return json_answer(
        {"locations": [{"name": one, "uri": link(called, caller.user.name, job.id, task, one, tail)} for one in _NAMES]}
    )


def link(called: Services, user: str, job: str, task: str, name: str, tail: bool) -> str:
    """An address below this server's own by which a log can be read for a while."""
    made = called.passes.make(user, USE, lasting=LASTING, now=called.clock(), about=f"{job}/{task}")
    query = {"token": made} | ({"tail-mode": "true"} if tail else {})
    return f"/log-manager/logs/{name}?{urlencode(query)}"


@router.get("/log-manager/logs/{name}")
def read_log(name: str, request: Request, called: Called) -> Response:
    query = request.query_params
    if name not in _NAMES:
        raise refusals.no_log(f"There is no log {name[:40]}.")
    try:
        user, words = called.passes.check(query.get("token", ""), USE, called.clock())
    except UnauthenticatedError:
        raise refusals.Refusal(
            401, "UnauthorizedUserError", "This link has expired: ask for the logs of the task again."
        ) from None
    request.state.user = user.name
    job_id, _, task = words.about.partition("/")
    try:
        job = called.jobs.get(user, job_id, everyone=user.role is Role.ADMIN)
        with called.jobs.telling_removed(job, paths.LOGS):
            opened = called.transfers.open_log(job, task)
    except NotFoundError as error:
        raise refusals.no_log(error.message) from None
    if query.get("tail-mode", "").lower() != "true":
        return plain(send(request, opened, Digest(called.shares, user.name), media="text/plain"))
    with closing(opened):
        size = opened.entry.size
        return plain(Response(opened.read(max(0, size - TAIL_BYTES), size), media_type="text/plain"))


def plain(response: Response) -> Response:
    """What a task wrote must not be taken for a page by a browser."""
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Cache-Control"] = "no-store"
    return response


def _check_there(called: Services, job: Job, task: str) -> None:
    with called.jobs.telling_removed(job, paths.LOGS):
        called.transfers.open_log(job, task).close()
