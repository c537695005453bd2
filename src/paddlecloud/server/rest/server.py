"""Routes about the server itself: whether it is well, its clusters and queues, and the description of all others."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Request, Response

from paddlecloud.model import wire
from paddlecloud.model.finding import Finding
from paddlecloud.model.service import Cluster, Health, Queue
from paddlecloud.server.caller import Admin, Called, Caller, Scraper, known_parameters
from paddlecloud.server.openapi import TEXT, document, says
from paddlecloud.server.rest.answers import answer

router = APIRouter(tags=["server"], default_response_class=Response, dependencies=[Depends(known_parameters)])


@router.get("/healthz", openapi_extra=says(Health, security=()))
async def healthz(request: Request) -> Response:
    """Whether the process answers."""
    return answer(Health(status="ok", version=request.app.version))


@router.get("/readyz", openapi_extra=says(Health, security=(), errors=(503,)))
def readyz(request: Request, called: Called) -> Response:
    """Whether records can be read and jobs are being scheduled."""
    called.check_ready()
    return answer(Health(status="ok", version=request.app.version))


@router.get("/metrics", openapi_extra=says(str, media=TEXT, security=("", "bearer", "signature")))
def metrics(request: Request, called: Called, _: Scraper) -> Response:
    """What Prometheus asks for: for admins, and, unless a setting forbids it, for whoever asks from this machine."""
    text, media_type = called.metrics.text(request.headers.get("accept", ""))
    return Response(text, headers={"Content-Type": media_type})


@router.get("/v1/openapi.json", openapi_extra=says(security=()))
async def openapi(request: Request) -> Response:
    """This description."""
    state = request.app.state
    if not hasattr(state, "document"):
        # Once: anybody may ask for it, and it takes long to make.
        state.document = wire.encode(document(request.app))
    return Response(state.document, media_type="application/json")


@router.get("/v1/doctor", openapi_extra=says(list[Finding]))
def doctor(_: Admin, called: Called) -> Response:
    """What is well with the server and its machine, and what is not; for admins."""
    return answer(called.doctor())


@router.get("/v1/clusters", openapi_extra=says(list[Cluster]))
def clusters(_: Caller, called: Called) -> Response:
    """The clusters that a job may name, with what they have and what is free."""
    return answer(called.clusters.list(called.loop.snapshot()))


@router.get("/v1/queues", openapi_extra=says(list[Queue]))
def queues(caller: Caller, called: Called) -> Response:
    """The queues that a job of the caller may name, and what they take."""
    return answer(called.queues.list(caller.user.name, called.loop.snapshot().placed))
