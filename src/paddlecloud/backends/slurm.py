"""A Slurm cluster as a backend: we hand over what our quotas let start, Slurm places and runs it.

start   <root>/<handle>/ appears by a rename, complete; then sbatch, whose job is named by the handle, so that one that
        was accepted although no answer came is found again; <handle>/slurm says which it is
report  one squeue for all, and each task's folder; sacct of those that Slurm has forgotten (slurmstate.py)
stop    <handle>/stop, durably, then SIGTERM to the tasks, scancel to what waits, or has not ended when its time is over
clean   <root>/<handle>/ is removed
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import shlex
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paddlecloud.backends import shipped, slurmscript, slurmstate, taskreports
from paddlecloud.backends.base import Launch, RefusedError
from paddlecloud.backends.orders import Here, render
from paddlecloud.backends.slurmcalls import Calls
from paddlecloud.backends.slurmstate import CANCELLED, FORGOTTEN, WAITING, Seen
from paddlecloud.model.errors import ConflictError, NotFoundError, UnreachableError
from paddlecloud.model.job import Resources, TaskPlacement
from paddlecloud.model.task import Report, TaskReport, TaskState
from paddlecloud.runtime import away, removal, taskfile
from paddlecloud.runtime.allocation import SLURM
from paddlecloud.runtime.folder import TaskFolder, stop_file, sync_folder, write_durably
from paddlecloud.runtime.node import TASKS

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
_LOOKS_SHARE = 10  # of the time, one part in so many goes into asking Slurm at most
_WORD_SECONDS = 10.0  # how long the end of a task may be on its way after Slurm has told the end of the job
_OUTPUT = "slurm.out"
_ID = "slurm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the config says of it."""

    name: str
    python: str = "python3"  # on the nodes
    options: Mapping[str, str]  # of sbatch, for every job
    grace_seconds: float = 30.0
    gate_seconds: float = 60.0
    environments: Path | None = None
    hidden: Sequence[Path] = ()
    url: str = ""  # where nodes reach the server; "": they share its disk
    certificate: str = ""  # by which they know it (PEM); "": as they know all others
    token: Callable[[str], str] = lambda _: ""  # of the tasks of a handle
    accounts: Mapping[str, str]  # whose jobs run as which account of the nodes; others run as the server's own


