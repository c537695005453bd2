"""How long each log was when, so that `since` can be answered: tasks write plain text, which has no times in it.

A mark is taken every few seconds while a log grows, and kept in a small file, so that it outlives the server. What is
found is never too little: at most a few seconds' lines too much.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from paddlecloud.model.errors import NotFoundError
from paddlecloud.model.job import Job
from paddlecloud.server.jobs import task_names
from paddlecloud.server.transfers import Transfers

LOOK_SECONDS = 5.0


class Marks:
    def __init__(self, root: Path, transfers: Transfers) -> None:
        self._root = root
        self._transfers = transfers
        self._sizes: dict[tuple[str, str], int] = {}

    def look(self, jobs: Iterable[Job], now: datetime) -> None:
        """Mark the logs of all jobs that are being run, where they have grown since the last look."""
        sizes: dict[tuple[str, str], int] = {}
        for job in jobs:
            for task in task_names(job):
                size = self._transfers.log_size(job, task)
                sizes[job.id, task] = size
                if size != self._sizes.get((job.id, task)):
                    self._mark(job.id, task, now, size)
        self._sizes = sizes

    def offset(self, job: Job, task: str, since: datetime) -> int:
        """Where to begin reading a task's log so as to miss nothing that was written since then."""
        try:
            opened = self._transfers.open_log(job, task)
        except NotFoundError:
            return 0
        opened.close()
        if opened.entry.modified_at < since:
            return opened.entry.size
        marks = self._read(job.id, task)
        earlier = bisect.bisect_right(marks, since.timestamp(), key=lambda mark: mark[0])
        return min(marks[earlier - 1][1], opened.entry.size) if earlier else 0

    def _mark(self, job: str, task: str, now: datetime, size: int) -> None:
        folder = self._root / job
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (folder / task).open("a", encoding="ascii") as file:
            file.write(f"{now.timestamp():.3f} {size}\n")

    def _read(self, job: str, task: str) -> list[tuple[float, int]]:
        try:
            lines = (self._root / job / task).read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return []
        # A full disk may have cut one.
        parts = [line.split() for line in lines]
        return [(float(part[0]), int(part[1])) for part in parts if len(part) == 2]
