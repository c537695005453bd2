"""Errors as WebHDFS writes them: the name of a Java exception, its class and a message, beside a few statuses.

Clients know 400, 401, 403, 404 and 500. The one of Node hangs for ever at any other, and that of Python falls over a
body that is not of this shape. 429 goes only to callers that were refused too often, and so have no working client.
"""

from __future__ import annotations

import json

from fastapi import Response

from paddlecloud.model import hdfspath
from paddlecloud.model.errors import (
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    QuotaError,
    RateError,
    UnauthenticatedError,
)

_PACKAGES = {
    "AccessControlException": "org.apache.hadoop.security",
    "AclException": "org.apache.hadoop.hdfs.protocol",
    "AlreadyBeingCreatedException": "org.apache.hadoop.hdfs.protocol",
    "EOFException": "java.io",
    "FileAlreadyExistsException": "org.apache.hadoop.fs",
    "FileNotFoundException": "java.io",
    "IOException": "java.io",
    "IllegalArgumentException": "java.lang",
    "InvalidPathException": "org.apache.hadoop.fs",
    "ParentNotDirectoryException": "org.apache.hadoop.fs",
    "PathIsNotEmptyDirectoryException": "org.apache.hadoop.fs",
    "RuntimeException": "java.lang",
    "SecurityException": "java.lang",
    "UnsupportedOperationException": "java.lang",
}
_STATUSES = {
    "FileNotFoundException": 404,
    "IllegalArgumentException": 400,
    "InvalidPathException": 400,
    "RuntimeException": 500,
    "SecurityException": 401,
    "UnsupportedOperationException": 400,
}
_KINDS: tuple[tuple[type[PaddleCloudError], str], ...] = (
    (UnauthenticatedError, "SecurityException"),
    (QuotaError, "IOException"),
    (ForbiddenError, "AccessControlException"),
    (NotFoundError, "FileNotFoundException"),
    (InvalidError, "IllegalArgumentException"),
)


class HdfsError(Exception):
    """What is refused, as an exception of Hadoop."""

    def __init__(self, exception: str, message: str) -> None:
        super().__init__(message)
        self.exception = exception
        self.message = message
        self.status = _STATUSES.get(exception, 403)
        self.retry_after_seconds: int | None = None


def of_ours(error: PaddleCloudError) -> HdfsError:
    """Everything that has no exception of its own is an IOException, which is a fault of the server where ours is."""
    exception = next((name for kind, name in _KINDS if isinstance(error, kind)), "IOException")
    made = HdfsError(exception, error.message)
    if isinstance(error, RateError):
        made.status, made.retry_after_seconds = error.status, error.retry_after_seconds
    if exception == "IOException" and error.status in (500, 503):
        made.status = 500
    return made


def answer(error: HdfsError) -> Response:
    told = {
        "exception": error.exception,
        "javaClassName": f"{_PACKAGES[error.exception]}.{error.exception}",
        "message": hdfspath.shown(error.message),
    }
    body = json.dumps({"RemoteException": told}, ensure_ascii=False)
    wait = error.retry_after_seconds
    headers = None if wait is None else {"Retry-After": str(wait)}
    return Response(body.encode("utf-8", "replace"), error.status, headers, media_type="application/json")


def invalid(name: str, why: str) -> HdfsError:
    return HdfsError("IllegalArgumentException", f'Invalid value for webhdfs parameter "{name}": {why}')


def no_such_op(method: str, op: str) -> HdfsError:
    """In the words by which clients know that a server is too old for an operation."""
    at = f"org.apache.hadoop.hdfs.web.resources.{method.capitalize()}OpParam.Op.{op}"
    return invalid("op", f"java.lang.IllegalArgumentException: No enum constant {at}")


def missing(path: str) -> HdfsError:
    return HdfsError("FileNotFoundException", f"File does not exist: {path}")


def not_found(path: str) -> HdfsError:
    return HdfsError("FileNotFoundException", f"File {path} not found.")
