"""Jobs, workers, logs, quotas and registry secrets as the Go client asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from msgspec.structs import replace

from paddlecloud.model import compat, paddlepaddle, pfs
from paddlecloud.model.errors import InvalidError, NotFoundError, PaddleCloudError, RateError, UnauthenticatedError
from paddlecloud.model.job import PSERVER, Job, JobSpec
from paddlecloud.model.pfs import Access
from paddlecloud.model.state import JobState
from paddlecloud.model.tree import Kind
from paddlecloud.model.units import format_duration, format_size
from paddlecloud.model.user import User
from paddlecloud.recordio.compat import sources
from paddlecloud.server.auth import Identity
from paddlecloud.server.caller import Called, FromWhere, read_from_stranger
from paddlecloud.server.dialects.paddlecloud import shapes
from paddlecloud.server.dialects.paddlecloud.route import (
    Caller,
    HeldLog,
    OldRoute,
    Sender,
    Sent,
    json_answer,
    parse_object,
    said,
)
from paddlecloud.server.jobs import task_names
from paddlecloud.server.services import Services

router = APIRouter(route_class=OldRoute, default_response_class=Response, include_in_schema=False)

_LISTED = 500
_RULE = "=" * 26
_LOG_BYTES = 4 * 1024 * 1024


@router.post("/api-token-auth/")
async def exchange_password(request: Request, called: Called, origin: FromWhere) -> Response:
    try:
        sent = parse_object(await read_from_stranger(request))
    except InvalidError as error:
        return json_answer({"detail": f"JSON parse error - {error.message}"}, 400)
    missing = {name: ["This field is required."] for name in ("username", "password") if not sent.get(name)}
    if missing:
        return json_answer(missing, 400)
    try:
        token = await called.old_tokens.exchange(str(sent["username"]), str(sent["password"]), origin)
    except RateError:
        raise
    except UnauthenticatedError:
        return json_answer({"non_field_errors": ["Unable to log in with provided credentials."]}, 400)
    return json_answer({"token": token})


@router.get("/healthz/")
async def answer_ok() -> Response:
    return Response("OK", media_type="text/plain")


@router.get("/api/v1/token2user/")
def user_of_token(caller: Caller) -> Response:
    return json_answer({"user": caller.user.name})


@router.post("/api/v1/jobs/")
def submit(caller: Sender, called: Called, origin: FromWhere, sent: Sent) -> Response:
    """An empty `msg` is success; every refusal is said in it. `wall_time` is ours: how long the job may run.

    0.1.0 and alpha.1, which send no `image`, read no body: for them the status must tell.
    """
    try:
        spec = _noted(paddlepaddle.job_spec(sent, package=_package(caller, called, sent)), called)
        if paddlepaddle.read_entry(paddlepaddle.text(sent, "entry")).compat:
            spec = _with_modules(caller, called, spec)
        job = called.jobs.submit(caller.user, spec, origin=origin)
    except RateError:
        raise
    except PaddleCloudError as error:
        return said(500, error.message, status=200 if "image" in sent else error.status)
    limit = job.wall_time_seconds
    return json_answer({"code": 200, "msg": "", **({"wall_time": format_duration(limit)} if limit is not None else {})})


@router.get("/api/v1/jobs/")
def list_jobs(caller: Caller, called: Called) -> Response:
    found = _jobs(caller.user, called)
    shown = [job for job in found if job.state is not JobState.KILLING]
    listed = shapes.items((shapes.trainers(job, called.records.tasks(job.id)) for job in shown), "JobList")
    terminating = [job.spec.name for job in found if job.state is JobState.KILLING]
    return json_answer(listed | {"terminating": terminating})


@router.delete("/api/v1/jobs/")
def kill(caller: Sender, called: Called, origin: FromWhere, sent: Sent) -> Response:
    name = sent.get("jobname")
    if not isinstance(name, str) or not name:
        return said(500, "must specify jobname")
    try:
        called.jobs.kill_named(caller.user, name, origin=origin)
    except PaddleCloudError as error:
        return said(500, error.message)
    return said(200, "")


@router.get("/api/v1/pservers/")
def list_pservers(caller: Caller, called: Called) -> Response:
    found = [shapes.pservers(job, called.records.tasks(job.id)) for job in _jobs(caller.user, called)]
    return json_answer(shapes.items([item for item in found if item is not None], "ReplicaSetList"))


@router.get("/api/v1/workers/")
def list_workers(caller: Caller, called: Called, jobname: str = "") -> Response:
    """Of a job that was killed too: the manual looks here for workers that still end."""
    named = [called.jobs.named(caller.user, jobname)] if jobname else _jobs(caller.user, called)
    found = [
        worker
        for job in named
        if job is not None
        for worker in shapes.workers(job, called.records.tasks(job.id), all_roles=not jobname)
    ]
    return json_answer(shapes.items(found, "PodList"))


@router.get("/api/v1/quota/")
def list_quota(caller: Caller, called: Called) -> Response:
    user = caller.user
    limits = called.quotas.use(user.name).clusters
    found = [
        shapes.quota(cluster.name, cluster.capacity, limits[cluster.name].quota.instances, user.created_at)
        for cluster in called.clusters.list(called.loop.snapshot())
    ]
    return json_answer(shapes.items(found, "ResourceQuotaList"))


@router.get("/api/v1/logs")
@router.get("/api/v1/logs/")
def read_logs(
    _: HeldLog,
    caller: Caller,
    called: Called,
    jobname: str = "",
    n: Annotated[str, Query()] = "10",
    w: Annotated[str, Query()] = "",
) -> Response:
    """The last lines of every trainer, or of one worker of any job, as far as they fit into one answer."""
    if not n.isdigit() or len(n) > 9:
        return said(500, f"n {n!r} must be a number of lines")
    job = called.jobs.named(caller.user, jobname)
    if w:
        jobs = [*([] if job is None else [job]), *_jobs(caller.user, called)]
        return said(200, _log_of_worker(called, jobs, w, int(n)))
    if job is None:
        return said(404, f"no job {jobname!r} of yours; `paddlecloud get jobs` lists them")
    trainers = [task for task in task_names(job) if task.rpartition("-")[0] != PSERVER]
    return said(200, "".join(_blocks(called, job, trainers, int(n))))


@router.post("/api/v1/registry/")
def add_registry(caller: Sender, called: Called, origin: FromWhere, sent: Sent) -> Response:
    caller.need_to_keep_secrets()
    return _tried(
        lambda: called.registries.add(
            caller.user.name,
            name=_text(sent, "name"),
            server=_text(sent, "server"),
            username=_text(sent, "username"),
            password=_text(sent, "password"),
            origin=origin,
        )
    )


@router.delete("/api/v1/registry/")
def remove_registry(caller: Sender, called: Called, origin: FromWhere, sent: Sent) -> Response:
    caller.need_to_keep_secrets()
    return _tried(lambda: called.registries.remove(caller.user.name, _text(sent, "name"), origin=origin))


@router.get("/api/v1/registry/")
def list_registries(caller: Caller, called: Called) -> Response:
    caller.need_to_keep_secrets()
    found = [shapes.registry(one.name, one.created_at) for one in called.registries.list(caller.user.name)]
    return json_answer({"code": 200, "msg": shapes.items(found, "SecretList")})


def _noted(spec: JobSpec, called: Services) -> JobSpec:
    """The job, whose log tells what its datacenter's name was taken for: no answer of a submit can."""
    return replace(spec, note=pfs.renamed(spec.datacenter, called.pfs.datacenters))


