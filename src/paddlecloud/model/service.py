"""What a server says of itself: its health, its clusters, its errors."""

from __future__ import annotations

from dataclasses import dataclass

from paddlecloud.model.job import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster that jobs may name. Capacity is None where it keeps its own queue or does not answer."""

    name: str
    backend: str
    policy: str  # "open", "free"
    default: bool  # whether `--cluster=default` may choose it
    capacity: Resources | None = None
    free: Resources | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetail:
    """An error as RFC 9457 words it; `code` names the class of model/errors.py to raise, `field` the wrong part."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`status` is "ok", or says in a word what the server still waits for."""

    status: str
    version: str
