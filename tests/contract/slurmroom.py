"""A Slurm backend in a folder of its own, on a real cluster; what a test has left there is ended afterwards."""

from __future__ import annotations

import dataclasses
import secrets
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from paddlecloud.backends.base import Launch
from paddlecloud.backends.slurm import SlurmBackend
from paddlecloud.backends.slurmcalls import Commands
from paddlecloud.backends.slurmcluster import Cluster
from paddlecloud.model.job import Resources
from paddlecloud.model.task import Report
from tests.launches import ended, make_launch, started, wait_for
from tests.slurm import Slurm
from tests.waiting import wait_until

FOREVER = "sleep 1000"


def now() -> datetime:
    return datetime.now(UTC)


class SlurmRoom:
    def __init__(self, folder: Path, slurm: Slurm, **of_cluster: Any) -> None:
        self.folder = folder
        self.slurm = slurm
        self._of_cluster = of_cluster
        self.root = folder / "tasks"
        self.backend = self.open()

    def open(self, *, seconds: float = 30.0, path: Sequence[Path] = (), python: str = sys.executable) -> SlurmBackend:
        """The backend as a new server has it, whose commands are looked for in these folders first."""
        env = {**self.slurm.env, "PATH": ":".join([*map(str, path), self.slurm.env["PATH"]])}
        options = {"account": self.slurm.account} if self.slurm.account else {}
        told: dict[str, Any] = {"name": "hpc", "python": python, "options": options, "accounts": {}, "grace_seconds": 5}
        cluster = Cluster(**told | self._of_cluster)
        calls = Commands(env=env, seconds=seconds, accounts=cluster.accounts.values())
        self.backend = SlurmBackend(self.root, cluster, calls, clock=now)
        return self.backend

    def launch(
        self,
        *commands: str,
        gpus: Mapping[str, int] | None = None,
        options: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Launch:
        """`gpus` are those of each task of a role."""
        job = f"job-{secrets.token_hex(16)}"
        made = make_launch(self.folder / "results" / job, *commands, job=job, **more)
        tasks = tuple(
            replace(task, resources=task.resources + Resources(gpus=(gpus or {}).get(task.role, 0)))
            for task in made.placement.tasks
        )
        placement = replace(made.placement, tasks=tasks)
        return dataclasses.replace(made, placement=placement, options=options or {}, uses_gpus=bool(gpus))

    def start(self, *commands: str, **more: Any) -> Launch:
        launch = self.launch(*commands, **more)
        self.backend.start(launch)
        return launch

    def running(self, *commands: str, **more: Any) -> Launch:
        launch = self.start(*commands, **more)
        wait_for(self.backend, launch.handle, started)
        return launch

    def end_of(self, launch: Launch) -> Report:
        return wait_for(self.backend, launch.handle, ended)

    def jobs_of(self, launch: Launch) -> list[str]:
        """Every job that Slurm has under the handle's name."""
        asked = f"--name={launch.handle}"
        return sorted(self.slurm.run("squeue", "--noheader", "--states=all", "--format=%A", asked).split())

    def job_of(self, launch: Launch) -> str:
        [job] = wait_until(lambda: self.jobs_of(launch), "Slurm has the job")
        return job

    def log(self, launch: Launch, task: str = "trainer-0") -> str:
        return (launch.results / "log" / f"{task}.log").read_text()

    def close(self) -> None:
        backend = self.open()
        for handle in [path.name for path in self.root.glob("job-*")]:
            backend.stop(handle)
            wait_for(backend, handle, ended)
            backend.clean([handle])
        assert not list(self.root.glob("job-*"))
