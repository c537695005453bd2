"""What the folder of a handle on Slurm says, read once where it does not change."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from paddlecloud.backends import taskreports
from paddlecloud.backends.slurmstate import Seen
from paddlecloud.model.errors import NotFoundError, UnreachableError
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.runtime import lease, smallfiles
from paddlecloud.runtime.folder import TaskFolder, claim_file, stop_file
from paddlecloud.runtime.node import TASKS

OUTPUT = "slurm.out"  # what the batch script says
ID = "slurm"
_COUNTED = re.compile(r"srun: .*(?:Exited with exit code|Terminat|Killed|launching tasks)")


def first_word(account: str) -> bytes:
    """What is in the folder of a handle before Slurm has its job, if it is another account's: whose it will be."""
    return json.dumps({"id": None, "account": account}).encode()


class Held:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.handle = os.path.basename(folder)
        try:
            with open(f"{folder}/{TASKS}", encoding="utf-8") as file:
                self.names = file.read().split("\n")
        except FileNotFoundError:
            raise NotFoundError(f"{os.path.basename(folder)} is not here") from None
        except OSError as error:
            raise UnreachableError(f"cannot read {folder}: {error.strerror}") from None
        known = _read(f"{folder}/{ID}")
        self.id: int | None = known.get("id")
        self.account: str | None = known.get("account")
        self.submitted_at = 0.0
        self.told = False  # to stop, by this process
        self.told_tasks: set[str] = set()  # to stop, by whomever
        self.begun_at: float | None = None  # when it was seen that one of its tasks has begun
        self._tasks = {
            name: TaskReport(name=name, state=TaskState.STARTING)
            for name in sorted(self.names, key=taskreports.by_role_and_number)
        }
        self._ended_at: float | None = None
        self._revoked = False
        self._waits: tuple[Seen, Report] | None = None

    @property
    def stopped(self) -> bool:
        return os.path.exists(stop_file(self.folder))

    def stopped_for(self, now: datetime) -> float:
        """How many seconds ago it was told to stop."""
        return now.timestamp() - os.stat(stop_file(self.folder)).st_mtime

    def ended_for(self, ended: bool) -> float:
        """How many seconds ago Slurm was first heard to say that it has `ended`; what it takes back is forgotten."""
        if not ended:
            self._ended_at = None
        elif self._ended_at is None:
            self._ended_at = time.monotonic()
        return 0.0 if self._ended_at is None else time.monotonic() - self._ended_at

    def revoke(self) -> None:
        """End the tasks that still run where Slurm cannot end them."""
        if not self._revoked:
            lease.revoke(self.folder)
            self._revoked = True

    def submitted(self, job: int, account: str | None) -> None:
        """Known from now on. Not synced: after a power cut it is found again by its name, or by its claim."""
        part = f"{self.folder}/{ID}.part"
        smallfiles.write_new(part, json.dumps({"id": job, "account": account}).encode(), 0o600)
        os.rename(part, f"{self.folder}/{ID}")
        self.id, self.account, self.submitted_at = job, account, time.monotonic()

    @property
    def claimed(self) -> int | None:
        """The job of Slurm that runs it, if one has begun to."""
        try:
            return int(smallfiles.read(claim_file(self.folder)))
        except (FileNotFoundError, ValueError):
            return None

    @property
    def all_ended(self) -> bool:
        return all(task.state.ended for task in self.look())

    def waits(self, seen: Seen, tell: Callable[[], Report]) -> Report:
        """What is told of a job that waits, made anew when Slurm has been asked again: a queue may be long."""
        if self._waits is None or self._waits[0] is not seen:
            self._waits = seen, tell()
        return self._waits[1]

    def look(self) -> Sequence[TaskReport]:
        if self.begun_at is None and not os.path.exists(claim_file(self.folder)):
            return list(self._tasks.values())  # nobody has begun to run it
        for name, known in self._tasks.items():
            if not known.state.ended:
                self._tasks[name] = self._look_at(TaskFolder(f"{self.folder}/{name}"), known)
        if self.begun_at is None and any(
            task.state is not TaskState.STARTING or task.building for task in self._tasks.values()
        ):
            self.begun_at = time.monotonic()
        return list(self._tasks.values())

    def _look_at(self, folder: TaskFolder, known: TaskReport) -> TaskReport:
        if (ended := folder.ended) is not None:
            if ended.told:
                self.told_tasks.add(known.name)
            return taskreports.ended(folder.task, ended)
        begun = folder.begun
        return known if begun is None else taskreports.running(folder.task, begun, folder.so_far)

    def said(self) -> str:
        """The last line of what the batch script has said, but for srun's counting of what has ended."""
        try:
            with open(f"{self.folder}/{OUTPUT}", "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 1000))
                lines = file.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        told = [line for line in lines if not _COUNTED.match(line)] or lines
        return told[-1][:300] if told else ""


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            found: dict[str, Any] = json.load(file)
            return found
    except (FileNotFoundError, ValueError):
        return {}  # what makes no sense was being written when the power went
