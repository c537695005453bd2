"""What OpenPAI answers to what it will not do: a status, a code that its clients act upon, and a sentence."""

from __future__ import annotations

from paddlecloud.model.errors import (
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    PaddleCloudError,
    QuotaError,
    RateError,
    TooLargeError,
    UnauthenticatedError,
)


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str, *, later_seconds: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.later_seconds = later_seconds


def of_error(error: PaddleCloudError) -> Refusal:
    """An error of ours as OpenPAI's clients read it."""
    if isinstance(error, QuotaError):
        return Refusal(403, "NoEnoughQuotaError", error.message)
    if isinstance(error, RateError):
        return Refusal(429, "TooManyRequestsError", error.message, later_seconds=error.retry_after_seconds)
    for kind, status, code in _CODES:
        if isinstance(error, kind):
            return Refusal(status, code, error.message)
    return Refusal(error.status, "UnknownError", error.message)


_CODES = (
    (InvalidError, 400, "InvalidParametersError"),
    (UnauthenticatedError, 401, "UnauthorizedUserError"),
    (ForbiddenError, 403, "ForbiddenUserError"),
    (NotFoundError, 404, "NotFoundError"),
    (ConflictError, 409, "ConflictError"),
    (TooLargeError, 413, "InvalidParametersError"),
)


def guest() -> Refusal:
    return Refusal(401, "UnauthorizedUserError", "Guest is not allowed to do this operation.")


def bad_token() -> Refusal:
    return Refusal(401, "UnauthorizedUserError", "Your token is invalid.")


def application(what: str = "this operation") -> Refusal:
    return Refusal(403, "ForbiddenUserError", f"Applications are not allowed to do {what}.")


def not_admin() -> Refusal:
    return Refusal(403, "ForbiddenUserError", "Non-admin is not allowed to do this operation.")


def forbidden(message: str) -> Refusal:
    return Refusal(403, "ForbiddenUserError", message)


def no_api(path: str) -> Refusal:
    return Refusal(404, "NoApiError", f"API {path} is not found.")


def no_job(name: str) -> Refusal:
    return Refusal(404, "NoJobError", f"Job {name} is not found.")


def no_config(name: str) -> Refusal:
    return Refusal(404, "NoJobConfigError", f"Config of job {name} is not found.")


def no_ssh(name: str) -> Refusal:
    return Refusal(404, "NoJobSshInfoError", f"SSH info of job {name} is not found.")


def no_log(message: str) -> Refusal:
    return Refusal(404, "NoTaskLogError", message)


def no_user(name: str, status: int = 404) -> Refusal:
    return Refusal(status, "NoUserError", f"User {name} is not found.")


def no_group(name: str, status: int = 404) -> Refusal:
    return Refusal(status, "NoGroupError", f"Group {name} is not found.")


def no_virtual_cluster(name: str, status: int = 404) -> Refusal:
    return Refusal(status, "NoVirtualClusterError", f"Virtual cluster {name} is not found.")


def no_storage(name: str) -> Refusal:
    return Refusal(404, "NoStorageError", f"Storage {name} is not found.")


def no_tag(tag: str) -> Refusal:
    return Refusal(404, "NoTagError", f"Tag {tag} is not found.")


def invalid(message: str) -> Refusal:
    return Refusal(400, "InvalidParametersError", message)
