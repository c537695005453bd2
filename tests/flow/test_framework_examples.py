"""Each example of a framework trains on two trainers as its README says, and both end with the same model."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT
from tests.flow.lab import Lab
from tests.frameworks import SETTINGS, needs

EXAMPLES = ROOT / "examples"

# As if the second trainer had been killed while it wrote its newest checkpoint.
HALF_WRITTEN = (
    '[ "$PADDLECLOUD_ATTEMPT$PADDLE_TRAINER_ID" != 21 ] || mv "$OUTPUT_PATH/step-000020" "$OUTPUT_PATH/.part"'
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("examples"))
    made.configure(SETTINGS)
    made.type("up")
    yield made
    made.close()


def left(server: Lab, job: str, name: str) -> list[str]:
    """What every trainer left in a file of this name."""
    folder = server.work / job
    server.client().download(job, folder)
    return [path.read_text() for path in sorted(folder.glob(f"**/rank-*/{name}"))]


@pytest.mark.parametrize(
    ("example", "model"),
    [
        pytest.param("torch-ddp", "model.pt", marks=needs("torch"), id="torch-ddp"),
        pytest.param("tensorflow", "model.npz", marks=needs("tensorflow"), id="tensorflow"),
        pytest.param("jax", "model.npz", marks=needs("jax"), id="jax"),
    ],
)
def test_two_trainers_learn_the_same(server: Lab, example: str, model: str) -> None:
    job = server.client().submit(EXAMPLES / example / "job", command="python train.py", nodes=2).id
    server.ends(job, "success", seconds=200)
    log = server.out("logs", job)
    for rank in range(2):
        losses = [float(loss) for loss in re.findall(rf"rank {rank} of 2  step \d+  loss ([\d.]+)", log)]
        assert losses[-1] < 0.01 < 1 < losses[0]
    weights = left(server, job, "weights.txt")
    assert len(weights) == 2
    assert len(set(weights)) == 1
    assert len(list((server.work / job).glob(f"**/rank-*/{model}"))) == 2
    assert "was built" not in log


@needs("paddle")
def test_a_job_resumes_at_the_newest_checkpoint_that_all_trainers_have_whole(server: Lab) -> None:
    folder = EXAMPLES / "resume/job"
    client = server.client()
    straight = client.submit(folder, command="python train.py", nodes=2).id
    killed = client.submit(
        folder, command="python train.py", nodes=2, retry=1, env={"FAIL_AT": "25"}, setup=[HALF_WRITTEN]
    ).id
    server.ends(straight, "success", seconds=120)
    server.ends(killed, "success", seconds=120)
    began = [line.rpartition(" | ")[2] for line in server.out("logs", killed).splitlines() if "begins after" in line]
    assert sorted(began) == ["attempt 1 begins after step 0"] * 2 + ["attempt 2 begins after step 10"] * 2
    weights = [*left(server, straight, "weights.sha256"), *left(server, killed, "weights.sha256")]
    assert len(weights) == 4
    assert len(set(weights)) == 1, "with its momentum, it is as if nothing had happened"
