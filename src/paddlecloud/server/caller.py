"""Who calls, and the body they sent: read within a limit and compared with what was signed before anything acts.

A body that is cut in the middle ends the request here, so it changes nothing. Bodies and threads are taken out of
the caller's own share.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Literal

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool

from paddlecloud.model.errors import InvalidError, TooLargeError, UnauthenticatedError
from paddlecloud.model.job import Job
from paddlecloud.model.tree import CHUNK_BYTES
from paddlecloud.model.units import format_size
from paddlecloud.model.user import Scope
from paddlecloud.model.wire import nearest
from paddlecloud.server.agreement import is_loopback
from paddlecloud.server.audit import Origin
from paddlecloud.server.auth import Identity
from paddlecloud.server.services import Services

JSON_BYTES = 1024 * 1024
MANIFEST_BYTES = 64 * 1024 * 1024
PACK_BYTES = 16 * 1024 * 1024
STRANGER_BYTES = 16 * 1024

_LARGE_BYTES = 64 * 1024
_PAUSE_SECONDS = 60.0
_STRANGER_SECONDS = 10.0
_READS = ("GET", "HEAD")
_READING_POSTS = ("pack_files", "read_files")  # what they ask for is too long for an address
_PROXIED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


async def services(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


async def origin(request: Request) -> Origin:
    """Where a request comes from, for limits and the record."""
    address = request.client.host if request.client else ""
    return Origin(address=address, request_id=request.state.request_id, passed_on=is_passed_on(request))


async def known_parameters(request: Request) -> None:
    """Refuse a parameter that the route does not have: a misspelt filter must not list everything."""
    route = request.scope["route"]
    known = [field.alias for field in route.dependant.query_params] if isinstance(route, APIRoute) else []
    for name in request.query_params:
        if name not in known:
            hint = nearest(name, known) if known else "; this address takes none"
            raise InvalidError(f"{name} is not a known parameter{hint}", field=name)


async def identify(request: Request, services: Annotated[Services, Depends(services)]) -> Identity:
    """Who calls; their token's scope must allow what the method does."""
    raw_path = request.scope.get("raw_path") or request.url.path.encode()
    identity = await run_in_threadpool(
        services.authenticator.identify,
        request.method,
        raw_path.decode("latin-1"),
        request.scope["query_string"].decode("latin-1"),
        request.headers,
    )
    request.state.user = identity.user.name
    reads = request.method in _READS or request.scope["route"].name in _READING_POSTS
    identity.need(Scope.READ if reads else Scope.WRITE)
    return identity


async def take_turn(
    identity: Annotated[Identity, Depends(identify)], services: Annotated[Services, Depends(services)]
) -> AsyncIterator[Identity]:
    """Who calls, once it is their turn to use a thread."""
    async with services.shares.turns.take(identity.user.name):
        yield identity


async def identify_task(job_id: str, request: Request, services: Annotated[Services, Depends(services)]) -> Job:
    """The job that one of its own tasks speaks for."""
    job = await run_in_threadpool(services.shipping.identify, job_id, request.headers.get("authorization", ""))
    request.state.user = job.user
    if request.client is not None and not is_passed_on(request):
        services.hdfs_callers.task_called(job, request.client.host)
    return job


async def identify_scraper(request: Request, services: Annotated[Services, Depends(services)]) -> None:
    """Let in who reads metrics: an admin, or a program on this machine, where that is allowed."""
    if not (services.metrics.open_here and _is_here(request)):
        identity = await identify(request, services)
        identity.need_admin()


def _is_here(request: Request) -> bool:
    """Whether the request comes from this machine itself, not from a proxy on it that passes on what others ask."""
    return request.client is not None and is_loopback(request.client.host) and not is_passed_on(request)


def is_passed_on(request: Request) -> bool:
    """Whether a proxy says that it is one: the address is then that of the proxy."""
    return any(name in request.headers for name in _PROXIED)


async def identify_admin(identity: Annotated[Identity, Depends(identify)]) -> Identity:
    identity.need_admin()
    return identity


async def recheck(
    request: Request,
    identity: Annotated[Identity, Depends(identify)],
    services: Annotated[Services, Depends(services)],
) -> Callable[[], None]:
    """What raises once the caller may not see what they asked for any more, for answers that take long."""
    return partial(services.accounts.recheck, request.headers.get("authorization", ""), identity.user.role)


async def read_body(request: Request, limit: int) -> bytes:
    """The body, if it is not above `limit`."""
    body = bytearray()
    async for piece in body_pieces(request, limit):
        body += piece
    return bytes(body)


