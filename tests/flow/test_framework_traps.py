"""What fails in silence elsewhere, or never ends: with real frameworks, it is seen here at once."""

from __future__ import annotations

from tests.flow.lab import Lab, processes_with
from tests.frameworks import needs

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


@needs("paddle")
def test_a_taken_port_ends_the_whole_gang_at_once(frameworks_lab: Lab) -> None:
    frameworks_lab.folder("taken", train_py=TAKEN)
    job = frameworks_lab.out("submit", "taken", "--nodes", "2", "--", "python", "train.py").split()[-1]
    frameworks_lab.ends(job, "failed", seconds=150)
    assert frameworks_lab.field(job, "error_msg").startswith("trainer-0 failed first")
    assert "meeting at" in frameworks_lab.out("logs", job, "-w", "trainer-1")
    assert processes_with(job) == []


@needs("torch")
def test_a_killed_rank_has_all_start_again_with_new_ports_and_the_attempt_counted(frameworks_lab: Lab) -> None:
    frameworks_lab.folder("killed", train_py=KILLED)
    job = frameworks_lab.out("submit", "killed", "--nodes", "2", "--retry", "1", "--", "python", "train.py").split()[-1]
    frameworks_lab.ends(job, "success", seconds=150)
    told = [line.rpartition(" | ")[2] for line in frameworks_lab.out("logs", job).splitlines()]
    assert [line for line in told if line.startswith("attempt")] == ["attempt 2 world 2"] * 2
    assert len({line for line in told if line.startswith("port")}) == 2
    assert "trainer-1 failed first: exit code 137: SIGKILL" in (shown := frameworks_lab.out("show", job)), shown
