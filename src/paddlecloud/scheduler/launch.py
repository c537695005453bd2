"""From a placed job to what its backend is told: pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paddlecloud.backends.base import Launch, Mount, TaskLaunch
from paddlecloud.model.job import PSERVER, Job, JobSpec, Placement


def launch(
    job: Job,
    placement: Placement,
    *,
    tree: Path | None,
    results: Path,
    mounts: Sequence[Mount] = (),
    cwd: str | None = None,
    pfs: Path | None = None,
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
                command=roles[task.role].command,
                restarts=roles[task.role].restarts,
            )
            for task in placement.tasks
        ),
        env=job.spec.env,
        uses_gpus=any(task.gpus for task in placement.tasks),
        distribute=distribution(job.spec),
        tree=tree,
        results=results,
        datacenter=job.spec.datacenter,
        image=job.spec.image,
        registry=job.spec.registry,
        keep=job.spec.keep_on_failure and cwd is None,
        slurm=job.spec.slurm_env,
        quiet_seconds=job.spec.hang.after_seconds or 0,
        mounts=tuple(mounts),
        cwd=cwd,
        pfs=pfs,
    )


def distribution(spec: JobSpec) -> str | None:
    """Seed 002's DISTRIBUTE_JOB_TYPE: none for a job of one task."""
    if spec.tasks == 1:
        return None
    return spec.distribute or ("PSERVER" if any(role.name == PSERVER for role in spec.roles) else "NCCL2")
