"""What a task leaves behind when no supervisor could tidy up: processes and control groups."""

from __future__ import annotations

import signal
import time

from paddlecloud.runtime import cgroups, processes, variables
from paddlecloud.runtime.folder import Begun, TaskFolder

_PATIENCE_SECONDS = 0.5


def end_leftovers(folder: TaskFolder, begun: Begun) -> bool:
    """Kill what is left of a task whose supervisor is dead; whether nothing is left."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while left := _leftovers(folder, begun):
        cgroups.kill(begun.groups)
        processes.send(left, signal.SIGKILL)
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return cgroups.remove(begun.groups, patience=_PATIENCE_SECONDS)


def _leftovers(folder: TaskFolder, begun: Begun) -> list[int]:
    marks = [f"{variables.HANDLE}={folder.handle}", f"{variables.TASK}={folder.task}"]
    return sorted({*processes.marked(marks), *cgroups.processes(begun.groups)})
