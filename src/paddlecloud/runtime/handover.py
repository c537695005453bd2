"""Gives a task's files to the account that it runs as, before it starts; and what it made to those it shares with."""

from __future__ import annotations

import os

from paddlecloud.runtime import below, owners
from paddlecloud.runtime.taskfile import TaskFile
from paddlecloud.runtime.tasklog import results

_CLOCK_SECONDS = 1.0  # by which the disk's clock may be behind


def give(task: TaskFile, log: int, uid: int) -> None:
    """Hand over results, log and homes, with what an operator has copied into a home or made public."""
    os.fchown(log, uid, uid)
    owners.claim(results(task), owners.owned(uid))
    for path in (task.output, task.log_folder):
        below.give_folder(results(task), path, uid)
    for target, source in task.mounts.items():
        if target in task.shared:
            owners.claim_new(source, owners.shared(task.shared[target]))
        elif target in task.writable:
            owners.claim_new(source, owners.owned(uid))
        elif target in task.public:
            owners.claim_new(source, owners.PUBLIC)


def share(task: TaskFile, since: float) -> None:
    """Let all members change what the task made in shared folders, also where it set a mode of its own."""
    for target in set(task.writable) & set(task.shared):
        wanted = owners.shared(task.shared[target])
        owners.reclaim(task.mounts[target], wanted, since - _CLOCK_SECONDS)