async def body_pieces(request: Request, limit: int | None = None) -> AsyncIterator[bytes]:
    """The body as it comes; what Content-Length claims is believed only when it is too much. None: no limit."""
    declared = request.headers.get("content-length", "")
    if limit is not None and declared.isdigit() and len(declared) < 18 and int(declared) > limit:
        raise _too_large(int(declared), limit)
    size = 0
    pieces = aiter(request.stream())
    while (piece := await _next(pieces)) is not None:
        size += len(piece)
        if limit is not None and size > limit:
            raise _too_large(size, limit)
        yield piece


async def read_from_stranger(request: Request, *, seconds: float = _STRANGER_SECONDS) -> bytes:
    """The body of someone who is not known yet, and so has no share to take it out of: it may be small and must come
    at once, however many of them there are."""
    try:
        async with asyncio.timeout(seconds):
            return await read_body(request, STRANGER_BYTES)
    except TimeoutError:
        raise InvalidError(f"the body did not come within {seconds:g} s: send it again, at once") from None


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    """The next piece of a body; None: that was all of it."""
    try:
        async with asyncio.timeout(_PAUSE_SECONDS):
            return await anext(pieces, None)
    except TimeoutError:
        raise InvalidError(f"no more of the body came for {_PAUSE_SECONDS:g} s: send it again") from None


def _signed(limit: int) -> Callable[[Request, Identity, Services], AsyncIterator[bytes]]:
    async def read(
        request: Request,
        identity: Annotated[Identity, Depends(identify)],
        services: Annotated[Services, Depends(services)],
    ) -> AsyncIterator[bytes]:
        shares, user = services.shares, identity.user.name
        async with shares.bodies.take(user, declared_bytes(request, limit)):
            body = await read_body(request, limit)
            async with shares.turns.take(user):
                await check_hash(body, identity)
                yield body

    return read


async def _of_task(
    request: Request,
    job: Annotated[Job, Depends(identify_task)],
    services: Annotated[Services, Depends(services)],
) -> AsyncIterator[bytes]:
    async with services.shares.bodies.take(job.user, declared_bytes(request, CHUNK_BYTES)):
        body = await read_body(request, CHUNK_BYTES)
        async with services.shares.turns.take(job.user):
            yield body


def declared_bytes(request: Request, limit: int) -> int:
    """How much memory the body will take: what is said of it, or all that it may have."""
    declared = request.headers.get("content-length", "")
    return min(int(declared), limit) if declared.isdigit() and len(declared) < 18 else limit


async def check_hash(body: bytes, identity: Identity) -> None:
    """Raise unless the body is the one that was signed, if one was."""
    if identity.body_hash is not None:
        # A large body takes long enough to hash that others would wait for it.
        found = await run_in_threadpool(_hash, body) if len(body) > _LARGE_BYTES else _hash(body)
        compare_hash(found, identity.body_hash)


def compare_hash(found: str, signed: str) -> None:
    if not hmac.compare_digest(found, signed):
        raise UnauthenticatedError("the body is not the one that was signed: it was changed on its way")


def _hash(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _too_large(size: int, limit: int) -> TooLargeError:
    return TooLargeError(f"the body has {format_size(size)} or more; {format_size(limit)} is the most here")


# A turn ends with the function that it was taken for, not with the last byte of its answer.
_ENDS_EARLY: Literal["function"] = "function"

Called = Annotated[Services, Depends(services)]
FromWhere = Annotated[Origin, Depends(origin)]
Caller = Annotated[Identity, Depends(take_turn, scope=_ENDS_EARLY)]
Sender = Annotated[Identity, Depends(identify)]  # of a body, which has its turn when it has come: never take two
Recheck = Annotated[Callable[[], None], Depends(recheck)]
OfTask = Annotated[Job, Depends(identify_task)]
Admin = Annotated[Identity, Depends(identify_admin)]
Scraper = Annotated[None, Depends(identify_scraper)]
JsonBody = Annotated[bytes, Depends(_signed(JSON_BYTES), scope=_ENDS_EARLY)]
ManifestBody = Annotated[bytes, Depends(_signed(MANIFEST_BYTES), scope=_ENDS_EARLY)]
ChunkBody = Annotated[bytes, Depends(_signed(CHUNK_BYTES), scope=_ENDS_EARLY)]
PackBody = Annotated[bytes, Depends(_signed(PACK_BYTES), scope=_ENDS_EARLY)]
LogBody = Annotated[bytes, Depends(_of_task, scope=_ENDS_EARLY)]
