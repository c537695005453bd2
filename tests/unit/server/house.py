"""A data folder with its records and files, a clock that a test sets, and jobs that end when a test says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model.job import Job
from paddlecloud.model.state import JobState
from paddlecloud.server.audit import AuditService
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.housekeeping import Housekeeping, housekeeping
from paddlecloud.server.pace import Pace
from paddlecloud.server.settings import RetentionSettings
from paddlecloud.store.audit import Audit
from paddlecloud.store.db import Database
from paddlecloud.store.jobs import Jobs
from tests import trees
from tests.contract.records import NOW, a_job, a_move
from tests.migrated import migrated


@dataclass
class House:
    root: Path
    database: Database
    now: datetime = NOW
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        self.folder = DataFolder(self.root)
        self.jobs = Jobs(self.database)
        self.uploads = Uploads(self.folder.files)
        self.results = Results(self.folder.results)
        self.audit = AuditService(Audit(self.database), lambda: self.now)

    def keeping(
        self,
        *,
        jobs: timedelta | None = None,
        results: timedelta | None = None,
        logs: timedelta | None = None,
        uploads: timedelta | None = None,
        results_size: int | None = None,
        uploads_size: int | None = None,
        audit: timedelta | None = None,
    ) -> Housekeeping:
        """What keeps house by these settings of [retention]."""
        return housekeeping(
            RetentionSettings(
                jobs=jobs,
                results=results,
                logs=logs,
                uploads=uploads,
                results_size=results_size,
                uploads_size=uploads_size,
                audit=audit,
            ),
            folder=self.folder,
            database=self.database,
            uploads=self.uploads,
            results=self.results,
            audit=self.audit,
            clock=lambda: self.now,
            pace=self.pace,
        )

    def later(self, **span: float) -> None:
        self.now += timedelta(**span)

    def submitted(self, user: str = "ann", tree: str | None = None) -> Job:
        return self.jobs.add(replace(a_job(user, tree=tree), created_at=self.now), group="group")

    def brought(self, *states: JobState, user: str = "ann", tree: str | None = None, size: int = 4096) -> Job:
        """A job that went through these states, and has written results and a log."""
        job = self.submitted(user, tree)
        for state in states:
            job = self.jobs.move(job, replace(a_move(state), at=self.now))
        self.write(job, size)
        return job

    def ended(self, user: str = "ann", tree: str | None = None, size: int = 4096) -> Job:
        job = self.brought(JobState.SCHEDULE, JobState.RUNNING, JobState.SUCCESS, user=user, tree=tree, size=size)
        self.jobs.cleaned([job.handle])
        return job

    def write(self, job: Job, size: int) -> None:
        folder = self.results.folder(job)
        (self.folder.marks / job.id).mkdir(parents=True, exist_ok=True)
        (self.folder.marks / job.id / "trainer-0").write_text("1.0 5\n")
        for name in ("log/trainer-0.log", "rank-0/model"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(bytes(size))

    def has(self, job: Job) -> list[str]:
        """What is left of a job's files."""
        folder = self.folder.results / job.user / job.id
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())

    def uploaded(self, content: bytes, user: str = "ann") -> str:
        """An uploaded folder of one file, sent now; its id."""
        wanted = trees.manifest({"file": content})
        trees.send(self.uploads, user, wanted, content)
        tree = self.uploads.seal(user, wanted)
        self.asked(tree, user)
        return tree

    def asked(self, tree: str, user: str = "ann") -> None:
        """It was asked for again, by our clock."""
        os.utime(self.folder.files / user / "trees" / tree, (self.now.timestamp(),) * 2)

    def trees(self, user: str = "ann") -> set[str]:
        return {tree.id for tree in self.uploads.trees.of(user)}


@contextmanager
def opened(root: Path, pace: Pace | None = None) -> Iterator[House]:
    root.mkdir(mode=0o700, exist_ok=True)
    database = Database.open(migrated(root / "paddlecloud.db"))
    try:
        yield House(root, database, pace=pace or Pace())
    finally:
        database.close()