def _with_modules(caller: Identity, called: Services, spec: JobSpec) -> JobSpec:
    """The job, which finds the modules of PaddlePaddle v2 in the folder that the client sends packages to."""
    datacenter = pfs.datacenter(spec.datacenter, called.pfs.datacenters)
    place = f"{paddlepaddle.default_package(datacenter, caller.user.name, spec.name)}/{compat.FOLDER}"
    called.pfs.write_all(caller.who, [(f"{place}/{path}", text.encode()) for path, text in sources().items()])
    return compat.adapted(spec, place)


def _package(caller: Identity, called: Services, sent: dict[str, Any]) -> str:
    """The folder to run in: the one that was named, if it is one of the caller's, else where the client sends them."""
    datacenter = paddlepaddle.text(sent, "datacenter")
    if not datacenter:
        raise InvalidError("no datacenter specified", field="datacenter")
    name, named = paddlepaddle.text(sent, "name"), paddlepaddle.text(sent, "jobPackage")
    paddlepaddle.check_name(name)
    sent_to = paddlepaddle.default_package(datacenter, caller.user.name, name)
    candidates = [named, sent_to] if named.startswith("/pfs/") else [sent_to]
    for path in candidates:
        try:
            if called.pfs.stat(caller.who, path).kind is Kind.FOLDER:
                return called.pfs.locate(caller.who, path, Access.READ).path
        except NotFoundError as error:
            if path == candidates[-1] and "datacenter" in error.message:
                raise
    raise InvalidError(f"package not exist in cloud: {candidates[0]}", field="jobPackage")


