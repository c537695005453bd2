"""What crosses the wire about jobs beside their records: the bodies of requests and answers of `/v1`.

Each subject has a module of its own, for it takes a command time to make the classes that it does not need.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from paddlecloud.model.job import Job, JobSpec, Moved
from paddlecloud.model.kept import Removed
from paddlecloud.model.task import TaskReport


class Forecast(Struct, frozen=True, kw_only=True):
    """Where a waiting job stands: 1 is the front. `about_at` is None where nothing tells when it starts."""

    position: int
    about_at: datetime | None = None


class JobDetail(Struct, frozen=True, kw_only=True):
    """All there is to say about one job. `log_tasks` are the tasks that have a log to read, `removed` what the server
    has kept long enough, `sending` says what keeps its results from a bucket of its user's own, `notes` what a job that
    was written for another system asks for and does not get, `longest_seconds` the longest run that its user may ask
    for (None: any), where its time was over."""

    job: Job
    tasks: tuple[TaskReport, ...] = ()
    history: tuple[Moved, ...] = ()
    forecast: Forecast | None = None
    log_tasks: tuple[str, ...] = ()
    removed: tuple[Removed, ...] = ()
    sending: str = ""
    notes: tuple[str, ...] = ()
    longest_seconds: int | None = None


class Acceptance(Struct, frozen=True, kw_only=True):
    """The answer to a job that would be taken: as it would be recorded, and how large its folder may be."""

    spec: JobSpec
    upload_limit_bytes: int


class JobPage(Struct, frozen=True, kw_only=True):
    """Some jobs, newest first; `next_cursor` asks for those after them, None: there are no more."""

    items: tuple[Job, ...]
    next_cursor: str | None = None