class SlurmBackend:
    def __init__(
        self,
        root: Path,
        cluster: Cluster,
        calls: Calls,
        *,
        clock: Callable[[], datetime],
        allow_unisolated: Callable[[], bool] = lambda: True,
    ) -> None:
        self._root = root.absolute()
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for pattern in (".new-*", ".trash-*"):
            for unfinished in self._root.glob(pattern):
                removal.remove(str(self._root), unfinished.name)
        self._cluster = cluster
        self._calls = calls
        self._clock = clock
        self._allow_unisolated = allow_unisolated
        self._runtime = shipped.put(self._root)
        self._held: dict[str, _Held] = {}
        self._seen: Mapping[str, Seen] = {}
        self._looked_at = 0.0
        self._look_again_at = 0.0

    def capacity(self) -> Resources | None:
        return None

    def start(self, launch: Launch) -> None:
        folder = self._folder(launch.handle)
        before = os.path.isdir(folder)
        if not before:
            self._write(launch, folder)
        held = self._hold(launch.handle)
        if held.id is not None or held.stopped:
            return
        found = self._look(fresh=True).get(launch.handle) if before else None
        if found is None:
            account = self._cluster.accounts.get(launch.user)
            held.submitted(self._calls.submit(self._script(launch, folder), account), account)
        else:
            held.submitted(found.id, self._cluster.accounts.get(launch.user))

    def report(self, handles: Collection[str]) -> Mapping[str, Report]:
        held = {}
        for handle in handles:
            try:
                held[handle] = self._hold(handle)
            except NotFoundError:
                continue
        if not held:
            return {}
        seen = self._look()
        forgotten = [one.id for handle, one in held.items() if one.id and handle not in seen and not self._is_new(one)]
        past = self._calls.past(forgotten)
        return {handle: self._judge(one, seen.get(handle) or past.get(one.id or 0)) for handle, one in held.items()}

    def stop(self, handle: str) -> None:
        try:
            held = self._hold(handle)
        except NotFoundError:
            return
        if not held.stopped:
            write_durably(stop_file(held.folder), b"")
        seen = self._look(fresh=not held.told).get(handle)
        job = held.id or (seen.id if seen else None)
        if job is None or (seen is not None and seen.ended):
            return
        if (
            seen is None
            or seen.state in WAITING
            or held.stopped_for(self._clock()) > self._cluster.grace_seconds + _WORD_SECONDS
        ):
            self._calls.cancel(job, held.account)
        elif not held.told:
            self._calls.terminate(job, held.account, batch=len(held.names) == 1)
            held.told = True

    def clean(self, handles: Collection[str]) -> None:
        ended = self.report(handles)
        for handle, report in ended.items():
            if not report.ended:
                raise ConflictError(f"{handle} has not ended; stop it, and clean it once nothing of it runs")
        for handle in ended:
            os.rename(self._folder(handle), f"{self._root}/.trash-{handle}")
            self._held.pop(handle, None)
        if ended:
            sync_folder(str(self._root))
        for handle in ended:
            removal.remove(str(self._root), f".trash-{handle}")

    def close(self) -> None:
        """Nothing is held: every call is a process of its own."""

    def _folder(self, handle: str) -> str:
        if not handle or handle.startswith(".") or "/" in handle or "\0" in handle:
            raise RefusedError(f"{handle!r} cannot be the name of a handle", field="handle")
        return f"{self._root}/{handle}"

    def _hold(self, handle: str) -> _Held:
        if handle not in self._held:
            self._held[handle] = _Held(self._folder(handle))
        return self._held[handle]

    def _look(self, *, fresh: bool = False) -> Mapping[str, Seen]:
        """What Slurm said last, which is asked again the less often the longer it takes to say it."""
        began = time.monotonic()
        if fresh or began >= self._look_again_at:
            self._seen = self._calls.jobs()
            self._looked_at = began
            took = time.monotonic() - began
            self._look_again_at = time.monotonic() + max(_LOOK_SECONDS, took * _LOOKS_SHARE)
        return self._seen

    def _is_new(self, held: _Held) -> bool:
        """Whether it was handed over after Slurm was asked the last time."""
        return held.submitted_at > self._looked_at

    def _judge(self, held: _Held, seen: Seen | None) -> Report:
        now = self._clock()
        if seen is None and (held.id is None or self._is_new(held)):
            return self._not_seen_yet(held)
        if seen is None:
            seen = Seen(id=held.id or 0, state=FORGOTTEN)
        tasks = held.look()
        if seen.state in WAITING and all(task.state is TaskState.STARTING for task in tasks):
            return slurmstate.waiting(seen, tasks, self._cluster.name)
        if not seen.ended and seen.state != FORGOTTEN:
            return slurmstate.running(seen, tasks, now)
        never_began = seen.state == CANCELLED and all(task.state is TaskState.STARTING for task in tasks)
        all_ended = all(task.state.ended for task in tasks)
        if not all_ended and not never_began and held.ended_for() < _WORD_SECONDS:
            return Report(tasks=tuple(tasks))
        return slurmstate.ended(seen, tasks, now, stopped=held.stopped, said=held.said())

    def _not_seen_yet(self, held: _Held) -> Report:
        tasks = held.look()
        if held.stopped and held.id is None:
            return Report(tasks=tuple(_stopped_before(task, self._clock()) for task in tasks))
        waits = "" if held.id is None else f"handed over to Slurm on {self._cluster.name}, job {held.id}"
        return Report(tasks=tuple(tasks), waits=waits)

    def _write(self, launch: Launch, folder: str) -> None:
        numbered = [replace(task, address=f"@{number}") for number, task in enumerate(slurmscript.in_order(launch))]
        orders = render(self._as_told(launch, numbered), self._here(launch, folder))
        part = f"{self._root}/.new-{launch.handle}"
        try:
            removal.remove(str(self._root), os.path.basename(part))
            os.mkdir(part, 0o700)
            for name, order in orders.items():
                TaskFolder(f"{part}/{name}").create(taskfile.encode(order))
            write_durably(f"{part}/{TASKS}", "\n".join(task.name for task in numbered).encode())
            os.rename(part, folder)
            sync_folder(str(self._root))
        except OSError as error:
            raise UnreachableError(f"cannot write {part}: {error.strerror}") from None

    def _as_told(self, launch: Launch, numbered: Sequence[TaskPlacement]) -> Launch:
        """The launch in the words of its nodes: their numbers for addresses, and their folders."""
        placed = {task.name: task for task in numbered}
        tasks = tuple(placed[task.name] for task in launch.placement.tasks)
        told = dataclasses.replace(launch, placement=replace(launch.placement, tasks=tasks))
        if not self._cluster.url:
            return told
        if launch.cwd is not None:
            raise RefusedError(
                f"the nodes of {self._cluster.name} do not share the server's files, so a job cannot run in "
                f"{launch.cwd}: send the folder with the job"
            )
        tree = None if launch.tree is None else Path(away.TREE)
        return dataclasses.replace(told, tree=tree, results=Path(away.RESULTS), mounts=(), pfs=None)

    def _here(self, launch: Launch, folder: str) -> Here:
        account, far = self._cluster.accounts.get(launch.user), bool(self._cluster.url)
        return Here(
            folder=Path(away.ROOT, launch.handle) if far else Path(folder),
            mounts=True,
            root=True,
            account=account or "",
            search_path=[],
            grace_seconds=self._cluster.grace_seconds,
            gate_seconds=self._cluster.gate_seconds,
            interpreter=self._cluster.python,
            environments=Path(away.ENVIRONMENTS) if far else self._cluster.environments,
            uv=None,
            pids_limit=0,
            hidden=() if far else self._cluster.hidden,
            wake=self._root,
            boot="",
            allocation=SLURM,
            unisolated=account is not None or self._allow_unisolated(),
        )

    def _script(self, launch: Launch, folder: str) -> str:
        python = [self._cluster.python, "-I", "-S"]
        return slurmscript.render(
            launch,
            options={**self._cluster.options, **launch.options},
            prelude=self._fetching(launch) if self._cluster.url else [],
            command=_fetch(python) if self._cluster.url else [*python, str(self._runtime), folder],
            output=os.devnull if self._cluster.url else f"{folder}/{_OUTPUT}",
            wall_time_seconds=launch.wall_time_seconds,
        )

    def _fetching(self, launch: Launch) -> list[str]:
        """What a node needs to know to fetch the rest; not among the arguments, which all can see."""
        known = {
            "SERVER": self._cluster.url.rstrip("/"),
            "JOB": launch.job,
            "TOKEN": self._cluster.token(launch.handle),
            "CERTIFICATE": self._cluster.certificate,
            "RUNTIME": self._runtime.name.rpartition("-")[2],
            "START": shipped.FETCH,
        }
        return [f"export PADDLECLOUD_{name}={shlex.quote(value)}" for name, value in known.items() if value]


