"""What a server says of itself: its health, its clusters and queues, its errors."""

from __future__ import annotations

from msgspec import Struct

from paddlecloud.model.job import Resources


class Cluster(Struct, frozen=True, kw_only=True):
    """A cluster that jobs may name. Capacity is None where it does not tell, or does not answer: `down` says why.

    `memory_limit` says whose memory the kernel limits: of a "task" as a whole, or of each "process" alone, where a task
    above its limit is ended about a second later. None: the cluster's own manager limits it.
    """

    name: str
    backend: str
    policy: str  # "open", "free"
    default: bool  # whether `--cluster=default` may choose it
    capacity: Resources | None = None
    free: Resources | None = None
    memory_limit: str | None = None
    down: str | None = None  # why it does not answer; None: it is up


class Queue(Struct, frozen=True, kw_only=True):
    """A queue that a job may name. `users` and the members of `groups` may use it; both empty: everyone.

    `cpus`, `memory_bytes` and `gpus` are the most that its jobs use at a time, None: no limit; `used` is what they do.
    """

    name: str
    cluster: str  # where its jobs go
    time_limit_seconds: int | None = None  # the longest run of one job
    priority: int = 0
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    used: Resources = Resources()


class ProblemDetail(Struct, frozen=True, kw_only=True):
    """An error as RFC 9457 words it; `code` names the class of model/errors.py to raise, `field` the wrong part."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    field: str | None = None
    request_id: str = ""


class Health(Struct, frozen=True, kw_only=True):
    """`status` is "ok", or says in a word what the server still waits for."""

    status: str
    version: str
