"""The founding example with real PaddlePaddle: together, alone, by pservers, and with a trainer killed on the way."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from paddlecloud.model.job import JobSpec, RoleSpec
from tests.docs.pages import ROOT
from tests.flow.lab import Lab, processes_with
from tests.frameworks import PYTHON, needs
from tests.waiting import wait_until

JOB = ROOT / "examples/fit-a-line/job"

pytestmark = [needs("paddle"), pytest.mark.slow]


def losses(log: str, task: str = "trainer-0") -> list[float]:
    return [float(loss) for loss in re.findall(rf"{task} \| pass \d+  loss ([\d.]+)", log)]


def weights(frameworks_lab: Lab, job: str) -> list[str]:
    """The digest of each trainer's weights, from its results."""
    folder = frameworks_lab.work / job
    frameworks_lab.client().download(job, folder)
    assert all(path.stat().st_size > 100 for path in folder.glob("**/model.pdparams"))
    return [path.read_text() for path in sorted(folder.glob("**/rank-*/weights.sha256"))]


@pytest.mark.parametrize("trainers", [1, 2])
def test_trainers_fit_the_line_together_and_hold_the_same_weights(frameworks_lab: Lab, trainers: int) -> None:
    job = frameworks_lab.client().submit(JOB, command="sh run.sh", nodes=trainers).id
    frameworks_lab.ends(job, "success", seconds=120)
    log = frameworks_lab.out("logs", job)
    assert f"{trainers} of {trainers} ranks hold the weights" in log
    if trainers > 1:
        told = losses(log)
        assert told == sorted(told, reverse=True), "the loss falls"
        assert told[-1] < 5 < 100 < told[0]
        assert told == losses(log, "trainer-1")
    assert "was built" not in log
    assert len(digests := weights(frameworks_lab, job)) == trainers
    assert len(set(digests)) == 1


def test_on_ones_own_machine_nothing_is_needed(tmp_path: Path) -> None:
    env = {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "OUTPUT_PATH": str(tmp_path), "PASSES": "20"}
    done = subprocess.run(["sh", "run.sh"], cwd=JOB, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 ranks hold the weights" in done.stdout
    assert (tmp_path / "model.pdparams").stat().st_size > 100


@pytest.mark.parametrize(("trainers", "pservers", "sync"), [(2, 1, False), (2, 2, True)])
def test_pservers_hold_the_weights(frameworks_lab: Lab, trainers: int, pservers: int, sync: bool) -> None:
    job = by_pservers(frameworks_lab, trainers, pservers, sync=sync)
    frameworks_lab.ends(job, "success", seconds=120)
    log = frameworks_lab.out("logs", job)
    told = [losses(log, f"trainer-{rank}") for rank in range(trainers)]
    assert max(each[-1] for each in told) < 10 < 100 < max(each[0] for each in told)  # one may begin where another is
    assert len(digests := weights(frameworks_lab, job)) == trainers
    assert not sync or len(set(digests)) == 1


@pytest.mark.parametrize("sync", [False, True])
def test_a_killed_trainer_goes_on_where_it_was(frameworks_lab: Lab, sync: bool) -> None:
    passes = 3000
    if sync:
        job = by_pservers(frameworks_lab, 2, 2, sync=sync, passes=passes, restarts=1)
    else:
        job = frameworks_lab.out("submit", "-f", str(JOB.parent / "pserver.yaml"), "--env", f"PASSES={passes}").split()[
            -1
        ]
    wait_until(
        lambda: "trainer-1 | pass 300 " in frameworks_lab.out("logs", job), "it has learned something", seconds=90
    )
    for pid in trainer_processes(job, 1):
        os.kill(pid, signal.SIGKILL)
    frameworks_lab.ends(job, "success", seconds=120)
    log = frameworks_lab.out("logs", job)
    [on] = re.findall(r"trainer-1 \| going on after pass (\d+)", log)
    assert int(on) >= 300
    assert losses(log, "trainer-1")[-1] < 10
    assert not sync or len(set(weights(frameworks_lab, job))) == 1


def by_pservers(
    frameworks_lab: Lab, trainers: int, pservers: int, *, sync: bool, passes: int = 200, restarts: int = 0
) -> str:
    command = f"sh run.sh{' --sync' if sync else ''}"
    spec = JobSpec(
        roles=(
            RoleSpec(name="trainer", count=trainers, command=command, restarts=restarts),
            RoleSpec(name="pserver", count=pservers, command=command, min_succeeded=0),
        ),
        distribute="PSERVER",
        env={"PASSES": str(passes)},
    )
    return frameworks_lab.client().submit(JOB, spec).id


def trainer_processes(job: str, rank: int) -> list[int]:
    """The processes of one trainer that import PaddlePaddle; its shell was replaced by them."""
    return [pid for pid in processes_with(job) if is_trainer(pid, rank)]


def is_trainer(pid: int, rank: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        return b"train.py" in command and f"PADDLECLOUD_TASK=trainer-{rank}\0".encode() in (
            Path(f"/proc/{pid}/environ").read_bytes()
        )
    except OSError:
        return False
