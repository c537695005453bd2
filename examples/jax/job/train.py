"""A tiny model with JAX: one array over the devices of all trainers, of which each brings its part."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = int(os.environ.get("STEPS", "100"))


def main() -> None:
    if "JAX_COORDINATOR_ADDRESS" in os.environ:  # not on your own machine
        jax.distributed.initialize()
    rank, world = jax.process_index(), jax.process_count()
    split = NamedSharding(Mesh(jax.devices(), "all"), PartitionSpec("all"))
    inputs, targets = (jax.make_array_from_process_local_data(split, part[rank::world]) for part in points())
    model = {"weights": jnp.zeros((4, 1)), "bias": jnp.zeros((1,))}
    for number in range(1, STEPS + 1):
        loss, model = step(model, inputs, targets)
        if number == 1 or number % 20 == 0:
            print(f"rank {rank} of {world}  step {number}  loss {float(loss):.4f}")
    folder = Path(os.environ.get("OUTPUT_PATH", "output"))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "model.npz", **model)
    weights, bias = (np.asarray(model[name]).tolist() for name in ("weights", "bias"))
    (folder / "weights.txt").write_text(f"{weights} {bias}\n")


@jax.jit
def step(model: dict, inputs: jax.Array, targets: jax.Array) -> tuple[jax.Array, dict]:
    """A step over the points of all trainers: JAX adds up what each has of the mean."""

    def error(model: dict) -> jax.Array:
        return jnp.mean((inputs @ model["weights"] + model["bias"] - targets) ** 2)

    loss, gradient = jax.value_and_grad(error)(model)
    return loss, jax.tree.map(lambda value, slope: value - 0.05 * slope, model, gradient)


def points() -> tuple[np.ndarray, np.ndarray]:
    """Made-up points near a plane, the same everywhere; as many for each trainer."""
    inputs = np.random.default_rng(7).normal(size=(240, 4)).astype(np.float32)
    return inputs, inputs @ np.array([[1], [-2], [3], [0.5]], dtype=np.float32) + 4


if __name__ == "__main__":
    main()
