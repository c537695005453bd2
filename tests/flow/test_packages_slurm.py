"""A package of PaddlePaddle Cloud on a real Slurm: its pservers idle on their nodes, and end with the job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.lab import Lab
from tests.flow.test_slurm import made
from tests.slurm import Slurm


@pytest.fixture
def lab(tmp_path: Path, slurm: Slurm) -> Iterator[Lab]:
    lab = made(tmp_path, slurm)
    yield lab
    lab.close()
    slurm.empty()


def test_idle_pservers_keep_no_trainer_waiting(lab: Lab) -> None:
    lab.folder("package", run_sh='echo "$TRAINING_ROLE $PADDLE_INIT_TRAINER_ID"\n')
    flags = ("-parallelism", "2", "-pservers", "2", "-memory", "64Mi", "-psmemory", "64Mi", "--cluster", "hpc")
    job = lab.out("submit", "-jobname", "idle", *flags, "-entry", "sh run.sh", "-o", "name", "package").strip()
    lab.ends(job, "success", seconds=120)
    assert "no paddle pserver" in lab.out("logs", job, "-w", "pserver-0")
    for rank in (0, 1):
        assert lab.out("logs", job, "-w", f"trainer-{rank}").splitlines()[-1] == f"TRAINER {rank}"
    trainers = [task for task in lab.client().get(job).tasks if task.name.startswith("trainer")]
    for task in trainers:
        assert task.started_at is not None
        assert task.ended_at is not None
        assert (task.ended_at - task.started_at).total_seconds() < 10, "not the minute of jobs.pserver_wait"
