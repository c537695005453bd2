"""Launches for tests, and waiting for what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from paddlecloud.backends.base import Backend, InputAt, Launch, Mount, TaskLaunch
from paddlecloud.model import paths
from paddlecloud.model.job import Placement, Resources, RoleSpec, TaskPlacement
from paddlecloud.model.task import Report

DEADLINE_SECONDS = 60.0


def make_launch(
    results: Path,
    *commands: str,
    job: str = "job-" + "0" * 32,
    attempt: int = 1,
    pservers: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    ports: Sequence[int] = (),
    address: str | None = None,
    memory_bytes: int = 512 << 20,
    cpus: float = 1,
    cpu_limit: bool = False,
    tree: Path | None = None,
    distribute: str | None = None,
    restarts: int = 0,
    mounts: Sequence[Mount] = (),
    cwd: str | None = None,
    pfs: Path | None = None,
    keep: bool = False,
    quiet_seconds: float = 0.0,
    requirements: str = "",
    inputs: Sequence[InputAt] = (),
) -> Launch:
    """One trainer for each of `commands`, one pserver for each of `pservers`; `ports` are given out in that order."""
    named = [("trainer", index, command) for index, command in enumerate(commands)]
    named += [("pserver", index, command) for index, command in enumerate(pservers)]
    places = [
        TaskPlacement(
            role=role,
            index=index,
            resources=Resources(cpus=cpus, memory_bytes=memory_bytes),
            cpu_limit=cpu_limit,
            address=address,
            ports=tuple(ports[number : number + 1]),
        )
        for number, (role, index, _) in enumerate(named)
    ]
    return Launch(
        handle=paths.handle(job, attempt),
        job=job,
        name="a-test",
        user="someone",
        attempt=attempt,
        placement=Placement(cluster="local", tasks=tuple(places)),
        tasks=tuple(
            TaskLaunch(name=paths.task_name(role, index), role=role, index=index, command=command, restarts=restarts)
            for role, index, command in named
        ),
        roles=tuple(
            RoleSpec(name=role, count=len(of), command="")
            for role, of in (("trainer", commands), ("pserver", pservers))
            if of
        ),
        env=env or {},
        uses_gpus=False,
        distribute=distribute,
        tree=tree,
        results=results,
        mounts=tuple(mounts),
        cwd=cwd,
        keep=keep,
        quiet_seconds=quiet_seconds,
        requirements=requirements,
        inputs=tuple(inputs),
        pfs=pfs,
    )


def wait_for(backend: Backend, handle: str, condition: Callable[[Report], bool]) -> Report:
    """The first report of a handle that fulfils the condition."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition(report := backend.report([handle])[handle]):
        assert time.monotonic() < deadline, f"{handle} did not get there: {report}"
        time.sleep(0.005)
    return report


def ended(report: Report) -> bool:
    return report.ended


def started(report: Report) -> bool:
    return report.started
