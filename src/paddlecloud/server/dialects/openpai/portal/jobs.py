"""Pages about jobs: home, the list, one job, a task's log, a stop, a submit; older addresses lead there."""

from __future__ import annotations

from contextlib import closing

from fastapi import APIRouter, Request, Response

from paddlecloud.model import paths
from paddlecloud.model.errors import InvalidError, NotFoundError
from paddlecloud.model.openpai.submitted import OpenPaiRequest
from paddlecloud.server.caller import Called, FromWhere
from paddlecloud.server.dialects.openpai import acts, filters, refusals, states
from paddlecloud.server.dialects.openpai.found import Found
from paddlecloud.server.dialects.openpai.logs import TAIL_BYTES, link
from paddlecloud.server.dialects.openpai.places import pools_of, shown_clusters
from paddlecloud.server.dialects.openpai.portal import pages
from paddlecloud.server.dialects.openpai.portal.sessions import (
    LoggedIn,
    PageRoute,
    Sender,
    SentForm,
    Session,
    host_of,
    moved,
)
from paddlecloud.server.jobs import task_names
from paddlecloud.server.services import Services
from paddlecloud.store.listing import Page, Wanted

router = APIRouter(route_class=PageRoute, default_response_class=Response, include_in_schema=False)

_RECENT = 10
_PAGE = 50
_SPAN_REFRESH = 15


@router.get("/")
@router.get("/index.html")
@router.get("/home.html")
def home(request: Request, session: LoggedIn, called: Called) -> Response:
    mine = Wanted(users={session.visitor.user.name})
    counts: dict[str, int] = {}
    for state, count in called.listing.states(mine).items():
        word = states.word(state)
        counts[word] = counts.get(word, 0) + count
    recent = called.listing.list(mine, Page(limit=_RECENT))
    clusters = shown_clusters(called, pools_of(called, session.visitor))
    access = called.hdfs_callers.access(session.visitor.user)
    files = pages.files(access, host_of(request, called))
    return session.page("Home", pages.home(counts, clusters, recent), files)


@router.get("/job-list.html")
def list_jobs(request: Request, session: LoggedIn, called: Called) -> Response:
    known = ("keyword", "username", "state", "vc", "offset")
    query = {name: value for name, value in request.query_params.items() if name in known}
    visitor = session.visitor
    wanted = filters.wanted(query, only=None if visitor.admin else visitor.user.name)
    page = filters.page({**query, "limit": str(_PAGE)})
    found = called.listing.list(wanted, page)
    total = called.listing.count(wanted)
    return session.page("Jobs", pages.job_list(found, query, total=total, offset=page.offset, size=_PAGE))


@router.get("/job-detail.html")
def show_job(request: Request, session: LoggedIn, called: Called) -> Response:
    job = _found(request, session, called)
    config, warnings = _written(called, job)
    body = pages.job(
        job.detail,
        job.name,
        mark=session.mark,
        spans=called.records.attempts(job.id),
        tags=job.tags,
        config=config,
        warnings=warnings,
    )
    live = not job.detail.job.state.final
    return session.page(job.detail.job.spec.name, body, refresh=_SPAN_REFRESH if live else None)


def _written(called: Services, job: Found) -> tuple[str | None, tuple[str, ...]]:
    try:
        config = called.openpai.config(job.detail.job)
    except NotFoundError:
        return None, ()
    return config.text, config.warnings


@router.get("/job-log.html")
def show_log(request: Request, session: LoggedIn, called: Called) -> Response:
    job, task = _found(request, session, called), request.query_params.get("task", "")
    record = job.detail.job
    if task not in task_names(record):
        raise refusals.no_log(f"There is no task {task[:80]} in job {job.frame}.")
    content, size = b"", 0
    try:
        with (
            called.jobs.telling_removed(record, paths.LOGS),
            closing(called.transfers.open_log(record, task)) as opened,
        ):
            size = opened.entry.size
            content = opened.read(max(0, size - TAIL_BYTES), size)
    except NotFoundError as error:
        if record.state.final:
            raise refusals.no_log(error.message) from None
    whole = link(called, session.visitor.user.name, job.id, task, "all", tail=False)
    text = content.decode("utf-8", "replace")
    return session.page(f"Log of {task}", pages.log(job.user, job.name, task, text, cut=size > TAIL_BYTES, whole=whole))


@router.post("/job-stop.html")
def stop_job(session: Sender, called: Called, sent: SentForm, origin: FromWhere) -> Response:
    user, name = str(sent.get("username", "")), str(sent.get("jobName", ""))
    job = Found(called, session.visitor, user, name)
    acts.stop(called, session.visitor, job.id, origin)
    return moved(pages.job_address(user, name))


@router.get("/submit.html")
@router.get("/submit_v1.html")
async def show_submit(session: LoggedIn) -> Response:
    return session.page("Submit", pages.submit(session.mark))


@router.post("/submit.html")
def submit(session: Sender, called: Called, sent: SentForm, origin: FromWhere) -> Response:
    text = str(sent.get("job", ""))
    user = session.visitor.user
    try:
        made = acts.submitted(
            lambda: called.openpai.submit(user, OpenPaiRequest(text=text), origin=origin),
            user.name,
            code="InvalidProtocolError",
        )
    except (refusals.Refusal, InvalidError) as refusal:
        return session.page("Submit", pages.submit(session.mark, text, refusal.message), status=400)
    return moved(pages.job_address(user.name, made.job.spec.name))


@router.get("/job-event.html")
@router.get("/task-attempt.html")
@router.get("/job-transfer.html")
async def show_of_job(request: Request, session: LoggedIn) -> Response:
    """What OpenPAI has pages of their own for stands on that of the job."""
    query = request.query_params
    name = query.get("jobName", "")
    return moved(
        pages.job_address(query.get("username", session.visitor.user.name), name) if name else "/job-list.html"
    )


@router.get("/virtual-clusters.html")
@router.get("/dashboard.html")
@router.get("/user-profile.html")
@router.get("/user-view.html")
@router.get("/plugin.html")
async def show_home(_: LoggedIn) -> Response:
    return moved("/index.html")


def _found(request: Request, session: Session, called: Services) -> Found:
    query = request.query_params
    name = query.get("jobName", "")
    if not name:
        raise refusals.no_job("without a name")
    return Found(called, session.visitor, query.get("username", session.visitor.user.name), name)
