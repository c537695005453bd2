"""Each example of a framework trains on two trainers as its README says, and both end with the same model."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT
from tests.flow.lab import Lab
from tests.frameworks import needs

EXAMPLES = ROOT / "examples"

# As if the second trainer had been killed while it wrote its newest checkpoint.
HALF_WRITTEN = (
    '[ "$PADDLECLOUD_ATTEMPT$PADDLE_TRAINER_ID" != 21 ] || mv "$OUTPUT_PATH/step-000020" "$OUTPUT_PATH/.part"'
)

pytestmark = pytest.mark.slow


def left(frameworks_lab: Lab, job: str, name: str) -> list[str]:
    """What every trainer left in a file of this name."""
    folder = frameworks_lab.work / job
    frameworks_lab.client().download(job, folder)
    return [path.read_text() for path in sorted(folder.glob(f"**/rank-*/{name}"))]


@pytest.mark.parametrize(
    ("example", "model"),
    [
        pytest.param("torch-ddp", "model.pt", marks=needs("torch"), id="torch-ddp"),
        pytest.param("tensorflow", "model.npz", marks=needs("tensorflow"), id="tensorflow"),
        pytest.param("jax", "model.npz", marks=needs("jax"), id="jax"),
    ],
)
def test_two_trainers_learn_the_same(frameworks_lab: Lab, example: str, model: str) -> None:
    job = frameworks_lab.client().submit(EXAMPLES / example / "job", command="python train.py", nodes=2).id
    frameworks_lab.ends(job, "success", seconds=200)
    log = frameworks_lab.out("logs", job)
    for rank in range(2):
        losses = [float(loss) for loss in re.findall(rf"rank {rank} of 2  step \d+  loss ([\d.]+)", log)]
        assert losses[-1] < 0.01 < 1 < losses[0]
    weights = left(frameworks_lab, job, "weights.txt")
    assert len(weights) == 2
    assert len(set(weights)) == 1
    assert len(list((frameworks_lab.work / job).glob(f"**/rank-*/{model}"))) == 2
    assert "was built" not in log


@needs("paddle")
def test_a_job_resumes_at_the_newest_checkpoint_that_all_trainers_have_whole(frameworks_lab: Lab) -> None:
    folder = EXAMPLES / "resume/job"
    client = frameworks_lab.client()
    straight = client.submit(folder, command="python train.py", nodes=2).id
    killed = client.submit(
        folder, command="python train.py", nodes=2, retry=1, env={"FAIL_AT": "25"}, setup=[HALF_WRITTEN]
    ).id
    frameworks_lab.ends(straight, "success", seconds=120)
    frameworks_lab.ends(killed, "success", seconds=120)
    began = [
        line.rpartition(" | ")[2] for line in frameworks_lab.out("logs", killed).splitlines() if "begins after" in line
    ]
    assert sorted(began) == ["attempt 1 begins after step 0"] * 2 + ["attempt 2 begins after step 10"] * 2
    weights = [*left(frameworks_lab, straight, "weights.sha256"), *left(frameworks_lab, killed, "weights.sha256")]
    assert len(weights) == 4
    assert len(set(weights)) == 1, "with its momentum, it is as if nothing had happened"
