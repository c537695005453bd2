"""What a task leaves behind when no supervisor could tidy up: processes, control groups, folders that deny access."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from paddlecloud.runtime import cgroups, processes, variables
from paddlecloud.runtime.folder import Begun, TaskFolder

_PATIENCE_SECONDS = 0.5
_LONG_PATH_BYTES = 2048


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


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it, whatever a task did to its modes and depth; one that is not there is fine."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    emptied: list[str] = []
    waiting = [str(path)]
    while waiting:
        folder = waiting.pop()
        os.chmod(folder, 0o700)
        if len(os.fsencode(folder)) > _LONG_PATH_BYTES:
            # Nearer to the top, so that no name below it exceeds what a path may have.
            folder, far = os.path.join(path, f".far-{len(emptied)}"), folder
            os.rename(far, folder)
        waiting += _empty(folder)
        emptied.append(folder)
    for folder in reversed(emptied):
        os.rmdir(folder)


def _empty(folder: str) -> list[str]:
    """Remove the files of a folder; its folders are what is left."""
    left = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                left.append(entry.path)
            else:
                os.unlink(entry.path)
    return left


def _leftovers(folder: TaskFolder, begun: Begun) -> list[int]:
    marks = [f"{variables.HANDLE}={folder.handle}", f"{variables.TASK}={folder.task}"]
    return sorted({*processes.marked(marks), *cgroups.processes(begun.groups)})
