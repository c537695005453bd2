"""Every error a user can meet, as one tree. `code` crosses the wire; the SDK raises the class the server raised.

PaddleCloudError
├── InvalidError           the request is wrong; `field` names the part
│   └── UnsupportedError   understood, but this server cannot do it
├── UnauthenticatedError   who are you?
│   └── StaleError         signed too early for this server: sign the request anew and send it again
├── ForbiddenError         you may not
│   └── QuotaError         you may not have more
├── NotFoundError          no such thing, or not yours
├── ConflictError          it is not in a state for that
├── TooLargeError          over a size limit
├── RateError              too often: nothing was done; wait `retry_after_seconds`, then ask again
├── FullError              no space left on the server
├── UnreachableError       a server or a backend does not answer
├── ConfigError            a config file or a set-up is wrong (never crosses the wire)
└── InternalError          our fault
"""

from __future__ import annotations

from typing import ClassVar


class PaddleCloudError(Exception):
    """Carries a sentence that says what happened, to what, and what to do."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class InvalidError(PaddleCloudError):
    code = "invalid"
    status = 422


class UnsupportedError(InvalidError):
    code = "unsupported"
    status = 422


class UnauthenticatedError(PaddleCloudError):
    code = "unauthenticated"
    status = 401


class StaleError(UnauthenticatedError):
    code = "stale"
    status = 401


class ForbiddenError(PaddleCloudError):
    code = "forbidden"
    status = 403


class QuotaError(ForbiddenError):
    code = "quota"
    status = 403


class NotFoundError(PaddleCloudError):
    code = "not_found"
    status = 404


class ConflictError(PaddleCloudError):
    code = "conflict"
    status = 409


class TooLargeError(PaddleCloudError):
    code = "too_large"
    status = 413


class RateError(PaddleCloudError):
    code = "rate"
    status = 429

    def __init__(self, message: str, *, field: str | None = None, retry_after_seconds: int | None = None) -> None:
        super().__init__(message, field=field)
        self.retry_after_seconds = retry_after_seconds


class FullError(PaddleCloudError):
    code = "full"
    status = 507


class UnreachableError(PaddleCloudError):
    code = "unreachable"
    status = 503


class ConfigError(PaddleCloudError):
    code = "config"


class InternalError(PaddleCloudError):
    code = "internal"


def _tree(root: type[PaddleCloudError]) -> list[type[PaddleCloudError]]:
    return [root, *(found for child in root.__subclasses__() for found in _tree(child))]


BY_CODE: dict[str, type[PaddleCloudError]] = {error.code: error for error in _tree(PaddleCloudError)}
