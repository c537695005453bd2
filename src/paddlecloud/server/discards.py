"""Results of ended jobs that their owner lets go: recorded as retention records what it takes, so that every face tells
what became of them, and what a crash breaks off the next collection finishes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from paddlecloud.files.collect import JobFiles
from paddlecloud.files.results import Results
from paddlecloud.model.errors import ConflictError, NotFoundError
from paddlecloud.model.kept import LEFT_BY_JOBS, OWNER
from paddlecloud.model.retention import Going, Item
from paddlecloud.runtime.removal import at_once
from paddlecloud.server.collectors import LeftByJobs
from paddlecloud.store.db import Database
from paddlecloud.store.remains import Ended, Remains


class Discards:
    def __init__(self, remains: Remains, files: JobFiles, clock: Callable[[], datetime]) -> None:
        self._remains = remains
        self._files = files
        self._clock = clock

    def discard(self, user: str, job: str) -> None:
        """Let all go that an ended job of the user's has left."""
        owned = self._remains.owned([job]).get(job)
        if owned is None or owned.user != user:
            raise NotFoundError(f"no job {job!r} of yours; `paddlecloud ls` lists them", field="path")
        if owned.busy or owned.ended_at is None:
            raise ConflictError(
                f"{job} has not ended, or is still being cleaned up: its results can be removed when it has "
                f"(paddlecloud wait {job}, or kill it)"
            )
        left = self._files.count(user, job)
        gone = self._remains.removed(job)
        if gone and not any(used.files for used in left.values()):
            raise NotFoundError("; ".join(one.sentence(job) for one in gone), field="path")
        if not owned.measured:
            self._remains.measure([(Ended(job=job, user=user, ended_at=owned.ended_at), left)])
        now = self._clock()
        going = [Going(Item(name=job, user=user, since=owned.ended_at), f"{OWNER} {user}")]
        for kind in LEFT_BY_JOBS:
            if not LeftByJobs(kind, self._remains, self._files).remove(going, now):
                raise ConflictError(
                    f"not all of the {kind.value} of {job} could be removed now: the server tries again by itself"
                )


def open_discards(database: Database, results: Results, marks: Path, clock: Callable[[], datetime]) -> Discards:
    """Without the pace of what works in the background: somebody waits for it."""
    return Discards(Remains(database), JobFiles(results, marks, at_once), clock)
