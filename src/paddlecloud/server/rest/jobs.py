"""Routes about jobs: submit, get, list, kill, and what they say while they run."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Response

from paddlecloud.model import paths, wire
from paddlecloud.model.errors import InvalidError
from paddlecloud.model.job import Job, JobSpec
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport
from paddlecloud.model.views import Acceptance, JobDetail, JobPage
from paddlecloud.server.caller import Called, Caller, FromWhere, JsonBody, Recheck, Sender, known_parameters
from paddlecloud.server.openapi import EVENTS, says
from paddlecloud.server.rest.answers import answer, done, stream
from paddlecloud.server.rest.moments import Since, moment

router = APIRouter(
    prefix="/v1", tags=["jobs"], default_response_class=Response, dependencies=[Depends(known_parameters)]
)

LastEventId = Annotated[str | None, Header(description="The id of the last piece seen: what follows it is sent.")]
Follow = Annotated[bool, Query(description="Go on as it happens; else end when all was sent.")]


@router.post("/jobs", status_code=201, openapi_extra=says(Job, status=201, body=JobSpec, errors=(409, 413, 429, 507)))
def submit(
    caller: Sender,
    called: Called,
    origin: FromWhere,
    body: JsonBody,
    idempotency_key: Annotated[str | None, Header(description="The same key and body make the same job.")] = None,
) -> Response:
    """Submit a job."""
    spec = wire.decode(JobSpec, body)
    return answer(called.jobs.submit(caller.user, spec, origin=origin, idempotency_key=idempotency_key), 201)


@router.post("/jobs/check", openapi_extra=says(Acceptance, body=JobSpec, errors=(413,)))
def check(caller: Sender, called: Called, body: JsonBody) -> Response:
    """Say whether a job would be taken, before its folder is sent; nothing is recorded."""
    spec = called.jobs.check(caller.user, wire.decode(JobSpec, body))
    return answer(Acceptance(spec=spec, upload_limit_bytes=called.transfers.upload_limit_bytes))


@router.get("/jobs", openapi_extra=says(JobPage))
def list_jobs(
    caller: Caller,
    called: Called,
    user: str | None = None,
    state: Annotated[str | None, Query(description="States, divided by commas.")] = None,
    name: str | None = None,
    every: Annotated[bool, Query(alias="all", description="Of all users; for admins.")] = False,
    cursor: Annotated[str | None, Query(description="The next_cursor of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """Jobs, newest first: the caller's own, or for admins those of another `user` or of all."""
    page = called.jobs.list(
        caller.user,
        of=user,
        everyone=caller.admin,
        all_users=every,
        states=_states(state),
        name=name,
        cursor=cursor,
        limit=limit,
    )
    return answer(page)


@router.get("/jobs/{job_id}", openapi_extra=says(JobDetail, errors=(404,)))
def get_job(job_id: str, caller: Caller, called: Called) -> Response:
    """All there is to say about a job."""
    return answer(called.jobs.detail(caller.user, job_id, everyone=caller.admin))


@router.post("/jobs/{job_id}/kill", openapi_extra=says(Job, errors=(404, 409)))
def kill(job_id: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Ask for a job's end."""
    return answer(called.jobs.kill(caller.user, job_id, origin=origin, everyone=caller.admin))


@router.get("/jobs/{job_id}/tasks", openapi_extra=says(list[TaskReport], errors=(404,)))
def list_tasks(job_id: str, caller: Caller, called: Called) -> Response:
    """The tasks of a job's newest attempt."""
    return answer(called.jobs.tasks(caller.user, job_id, everyone=caller.admin))


@router.get("/jobs/{job_id}/events", openapi_extra=says(str, media=EVENTS, errors=(404,)))
def job_events(
    job_id: str,
    caller: Caller,
    called: Called,
    recheck: Recheck,
    follow: Follow = True,
    last_event_id: LastEventId = None,
) -> Response:
    """A job's changes of state (event `moved`, data Moved) until it has ended."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    pieces = called.streams.job_events(job.id, after=_event(last_event_id) or 0, follow=follow)
    return stream(pieces, recheck, called.shares.stream(caller.user.name))


@router.post("/jobs/{job_id}/hide", status_code=204, openapi_extra=says(status=204, errors=(404,)))
def hide_job(job_id: str, caller: Caller, called: Called, origin: FromWhere) -> Response:
    """Take a job out of lists; all that is known of it stays, by its id."""
    called.jobs.hide(caller.user, job_id, origin=origin)
    return done()


@router.get("/events", openapi_extra=says(str, media=EVENTS))
def events(
    caller: Caller,
    called: Called,
    recheck: Recheck,
    follow: Follow = True,
    every: Annotated[bool, Query(alias="all", description="Of all users; for admins.")] = False,
    last_event_id: LastEventId = None,
) -> Response:
    """Changes of state of the caller's jobs (event `moved`, data Moved), from now on or, not followed, all so far."""
    if every:
        caller.need_admin()
    after = _event(last_event_id)
    if after is None:
        after = called.records.last_event() if follow else 0
    pieces = called.streams.events(None if every else caller.user.name, after=after, follow=follow)
    return stream(pieces, recheck, called.shares.stream(caller.user.name))


@router.get("/jobs/{job_id}/logs", openapi_extra=says(str, media=EVENTS, errors=(404,)))
def logs(
    job_id: str,
    caller: Caller,
    called: Called,
    recheck: Recheck,
    task: Annotated[str | None, Query(description="Of this task alone, such as trainer-0.")] = None,
    tail: Annotated[int | None, Query(ge=0, le=1_000_000, description="Begin with each log's last lines.")] = None,
    since: Since = None,
    follow: Follow = True,
    last_event_id: LastEventId = None,
) -> Response:
    """The logs of a job's tasks (event `log`, data LogPiece), then its state (event `end`, data LogEnd)."""
    job = called.jobs.get(caller.user, job_id, everyone=caller.admin)
    called.jobs.check_kept(job, paths.LOGS)
    begin = moment(since, called.clock())
    offsets = called.streams.log_offsets(job, task=task, tail=tail, since=begin, seen=last_event_id)
    pieces = called.streams.logs(job, offsets, follow=follow)
    return stream(pieces, recheck, called.shares.stream(caller.user.name))


def _states(text: str | None) -> list[JobState] | None:
    if text is None:
        return None
    try:
        return [JobState(word.strip().replace(" ", "_")) for word in text.split(",")]
    except ValueError:
        known = ", ".join(JobState)
        raise InvalidError(
            f"state {text!r} is not known: give some of {known}, divided by commas", field="state"
        ) from None


def _event(text: str | None) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidError(f"Last-Event-ID {text[:80]!r} is none of this stream", field="Last-Event-ID")
    return int(text)
