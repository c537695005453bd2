"""From a placed job to what its backend is told: pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paddlecloud.backends.base import InputAt, Launch, Mount, TaskLaunch
from paddlecloud.model.job import PSERVER, Job, JobSpec, Placement
from paddlecloud.model.openpai.template import SECRETS, render
from paddlecloud.scheduler.queues import Queues, options_of

_CHECKED = (
    "paddlecloud_setup=$?; "
    '[ $paddlecloud_setup -eq 0 ] || {{ echo "paddlecloud: setup failed:" {step}; exit $paddlecloud_setup; }}'
)


def launch(
    job: Job,
    placement: Placement,
    *,
    tree: Path | None,
    results: Path,
    mounts: Sequence[Mount] = (),
    cwd: str | None = None,
    inputs: Sequence[InputAt] = (),
    pfs: Path | None = None,
    uid: int | None = None,
    queues: Queues | None = None,
    secrets: Mapping[str, Any] | None = None,  # what commands ask for that no record may hold
) -> Launch:
    roles = {role.name: role for role in job.spec.roles}
    return Launch(
        handle=job.handle,
        job=job.id,
        name=job.spec.name,
        user=job.user,
        attempt=job.attempt,
        placement=placement,
        tasks=tuple(
            TaskLaunch(
                name=task.name,
                role=task.role,
                index=task.index,
                command=with_setup(_filled(roles[task.role].command, secrets or {}), job.spec.setup),
                restarts=roles[task.role].restarts,
                shell=roles[task.role].shell,
            )
            for task in placement.tasks
        ),
        roles=job.spec.roles,
        env=job.spec.env,
        uses_gpus=any(task.gpus or task.resources.gpus for task in placement.tasks),
        distribute=distribution(job.spec),
        tree=tree,
        results=results,
        datacenter=job.spec.datacenter,
        image=job.spec.image,
        note=job.spec.note,
        registry=job.spec.registry,
        keep=job.spec.keep_on_failure and cwd is None,
        requirements=job.spec.requirements,
        python=job.spec.python,
        wall_time_seconds=job.wall_time_seconds,
        options=options_of(job.spec, queues or {}),
        slurm=job.spec.slurm_env,
        own_nodes=job.spec.own_nodes,
        quiet_seconds=job.spec.hang.after_seconds or 0,
        mounts=tuple(mounts),
        cwd=cwd,
        inputs=tuple(inputs),
        pfs=pfs,
        uid=uid,
        openpai=job.spec.openpai,
    )


def _filled(command: str, secrets: Mapping[str, Any]) -> str:
    return render(command, {SECRETS: secrets}) if secrets else command


def with_setup(command: str, setup: Sequence[str]) -> str:
    """A command that comes after others, which must all succeed."""
    steps = [f"{step}\n{_CHECKED.format(step=shlex.quote(step))}" for step in setup]
    return "\n".join([*steps, command])


def distribution(spec: JobSpec) -> str | None:
    """Seed 002's DISTRIBUTE_JOB_TYPE: none for a job of one task."""
    if spec.tasks == 1:
        return None
    return spec.distribute or ("PSERVER" if any(role.name == PSERVER for role in spec.roles) else "NCCL2")