def _fetch(python: Sequence[str]) -> list[str]:
    return ["/bin/sh", "-c", f'exec {shlex.join(python)} -c "$PADDLECLOUD_START"']


class _Held:
    """What a handle's folder says, read once where it does not change."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        try:
            with open(f"{folder}/{TASKS}", encoding="utf-8") as file:
                self.names = file.read().split("\n")
        except FileNotFoundError:
            raise NotFoundError(f"{os.path.basename(folder)} is not here") from None
        except OSError as error:
            raise UnreachableError(f"cannot read {folder}: {error.strerror}") from None
        known = _read(f"{folder}/{_ID}")
        self.id: int | None = known.get("id")
        self.account: str | None = known.get("account")
        self.submitted_at = 0.0
        self.told = False  # to stop, by this process
        self._tasks = {
            name: TaskReport(name=name, state=TaskState.STARTING)
            for name in sorted(self.names, key=taskreports.by_role_and_number)
        }
        self._ended_at: float | None = None

    @property
    def stopped(self) -> bool:
        return os.path.exists(stop_file(self.folder))

    def stopped_for(self, now: datetime) -> float:
        """How many seconds ago it was told to stop."""
        return now.timestamp() - os.stat(stop_file(self.folder)).st_mtime

    def ended_for(self) -> float:
        """How many seconds ago Slurm was first heard to say that it has ended."""
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        return time.monotonic() - self._ended_at

    def submitted(self, job: int, account: str | None) -> None:
        write_durably(f"{self.folder}/{_ID}", json.dumps({"id": job, "account": account}).encode())
        self.id, self.account, self.submitted_at = job, account, time.monotonic()

    def look(self) -> Sequence[TaskReport]:
        for name, known in self._tasks.items():
            if not known.state.ended:
                self._tasks[name] = _look_at(TaskFolder(f"{self.folder}/{name}"), known)
        return list(self._tasks.values())

    def said(self) -> str:
        """The last line of what the batch script has said."""
        try:
            with open(f"{self.folder}/{_OUTPUT}", "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 1000))
                lines = file.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:300] if lines else ""


def _look_at(folder: TaskFolder, known: TaskReport) -> TaskReport:
    if (ended := folder.ended) is not None:
        return taskreports.ended(folder.task, ended)
    begun = folder.begun
    return known if begun is None else taskreports.running(folder.task, begun, folder.so_far)


def _stopped_before(task: TaskReport, now: datetime) -> TaskReport:
    return TaskReport(name=task.name, state=TaskState.FAILED, reason="stopped before it started", ended_at=now)


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            found: dict[str, Any] = json.load(file)
            return found
    except FileNotFoundError:
        return {}
