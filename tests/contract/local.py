"""A local backend in a folder of its own, and what the tests of it ask again and again."""

from __future__ import annotations

import os
import secrets
import sys
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from paddlecloud.backends import local
from paddlecloud.backends.base import WHOLE_MACHINE, Launch, View
from paddlecloud.backends.local import LocalBackend
from paddlecloud.backends.orders import Here, render
from paddlecloud.model.job import Resources
from paddlecloud.model.task import TaskReport
from paddlecloud.runtime import processes, taskfile, variables
from paddlecloud.runtime.folder import TaskFolder
from tests.launches import ended, make_launch, wait_for
from tests.waiting import wait_until

UID = 1_900_000_777 if os.geteuid() == 0 else None
PYTHON_FORKED_AWAY = "import os; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0);"


@dataclass
class Room:
    folder: Path
    isolated: bool = True
    cgroups: bool = True  # False: none, also where tasks are isolated
    grace_seconds: float = 10.0
    gate_seconds: float = 20.0
    uv: str | None = field(default_factory=local.find_uv)
    python: str | None = None
    hidden: tuple[Path, ...] = ()
    allow_unisolated: bool = True
    view: View = WHOLE_MACHINE
    uid: int | None = None  # the account that tasks run as
    woken: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.backend = self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            self.end_all()
        finally:
            self.backend.close()

    @property
    def tasks(self) -> Path:
        return self.folder / "tasks"

    def open(self) -> LocalBackend:
        return LocalBackend(
            self.tasks,
            capacity=Resources(cpus=2, memory_bytes=1 << 30),
            clock=lambda: datetime.now(UTC),
            wake=self.woken.set,
            grace_seconds=self.grace_seconds,
            gate_seconds=self.gate_seconds,
            environments=self.folder / "environments",
            uv=self.uv,
            python=self.python,
            hidden=self.hidden,
            view=lambda: self.view,
            own_accounts=self.uid is not None,
            namespaces=self.isolated,
            cgroups=self.isolated and self.cgroups,
            allow_unisolated=lambda: self.allow_unisolated,
        )

    def reopen(self) -> None:
        """The backend as a new server would have it."""
        self.backend.close()
        self.backend = self.open()

    def launch(self, *commands: str, job: str | None = None, **more: object) -> Launch:
        job = job or f"job-{secrets.token_hex(16)}"
        launch = make_launch(self.folder / "results" / job, *commands, job=job, **more)  # type: ignore[arg-type]
        return replace(launch, uid=self.uid)

    def run(self, launch: Launch) -> TaskReport:
        """Start it, and the report of its first task once all have ended."""
        self.backend.start(launch)
        return wait_for(self.backend, launch.handle, ended).tasks[0]

    def run_and_clean(self, launch: Launch) -> None:
        """Run one that leaves its folders as they were, so that they can be used again."""
        self.run(launch)
        for task in launch.tasks:
            os.close(wait_until(self.task_folder(launch, task.name).lock, "its supervisor has let go"))
        self.backend.clean([launch.handle])

    def write_down(self, launch: Launch, boot: str | None = None) -> None:
        """What a server leaves that dies after it wrote the task files and before it asked for the tasks."""
        folder = self.tasks / launch.handle
        here = Here(
            folder=folder,
            mounts=self.isolated,
            account="someone",
            search_path=["/usr/bin", "/bin"],
            grace_seconds=1,
            gate_seconds=1,
            build_seconds=60,
            interpreter=sys.executable,
            environments=None,
            uv=None,
            pids_limit=100,
            hidden=[],
            whole_machine=True,
            visible=[],
            visible_writable=[],
            wake=self.tasks,
            boot=boot or processes.boot_id(),
        )
        folder.mkdir()
        for name, orders in render(launch, here).items():
            TaskFolder(str(folder / name)).create(taskfile.encode(orders))

    def task_folder(self, launch: Launch, task: str = "trainer-0") -> TaskFolder:
        return TaskFolder(str(self.tasks / launch.handle / task))

    def supervisor(self, launch: Launch, task: str = "trainer-0") -> int:
        begun = self.task_folder(launch, task).begun
        assert begun is not None
        return begun.identity.pid

    def end_all(self) -> None:
        for handle in [path.name for path in self.tasks.glob("job-*")]:
            self.backend.stop(handle)
            wait_for(self.backend, handle, ended)
            assert living(handle) == []
            self.backend.clean([handle])


def log(launch: Launch, task: str = "trainer-0") -> str:
    """What the task has said so far."""
    path = launch.results / "log" / f"{task}.log"
    return path.read_text() if path.exists() else ""


def living(handle: str) -> list[int]:
    return processes.marked([f"{variables.HANDLE}={handle}"])


def is_dead(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"
