"""A tiny model with TensorFlow's MultiWorkerMirroredStrategy, which finds the other trainers by TF_CONFIG."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import tensorflow as tf

STEPS = int(os.environ.get("STEPS", "100"))


def main() -> None:
    distributed = "TF_CONFIG" in os.environ  # not on your own machine
    strategy = tf.distribute.MultiWorkerMirroredStrategy() if distributed else tf.distribute.get_strategy()
    rank = strategy.cluster_resolver.task_id if distributed else 0
    world = strategy.num_replicas_in_sync
    inputs, targets = (tf.constant(part[rank::world]) for part in points())
    with strategy.scope():
        weights = tf.Variable(tf.zeros((4, 1)), aggregation=tf.VariableAggregation.MEAN)
        bias = tf.Variable(tf.zeros((1,)), aggregation=tf.VariableAggregation.MEAN)

    def here() -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((inputs @ weights + bias - targets) ** 2)
        gradients = tape.gradient(loss, [weights, bias])
        group = tf.distribute.get_replica_context()
        for variable, gradient in zip((weights, bias), group.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)):
            variable.assign_sub(0.05 * gradient)
        return group.all_reduce(tf.distribute.ReduceOp.MEAN, loss)

    step = tf.function(lambda: strategy.experimental_local_results(strategy.run(here))[0])
    for number in range(1, STEPS + 1):
        loss = float(step())
        if number == 1 or number % 20 == 0:
            print(f"rank {rank} of {world}  step {number}  loss {loss:.4f}")
    folder = Path(os.environ.get("OUTPUT_PATH", "output"))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "model.npz", weights=weights.numpy(), bias=bias.numpy())
    (folder / "weights.txt").write_text(f"{weights.numpy().tolist()} {bias.numpy().tolist()}\n")


def points() -> tuple[np.ndarray, np.ndarray]:
    """Made-up points near a plane, the same everywhere."""
    inputs = np.random.default_rng(7).normal(size=(240, 4)).astype(np.float32)
    return inputs, inputs @ np.array([[1], [-2], [3], [0.5]], dtype=np.float32) + 4


if __name__ == "__main__":
    main()
