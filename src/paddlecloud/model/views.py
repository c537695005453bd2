"""What crosses the wire beside the records themselves: the bodies of requests and answers of `/v1`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from paddlecloud.model.job import Job, JobSpec, Moved, Resources
from paddlecloud.model.state import JobState
from paddlecloud.model.task import TaskReport
from paddlecloud.model.tree import Kind
from paddlecloud.model.user import AccessKey, Quota, Role, Scope, Token


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Where a waiting job stands: 1 is the front. `about_at` is None where nothing tells when it starts."""

    position: int
    about_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail:
    """All there is to say about one job. `log_tasks` are the tasks that have a log to read."""

    job: Job
    tasks: tuple[TaskReport, ...] = ()
    history: tuple[Moved, ...] = ()
    forecast: Forecast | None = None
    log_tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The answer to a job that would be taken: as it would be recorded, and how large its folder may be."""

    spec: JobSpec
    upload_limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some jobs, newest first; `next_cursor` asks for those after them, None: there are no more."""

    items: tuple[Job, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One path of a job's results, named `output/<job>/…` (see `paths.text_of`); a folder's ends in `/`.

    A folder is listed where nothing below it would name it; the results' own folder always is.
    """

    path: str
    size: int
    modified_at: datetime
    kind: Kind
    target: str = ""  # of a link


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    items: tuple[FileEntry, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPlan:
    """The answer to a manifest: its tree's id and the chunks still to send; none missing: the tree is laid out."""

    tree: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Some text of one task's log. `offset` is the byte after it, where the next piece of the task begins."""

    task: str
    offset: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
    """Closes a stream of logs: the state that the job was in when all of its log had been sent."""

    state: JobState


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
class QuotaUse:
    user: str
    quota: Quota
    running_jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginRequest:
    name: str
    password: str
    expires_in_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRequest:
    name: str
    role: Role = Role.USER
    password: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserChange:
    """What to change of a user; None leaves it as it is. `quota` is replaced as a whole."""

    disabled: bool | None = None
    role: Role | None = None
    password: str | None = None
    quota: Quota | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """`user` is the owner of the new access key, None: who asks; only an admin may name another."""

    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """An access key with its secret, which is shown this once."""

    key: AccessKey
    sk: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    name: str
    scope: Scope = Scope.WRITE
    expires_in_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A bearer token with its secret, which is shown this once."""

    token: Token
    secret: str


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
