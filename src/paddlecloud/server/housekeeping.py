"""The chore of a server's own: what has had its time goes, and what is left is counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from paddlecloud.files.collect import JobFiles
from paddlecloud.files.environments import Environments
from paddlecloud.files.results import Results
from paddlecloud.files.uploads import Uploads
from paddlecloud.model.kept import Kept
from paddlecloud.server import collectors
from paddlecloud.server.audit import AuditService
from paddlecloud.server.datadir import DataFolder
from paddlecloud.server.pace import Pace, TimeUpError
from paddlecloud.server.retention import Retention, rules
from paddlecloud.server.settings import RetentionSettings
from paddlecloud.server.space import SpaceService
from paddlecloud.store.audit import Audit
from paddlecloud.store.db import Database
from paddlecloud.store.remains import Remains
from paddlecloud.store.retention import Forgetting

log = logging.getLogger(__name__)

_FIRST_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekeeping:
    retention: Retention
    space: SpaceService
    remains: Remains
    records: Forgetting
    uploads: Uploads
    results: Results
    pace: Pace
    clock: Callable[[], datetime]
    every_seconds: float

    @property
    def first_seconds(self) -> float:
        """How long after its start a server begins: at first there is more urgent work."""
        return min(self.every_seconds, _FIRST_SECONDS)

    def run(self) -> None:
        self.settle()
        self.records.forget_secrets()
        self.uploads.expire(self.clock())
        self.retention.run(self.clock())
        try:
            self.space.count()
        except TimeUpError:
            return  # the server ends

    def settle(self) -> None:
        """Move results that lie as a version before this one put them to where they belong, once no task writes there.

        A server does so before it begins too. Those of jobs that no record knows stay.
        """
        owned = self.remains.owned(self.results.unsettled())
        owners = {job: one.user for job, one in owned.items()}
        refused = self.results.settle(owners, busy=[job for job, one in owned.items() if one.busy])
        for job, error in refused.items():
            log.warning("the results of %s stay where they are, and are moved later: %s", job, error)

    def stop(self) -> None:
        self.pace.stop()


def housekeeping(
    settings: RetentionSettings,
    *,
    folder: DataFolder,
    database: Database,
    uploads: Uploads,
    results: Results,
    audit: AuditService,
    clock: Callable[[], datetime],
    pace: Pace | None = None,
) -> Housekeeping:
    pace, remains, records = pace or Pace(), Remains(database), Forgetting(database)
    files = JobFiles(results, folder.marks, pace)
    kept = rules(settings)
    retention = Retention(
        rules=kept,
        collectors={
            Kept.JOBS: collectors.WholeJobs(remains, records, files),
            Kept.RESULTS: collectors.LeftByJobs(Kept.RESULTS, remains, files),
            Kept.LOGS: collectors.LeftByJobs(Kept.LOGS, remains, files),
            Kept.UPLOADS: collectors.Uploads(uploads.trees, records, pace),
            Kept.ENVIRONMENTS: collectors.JobEnvironments(Environments(folder.environments), pace),
            Kept.AUDIT: collectors.AuditRecord(Audit(database), pace),
        },
        remains=remains,
        files=files,
        audit=audit,
        pace=pace,
    )
    space = SpaceService(
        folder=folder,
        results=results,
        files=files,
        trees=uploads.trees,
        remains=remains,
        records=records,
        measure=retention.measure,
        rules=kept,
        pace=pace,
        clock=clock,
    )
    return Housekeeping(
        retention=retention,
        space=space,
        remains=remains,
        records=records,
        uploads=uploads,
        results=results,
        pace=pace,
        clock=clock,
        every_seconds=settings.every.total_seconds(),
    )
