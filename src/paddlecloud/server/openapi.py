"""The OpenAPI 3.1 document: FastAPI's own, with bodies and answers from the dataclasses that the wire carries."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from paddlecloud.model.job import Job, JobSpec, Moved
from paddlecloud.model.task import TaskReport
from paddlecloud.model.tree import Manifest
from paddlecloud.model.user import AccessKey, Token, User
from paddlecloud.model.views import (
    Acceptance,
    Cluster,
    FilePage,
    Health,
    JobDetail,
    JobPage,
    KeyRequest,
    LogEnd,
    LoginRequest,
    LogPiece,
    NewKey,
    NewToken,
    ProblemDetail,
    QuotaUse,
    TokenRequest,
    UploadPlan,
    UserChange,
    UserRequest,
)
from paddlecloud.server import problems

JSON = "application/json"
EVENTS = "text/event-stream"
BYTES = "application/octet-stream"
TEXT = "text/plain"

_REF = "#/components/schemas/{name}"
_CARRIED = (
    *(Acceptance, AccessKey, Cluster, FilePage, Health, Job, JobDetail, JobPage, JobSpec, KeyRequest, LogEnd, LogPiece),
    *(LoginRequest, Manifest, Moved, NewKey, NewToken, ProblemDetail, QuotaUse, TaskReport, Token, TokenRequest),
    *(UploadPlan, User, UserChange, UserRequest),
)
_TITLES = {
    401: "It is not known who asks",
    403: "Who asks may not do this",
    404: "There is no such thing, or it is not theirs",
    405: "Not this method",
    409: "It is not in a state for that",
    412: "It has changed meanwhile",
    413: "Over a size limit",
    416: "No such range",
    422: "The request is wrong",
    500: "A fault of the server",
    503: "The server is not ready",
    507: "No space left on the server",
}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token of `paddlecloud login` or `token create`."},
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "PC1-HMAC-SHA256 Credential=<ak>, Signature=<hex>, with the headers X-PC-Date, X-PC-Nonce and "
        "X-PC-Content-SHA256; the lines METHOD, path, query, body hash, date and nonce are signed with the sk.",
    },
}


def says(
    answer: Any = None,
    *,
    status: int = 200,
    media: str = JSON,
    body: Any = None,
    body_media: str = JSON,
    errors: Sequence[int] = (),
    public: bool = False,
) -> dict[str, Any]:
    """What a route takes and answers, for its part of the document; `public` needs no identity."""
    described: dict[str, Any] = {
        "responses": {str(status): _answer(answer, media)}
        | {str(code): _problem(code) for code in (*errors, 422, 500, *(() if public else (401, 403)))},
        "security": [] if public else [{name: []} for name in _SECURITY],
    }
    if body is not None:
        described["requestBody"] = {"required": True, "content": {body_media: {"schema": _schema(body)}}}
    return described


def document(app: FastAPI) -> dict[str, Any]:
    made = get_openapi(
        title="PaddleCloud",
        version=app.version,
        openapi_version="3.1.0",
        summary="Submit training jobs, follow them, and fetch their results.",
        routes=app.routes,
    )
    _, schemas = msgspec.json.schema_components(_CARRIED, ref_template=_REF)
    made["components"] = {"schemas": {name: _strict(schema) for name, schema in sorted(schemas.items())}}
    made["components"]["securitySchemes"] = _SECURITY
    for operation in _operations(made):
        # FastAPI describes an error body that no answer of ours has.
        operation["responses"]["422"] = _problem(422)
    return made


def _answer(kind: Any, media: str) -> dict[str, Any]:
    if kind is None and media == JSON:
        return {"description": "Done"}
    return {"description": "The answer", "content": {media: {"schema": _schema(kind)}}}


def _problem(status: int) -> dict[str, Any]:
    content = {problems.MEDIA_TYPE: {"schema": _schema(ProblemDetail)}}
    return {"description": _TITLES[status], "content": content}


def _schema(kind: Any) -> dict[str, Any]:
    if typing.get_origin(kind) is list:
        return {"type": "array", "items": _schema(typing.get_args(kind)[0])}
    if kind is None or kind is bytes:
        return {}
    return {"type": "string"} if kind is str else {"$ref": _REF.format(name=kind.__name__)}


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Unknown fields are refused, in both directions."""
    return schema | {"additionalProperties": False} if "properties" in schema else schema


def _operations(made: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in made["paths"].values():
        yield from path.values()
