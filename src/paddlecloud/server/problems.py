"""Errors as RFC 9457 problems: one shape for every answer that is not a success, and never a traceback in it."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from paddlecloud.model import wire
from paddlecloud.model.errors import (
    ForbiddenError,
    InternalError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    RateError,
    UnauthenticatedError,
    UnreachableError,
)
from paddlecloud.model.service import ProblemDetail
from paddlecloud.server.secret_paths import without_secret

MEDIA_TYPE = "application/problem+json"
_TITLES = {
    400: "Bad request",
    401: "Unauthenticated",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    412: "Precondition failed",
    413: "Too large",
    416: "Range not satisfiable",
    422: "Invalid",
    429: "Too often",
    500: "Internal error",
    503: "Unreachable",
    507: "No space left",
}


def install(app: FastAPI) -> None:
    app.add_exception_handler(PaddleCloudError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid_parameters)
    app.add_exception_handler(HTTPException, _of_the_framework)


def problem(error: PaddleCloudError, request_id: str, *, status: int | None = None) -> Response:
    status = status or error.status
    detail = ProblemDetail(
        type=f"urn:paddlecloud:problem:{error.code}",
        title=_TITLES.get(status, "Error"),
        status=status,
        detail=error.message,
        code=error.code,
        field=error.field,
        request_id=request_id,
    )
    headers: Mapping[str, str] = {}
    if isinstance(error, UnauthenticatedError):
        headers = {"WWW-Authenticate": 'Bearer realm="paddlecloud", PC1-HMAC-SHA256 realm="paddlecloud"'}
    elif isinstance(error, UnreachableError):
        headers = {"Retry-After": "2"}
    elif isinstance(error, RateError) and error.retry_after_seconds is not None:
        headers = {"Retry-After": str(error.retry_after_seconds)}
    return Response(wire.encode(detail), status, headers, MEDIA_TYPE)


def request_id(request: Request) -> str:
    found: str = request.state.request_id
    return found


async def _ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, PaddleCloudError):
        raise error
    return problem(error, request_id(request))


async def _invalid_parameters(request: Request, error: Exception) -> Response:
    """FastAPI checks parameters of the path, the query and headers; the first wrong one is named."""
    if not isinstance(error, RequestValidationError):
        raise error
    first = error.errors()[0]
    name = str(first["loc"][-1])
    return problem(InvalidError(f"{name}: {first['msg']}", field=name), request_id(request))


async def _of_the_framework(request: Request, error: Exception) -> Response:
    """Unknown paths and methods, which no route of ours was asked about."""
    if not isinstance(error, HTTPException):
        raise error
    what = f"{request.method} {without_secret(request.url.path)}"
    ours: PaddleCloudError
    if error.status_code == 404:
        ours = NotFoundError(f"{what}: no such address; GET /v1/openapi.json lists those there are")
    elif error.status_code == 405:
        ours = InvalidError(f"{what}: this address takes {(error.headers or {}).get('Allow', 'another method')}")
    elif error.status_code == 403:
        ours = ForbiddenError(str(error.detail))
    elif error.status_code < 500:
        ours = InvalidError(str(error.detail))
    else:
        ours = InternalError(str(error.detail))
    answer = problem(ours, request_id(request), status=error.status_code)
    answer.headers.update(error.headers or {})
    return answer