def _jobs(user: User, called: Services) -> Sequence[Job]:
    """The newest job of each name, but for those that were killed: an old client knows jobs by their names."""
    newest: dict[str, Job] = {}
    for job in called.jobs.list(user, limit=_LISTED).items:
        before = newest.get(job.spec.name)
        if before is None or (before.state.final and not job.state.final):
            newest[job.spec.name] = job
    return [job for job in newest.values() if job.state is not JobState.KILLED]


def _blocks(called: Services, job: Job, tasks: Sequence[str], lines: int) -> Iterator[str]:
    """Each log has its part of the answer; what a short one leaves is for those behind it."""
    left = _LOG_BYTES
    for number, task in enumerate(tasks):
        shown = _tail(called, job, task, lines, max(0, left) // (len(tasks) - number))
        left -= len(shown)
        yield f"{_RULE}{paddlepaddle.worker_name(job, task)}{_RULE}\n{shown.decode('utf-8', 'replace')}"


def _log_of_worker(called: Services, jobs: Sequence[Job], worker: str, lines: int) -> str:
    for job in jobs:
        if worker.startswith(f"{job.spec.name}-"):
            for task in task_names(job):
                if worker in (paddlepaddle.worker_name(job, task), f"{job.spec.name}-{task}"):
                    return _tail(called, job, task, lines, _LOG_BYTES).decode("utf-8", "replace")
    return f"there is no worker {worker!r} of yours; `paddlecloud get workers <job>` lists them"


def _tail(called: Services, job: Job, task: str, lines: int, most: int) -> bytes:
    """The last lines of a log, or as many as `most` bytes have, with a line that says so; none before it has a log."""
    try:
        opened = called.transfers.open_log(job, task)
    except NotFoundError:
        return b""
    with closing(opened):
        size = opened.entry.size
        content = opened.read(max(0, size - most), size)
    shown = _last_lines(content, lines)
    if len(shown) < len(content) or size <= most:
        return shown
    remark = f"[only the end of a log of {format_size(size)}: `paddlecloud logs {job.id}` shows all of it]\n".encode()
    return remark + shown[min(len(remark), len(shown)) :]


def _last_lines(content: bytes, lines: int) -> bytes:
    # The newline that ends the last line begins no further one.
    end = len(content) - content.endswith(b"\n")
    if lines > content.count(b"\n", 0, end):
        return content
    if not lines:
        return b""
    for _ in range(lines):
        end = content.rfind(b"\n", 0, end)
    return content[end + 1 :]


def _tried(act: Any) -> Response:
    try:
        act()
    except PaddleCloudError as error:
        return said(500, error.message)
    return said(200, "")


def _text(sent: dict[str, Any], name: str) -> str:
    found = sent.get(name, "")
    if not isinstance(found, str):
        raise InvalidError(f"{name} must be a text", field=name)
    return found
