"""Jobs whose handles were cleaned while Slurm still had them: those that Slurm keeps running are cancelled.

Most end in Slurm a moment after their tasks. One whose slurmstepd was killed never does, and would hold its nodes.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from paddlecloud.backends.slurmstate import COMPLETING, Seen
from paddlecloud.model.errors import UnreachableError
from paddlecloud.runtime import smallfiles

log = logging.getLogger(__name__)

_PREFIX = ".leaving-"
_LEAVE_SECONDS = 20.0


class Leaving:
    def __init__(self, root: Path, *, seconds: float = _LEAVE_SECONDS) -> None:
        """Those that an earlier server has left are found by their files; each has so many seconds to end by itself."""
        self._root = root
        self._seconds = seconds
        self._since: dict[int, float] = {}
        for file in root.glob(f"{_PREFIX}*"):
            if file.name.removeprefix(_PREFIX).isdecimal():
                self._since[int(file.name.removeprefix(_PREFIX))] = time.monotonic()

    def add(self, job: int, account: str | None) -> None:
        smallfiles.write_new(self._file(job), (account or "").encode(), 0o600)
        self._since[job] = time.monotonic()

    def look(self, jobs: Mapping[int, Seen], cancel: Callable[[int, str | None], None]) -> None:
        """Cancel what is still there after its time; `jobs` are all that Slurm has in mind."""
        for job, since in list(self._since.items()):
            seen = jobs.get(job)
            if seen is None or seen.ended:
                os.unlink(self._file(job))
                del self._since[job]
            elif seen.state != COMPLETING and time.monotonic() - since > self._seconds:
                self._cancel(job, seen, cancel)

    def _cancel(self, job: int, seen: Seen, cancel: Callable[[int, str | None], None]) -> None:
        log.warning("job %d of %s is cancelled: its tasks have ended, and Slurm says %s", job, seen.name, seen.state)
        try:
            cancel(job, smallfiles.read(self._file(job)).decode() or None)
        except UnreachableError as error:
            log.warning("job %d is not cancelled yet: %s", job, error)
        self._since[job] = time.monotonic()

    def _file(self, job: int) -> str:
        return f"{self._root}/{_PREFIX}{job}"
