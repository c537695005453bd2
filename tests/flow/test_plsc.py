"""Seed 000's example by the real command: it learns, leaves the manual's files, and goes on wherever it is asked to."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.flow.lab import Lab, processes_with
from tests.frameworks import PYTHON, needs
from tests.waiting import wait_until

pytestmark = [needs("paddle"), pytest.mark.slow, pytest.mark.timeout(900)]

BOUND = 0.6  # of unseen pictures, each ranked against all 300 people
SHARED = ["@LR_DECAY_COUNTER@", "learning_rate_0", "meta.pickle", "complete.json"]
TRAINED = ["conv2d_0.w_0", "conv2d_3.w_0", "fc_0.w_0", "fc_0.b_0", "batch_norm_0.w_0", "batch_norm_4.b_0"]


@pytest.fixture(scope="module")
def trained(frameworks_lab: Lab) -> str:
    """The small version, trained on two trainers, its results in the folder results."""
    job = frameworks_lab.out("plsc", "--small", "--time-limit", "10m").strip()
    frameworks_lab.ends(job, "success", seconds=600)
    frameworks_lab.type("cp", job, "results")
    return job


def figures(frameworks_lab: Lab, results: str, job: str) -> list[dict[str, float]]:
    text = (frameworks_lab.work / results / job / "rank-0" / "figures.json").read_text()
    return list(json.loads(text))


def test_the_small_version_recognizes_pictures_that_it_has_not_seen(frameworks_lab: Lab, trained: str) -> None:
    told = figures(frameworks_lab, "results", trained)
    assert len(told) == 12
    assert told[-1]["test"] > BOUND
    assert told[-1]["loss"] < told[0]["loss"] / 5
    assert "trainer 1 of 2: 450 pictures of 300 classes" in frameworks_lab.out("logs", trained, "-w", "trainer-1")


def test_files_are_those_that_the_manual_lists(frameworks_lab: Lab, trained: str) -> None:
    listed = frameworks_lab.out("get_files", f"--job_id={trained}").splitlines()
    size = {line.split()[0]: line.split()[1] for line in listed}
    top = f"output/{trained}"
    assert f"{top}/log/trainer-0.log" in size
    assert size[f"{top}/rank-0/0/@LR_DECAY_COUNTER@"] == "32"
    assert size[f"{top}/rank-0/0/learning_rate_0"] == "28"
    for name in ("b_0", "b_0_velocity_0", "w_0", "w_0_velocity_0", "w_1", "w_2"):
        assert size[f"{top}/rank-0/0/batch_norm_0.{name}"] == size[f"{top}/rank-0/0/batch_norm_1.{name}"] == "280"
    for name in (*SHARED, *TRAINED, *(f"{name}_velocity_0" for name in TRAINED)):
        assert f"{top}/rank-0/11/{name}" in size
    assert sum(path.startswith(f"{top}/rank-0/11/") for path in size) == 48
    own = [path.rpartition("/")[2] for path in size if path.startswith(f"{top}/rank-1/11/")]
    centres = "dist@arcface@rank@00001.w_0"
    assert sorted(own) == ["complete.json", centres, f"{centres}_velocity_0"]
    assert size[f"{top}/rank-1/11/{centres}"] == str(24 + 4 + 128 * 150 * 4)


@pytest.mark.parametrize(("trainers", "classes"), [(1, [300]), (3, [100, 100, 100])])
def test_it_goes_on_with_another_number_of_trainers(
    frameworks_lab: Lab, trained: str, trainers: int, classes: list[int]
) -> None:
    before = figures(frameworks_lab, "results", trained)
    job = frameworks_lab.out("plsc", "--small", "--passes=13", "--resume=results", f"--trainers={trainers}").strip()
    frameworks_lab.ends(job, "success", seconds=300)
    steps = 14 * 12  # of 64 pictures out of 900, in each pass
    assert f"goes on after pass 11, step {steps}\n" in frameworks_lab.out("logs", job, "-w", "trainer-0")
    frameworks_lab.type("cp", job, f"results-{trainers}")
    told = figures(frameworks_lab, f"results-{trainers}", job)
    assert told[:12] == before
    assert [one["number"] for one in told] == list(range(13))
    assert told[12]["test"] > BOUND
    top = frameworks_lab.work / f"results-{trainers}" / job
    for rank, count in enumerate(classes):
        mark = json.loads((top / f"rank-{rank}/12/complete.json").read_text())
        assert (mark["trainers"], mark["classes"]) == (trainers, 300)
        assert (top / f"rank-{rank}/12/dist@arcface@rank@{rank:05}.w_0").stat().st_size == pytest.approx(
            128 * count * 4, abs=40
        )


def test_an_attempt_after_a_killed_one_goes_on_from_its_last_pass(frameworks_lab: Lab) -> None:
    job = frameworks_lab.out("plsc", "--classes=40", "--passes=1000", "--retry=1").strip()
    says(frameworks_lab, job, r"pass 3  loss")
    os.kill(trainer_of(job, 1), signal.SIGKILL)
    went_on = says(frameworks_lab, job, r"goes on after pass (\d+), step (\d+)")
    number, step = int(went_on[1]), int(went_on[2])
    assert number >= 3
    assert step == number + 1  # all 120 pictures are in one step
    frameworks_lab.type("kill", job)
    frameworks_lab.ends(job, "killed", seconds=60)


def test_it_runs_alone_without_any_variable_of_ours(tmp_path: Path) -> None:
    job = Path(__file__).parents[2] / "examples" / "plsc" / "job"
    shutil.copytree(job, tmp_path / "job", ignore=shutil.ignore_patterns("data", "output", "__pycache__"))
    words = ["sh", str(tmp_path / "job" / "run.sh"), "--classes", "20", "--passes", "2", "--partial-fc", "0.5"]
    env = {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "trainer 0 of 1: 60 pictures of 20 classes" in done.stdout
    assert (tmp_path / "job" / "output" / "1" / "complete.json").exists()


def says(frameworks_lab: Lab, job: str, pattern: str) -> re.Match[str]:
    """What the first trainer is waited for to say, as long as the job goes on."""
    client = frameworks_lab.client()

    def look() -> re.Match[str] | None:
        state = client.get(job).job.state
        found = re.search(pattern, frameworks_lab.out("logs", job, "-w", "trainer-0"))
        assert found or not state.final, f"{job} is {state.label}: {frameworks_lab.out('logs', job)}"
        return found

    return wait_until(look, f"{job} says {pattern}", seconds=200)


def trainer_of(job: str, rank: int) -> int:
    """The process that trains, of this rank."""
    for pid in processes_with(job):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if b"train.py" in words and f"PADDLE_TRAINER_ID={rank}".encode() in variables:
            return pid
    raise AssertionError(f"no trainer {rank} of {job} runs")
