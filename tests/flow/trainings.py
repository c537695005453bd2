"""The least that each framework can do together: every process tells its rank, the size of its world, and a sum.

Nothing is checked by these scripts: one that finds itself alone ends as well as the others, and the test has to see it.
"""

from __future__ import annotations

from typing import NamedTuple

_TELL = """
import json, os


def tell(rank, world, total):
    with open(os.path.join(os.environ["OUTPUT_PATH"], f"seen-{os.getpid()}.json"), "w") as file:
        json.dump({"rank": int(rank), "world": int(world), "total": float(total)}, file)
"""

_PADDLE = """
import paddle
import paddle.distributed as dist

dist.init_parallel_env()
total = paddle.to_tensor([dist.get_rank() + 1.0])
if dist.get_world_size() > 1:  # alone it has no group to reduce in
    dist.all_reduce(total)
tell(dist.get_rank(), dist.get_world_size(), total.item())
"""

_TORCH = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
tell(dist.get_rank(), dist.get_world_size(), total.item())
dist.destroy_process_group()
"""

_TENSORFLOW = """
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = strategy.cluster_resolver.task_id
each = strategy.run(tf.function(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(rank + 1.0))))
tell(rank, strategy.num_replicas_in_sync, strategy.experimental_local_results(each)[0])
"""

_JAX = """
import jax

jax.distributed.initialize(ARGUMENTS)
from jax.experimental.multihost_utils import process_allgather

rank = jax.process_index()
tell(rank, jax.process_count(), process_allgather(jax.numpy.float32(rank + 1)).sum())
"""

_JAX_ARGUMENTS = (
    'os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])'
)


class Training(NamedTuple):
    package: str
    command: str
    script: str


TRAININGS = {
    "paddle": Training("paddle", "python train.py", _TELL + _PADDLE),
    "paddle-launch": Training("paddle", "python -m paddle.distributed.launch train.py", _TELL + _PADDLE),
    "torch": Training("torch", "python train.py", _TELL + _TORCH),
    "torchrun": Training("torch", "torchrun train.py", _TELL + _TORCH),
    "jax": Training("jax", "python train.py", _TELL + _JAX.replace("ARGUMENTS", "")),
    "jax-arguments": Training("jax", "python train.py", _TELL + _JAX.replace("ARGUMENTS", _JAX_ARGUMENTS)),
    "tensorflow": Training("tensorflow", "python train.py", _TELL + _TENSORFLOW),
}
