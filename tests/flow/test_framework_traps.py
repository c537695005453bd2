"""What fails in silence elsewhere, or never ends: with real frameworks, it is seen here at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.flow.lab import Lab, processes_with
from tests.frameworks import SETTINGS, needs

# Somebody else listens where the first trainer is to: it aborts, and the others wait for a quarter of an hour.
TAKEN = """
import os, socket
import paddle.distributed as dist

host, port = os.environ["PADDLE_MASTER"].split(":")
if os.environ["PADDLE_TRAINER_ID"] == "0":
    somebody = socket.create_server((host, int(port)))
print("meeting at", port)
dist.init_parallel_env()
"""

# The second trainer of the first attempt is killed in the middle of a step, when the first already waits for it.
KILLED = """
import os, signal
import torch
import torch.distributed as dist

print("port", os.environ["MASTER_PORT"], flush=True)
dist.init_process_group("gloo")
if dist.get_rank() == 1 and os.environ["PADDLECLOUD_ATTEMPT"] == "1":
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
print("attempt", os.environ["PADDLECLOUD_ATTEMPT"], "world", dist.get_world_size())
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def lab_with_frameworks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    made = Lab(tmp_path_factory.mktemp("traps"))
    made.configure(SETTINGS)
    yield made
    made.close()


@needs("paddle")
def test_a_taken_port_ends_the_whole_gang_at_once(lab_with_frameworks: Lab) -> None:
    lab = lab_with_frameworks
    lab.folder("taken", train_py=TAKEN)
    job = lab.out("submit", "taken", "--nodes", "2", "--", "python", "train.py").split()[-1]
    lab.ends(job, "failed", seconds=150)
    assert lab.field(job, "error_msg").startswith("trainer-0 failed first")
    assert "meeting at" in lab.out("logs", job, "-w", "trainer-1")
    assert processes_with(job) == []


@needs("torch")
def test_a_killed_rank_has_all_start_again_with_new_ports_and_the_attempt_counted(lab_with_frameworks: Lab) -> None:
    lab = lab_with_frameworks
    lab.folder("killed", train_py=KILLED)
    job = lab.out("submit", "killed", "--nodes", "2", "--retry", "1", "--", "python", "train.py").split()[-1]
    lab.ends(job, "success", seconds=150)
    told = [line.rpartition(" | ")[2] for line in lab.out("logs", job).splitlines()]
    assert [line for line in told if line.startswith("attempt")] == ["attempt 2 world 2"] * 2
    assert len({line for line in told if line.startswith("port")}) == 2
    assert "trainer-1 failed first: exit code 137: SIGKILL" in (shown := lab.out("show", job)), shown
