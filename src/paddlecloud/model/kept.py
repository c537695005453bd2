"""What is kept for a while, and what a job has no more of it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from paddlecloud.model import paths


class Kept(StrEnum):
    """What is kept by rules of its own; the words are those of the settings in [retention]."""

    RESULTS = "results"
    LOGS = "logs"
    JOBS = "jobs"
    UPLOADS = "uploads"
    ENVIRONMENTS = "environments"
    AUDIT = "audit"


OWNER = "its owner"  # how the name of who let it go begins, where that was no setting
LEFT_BY_JOBS = (Kept.RESULTS, Kept.LOGS)


def kinds_at(path: str) -> tuple[Kept, ...]:
    """Of which kinds the files are at and below a path of a job's results; "" is all of them."""
    if not path:
        return LEFT_BY_JOBS
    return (Kept.LOGS,) if path.partition("/")[0] == paths.LOGS else (Kept.RESULTS,)


class Removed(Struct, frozen=True, kw_only=True):
    """What a finished job has no more: `by` is the setting that let it go, or its owner."""

    kind: Kept
    at: datetime
    by: str

    @property
    def words(self) -> str:
        who = self.by if self.by.startswith(OWNER) else f"the server's retention ({self.by})"
        return f"removed on {self.at:%Y-%m-%d} by {who}"

    def sentence(self, job: str) -> str:
        return f"the {self.kind.value} of {job} were {self.words}"
