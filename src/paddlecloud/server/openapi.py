"""The OpenAPI 3.1 document: FastAPI's own, with bodies and answers from the structs that the wire carries."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from paddlecloud.model.accounts import (
    KeyRequest,
    LoginRequest,
    NewKey,
    NewToken,
    QuotaUse,
    Registration,
    RegistrationRequest,
    TokenRequest,
    UserChange,
    UserRequest,
    WebHdfsAccess,
)
from paddlecloud.model.audit import AuditPage
from paddlecloud.model.away import Claim, OutputLength, Run, TaskNews
from paddlecloud.model.bos import StorageKey, StorageKeyRequest
from paddlecloud.model.finding import Finding
from paddlecloud.model.group import Group, GroupChange, GroupRequest
from paddlecloud.model.job import Job, JobSpec, Moved
from paddlecloud.model.log import LogEnd, LogLength, LogPiece
from paddlecloud.model.openpai.submitted import OpenPaiJob, OpenPaiRequest
from paddlecloud.model.registry import Registry, RegistryRequest
from paddlecloud.model.service import Cluster, Health, ProblemDetail, Queue
from paddlecloud.model.shared import SharedFolder, SharedRequest
from paddlecloud.model.space import Collection, CollectionRequest, Space
from paddlecloud.model.task import TaskReport
from paddlecloud.model.transfers import (
    CopyReport,
    CopyRequest,
    Datacenter,
    FileEntry,
    FilePage,
    FilePlan,
    FileRequest,
    FolderRequest,
    MoveRequest,
    PackRequest,
    RoomRequest,
    UploadPlan,
)
from paddlecloud.model.tree import Manifest
from paddlecloud.model.user import AccessKey, Account, Token, User
from paddlecloud.model.views import Acceptance, JobDetail, JobPage
from paddlecloud.server import problems

JSON = "application/json"
EVENTS = "text/event-stream"
BYTES = "application/octet-stream"
TEXT = "text/plain"

_REF = "#/components/schemas/{name}"
_CARRIED = (
    *(
        Acceptance,
        AccessKey,
        Account,
        AuditPage,
        Cluster,
        FilePage,
        Finding,
        Health,
        Job,
        JobDetail,
        JobPage,
        JobSpec,
        KeyRequest,
        LogEnd,
        LogLength,
        Run,
        Claim,
        TaskNews,
        OutputLength,
    ),
    *(
        LoginRequest,
        LogPiece,
        Manifest,
        Moved,
        NewKey,
        NewToken,
        PackRequest,
        ProblemDetail,
        Queue,
        QuotaUse,
        Registration,
        RegistrationRequest,
        Registry,
        RegistryRequest,
        TaskReport,
        Token,
        TokenRequest,
    ),
    *(Collection, CollectionRequest, Space, UploadPlan, User, UserChange, UserRequest, WebHdfsAccess),
    *(StorageKey, StorageKeyRequest, Group, GroupChange, GroupRequest, SharedFolder, SharedRequest),
    *(OpenPaiJob, OpenPaiRequest),
    *(CopyReport, CopyRequest, Datacenter, FileEntry, FilePlan, FileRequest, FolderRequest, MoveRequest, RoomRequest),
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
    429: "Too often: Retry-After says when again",
    500: "A fault of the server",
    503: "The server is not ready",
    507: "No space left on the server",
}
_TEXT_SCHEMA = {"type": "string"}
_EVENT = {"type": "object", "properties": {"event": _TEXT_SCHEMA, "id": _TEXT_SCHEMA, "data": _TEXT_SCHEMA}}
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token of `paddlecloud login` or `token create`."},
    "signature": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "PC1-HMAC-SHA256 Credential=<ak>, Signature=<hex>, with the headers X-PC-Date, X-PC-Nonce and "
        "X-PC-Content-SHA256; the lines METHOD, path, query, body hash, date and nonce are signed with the sk.",
    },
    "task": {"type": "http", "scheme": "bearer", "description": "The token of one attempt of one job, for its tasks."},
}


def says(
    answer: Any = None,
    *,
    status: int = 200,
    media: str = JSON,
    body: Any = None,
    body_media: str = JSON,
    errors: Sequence[int] = (),
    security: Sequence[str] = ("bearer", "signature"),
) -> dict[str, Any]:
    """What a route takes and answers, for its part of the document.

    Any one of `security` identifies who asks; "" among them is nobody, who may be answered too.
    """
    described: dict[str, Any] = {
        "responses": {str(status): _answer(answer, media)}
        | {str(code): _problem(code) for code in (*errors, 422, 500, *((401, 403) if security else ()))},
        "security": [{name: []} if name else {} for name in security],
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
    schema = _EVENT if media == EVENTS else _schema(kind)
    return {"description": "The answer", "content": {media: {"schema": schema}}}


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
