"""Counts and removes a finished job's files on disk, by kind (results, logs) or all at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from paddlecloud.files.counting import Counter
from paddlecloud.files.results import Results
from paddlecloud.model import paths
from paddlecloud.model.kept import Kept
from paddlecloud.model.space import Used
from paddlecloud.runtime.removal import Only, Pause, remove

# Which entries of a job's folder belong to which kind.
_BELONGS_TO: Mapping[Kept, Only] = {
    Kept.RESULTS: lambda name: name != paths.LOGS,
    Kept.LOGS: lambda name: name == paths.LOGS,
}


class JobFiles:
    def __init__(self, results: Results, marks: Path, pause: Pause) -> None:
        self._results = results
        self._marks = str(marks)
        self._pause = pause

    def count(self, user: str, job: str) -> dict[Kept, Used]:
        counter = Counter(self._parent(user, job), self._pause)
        used = {kind: counter.count(job, only) for kind, only in _BELONGS_TO.items()}
        used[Kept.LOGS] += Counter(self._marks, self._pause).count(job)
        return used

    def remove(self, user: str, job: str, kind: Kept) -> None:
        """Remove the files of one kind; missing files are not an error."""
        remove(self._parent(user, job), job, self._pause, _BELONGS_TO[kind])
        if kind is Kept.LOGS:
            remove(self._marks, job, self._pause)

    def remove_all(self, user: str, job: str) -> None:
        for root in (self._parent(user, job), self._marks):
            remove(root, job, self._pause)

    def _parent(self, user: str, job: str) -> str:
        return str(self._results.parent(user, job))
