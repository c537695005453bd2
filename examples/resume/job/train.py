"""Trains on after a failure: each attempt begins at the newest checkpoint that every trainer has whole.

A checkpoint is written under another name and then renamed, so that one with its real name is complete. A trainer may
be killed between two of them, so each keeps its last two, and all of them take the newest that they have in common.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
from pathlib import Path

import numpy as np
import paddle
import paddle.distributed as dist

STEPS = int(os.environ.get("STEPS", "60"))
EVERY = int(os.environ.get("EVERY", "10"))
FAIL_AT = int(os.environ.get("FAIL_AT", "0"))  # the last trainer of the first attempt is killed after this step
OUTPUT = Path(os.environ.get("OUTPUT_PATH", "output"))
ATTEMPT = int(os.environ.get("PADDLECLOUD_ATTEMPT", "1"))


def main() -> None:
    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    inputs, targets = share(rank, world)
    paddle.seed(0)
    line = paddle.nn.Linear(4, 1)
    model = paddle.DataParallel(line) if world > 1 else line
    optimizer = paddle.optimizer.Momentum(0.02, parameters=model.parameters())
    done = newest_of_all(world)
    if done:
        line.set_state_dict(paddle.load(str(folder(done) / "model.pdparams")))
        optimizer.set_state_dict(paddle.load(str(folder(done) / "optimizer.pdopt")))
    print(f"attempt {ATTEMPT} begins after step {done}")
    for step in range(done + 1, STEPS + 1):
        loss = paddle.nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if step % EVERY == 0:
            save(step, line, optimizer)
            print(f"step {step}  loss {loss.item():.4f}")
        if step == FAIL_AT and ATTEMPT == 1 and rank == world - 1:
            os.kill(os.getpid(), signal.SIGKILL)
    weights = np.concatenate([one.numpy().ravel() for one in line.parameters()])
    (OUTPUT / "weights.sha256").write_text(hashlib.sha256(weights.tobytes()).hexdigest() + "\n")


def newest_of_all(world: int) -> int:
    """The newest step of which every trainer has a whole checkpoint; 0 if there is none."""
    everyones = [complete()]
    if world > 1:
        everyones = []
        dist.all_gather_object(everyones, complete())
    return max(set(everyones[0]).intersection(*everyones), default=0)


def complete() -> list[int]:
    OUTPUT.mkdir(parents=True, exist_ok=True)
    return sorted(int(path.name[5:]) for path in OUTPUT.glob("step-*"))


def save(step: int, line: paddle.nn.Linear, optimizer: paddle.optimizer.Optimizer) -> None:
    part = OUTPUT / ".part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    paddle.save(line.state_dict(), str(part / "model.pdparams"))
    paddle.save(optimizer.state_dict(), str(part / "optimizer.pdopt"))
    shutil.rmtree(folder(step), ignore_errors=True)  # of an earlier attempt, newer than what all have in common
    part.rename(folder(step))
    for old in [one for one in complete() if one < step][:-1]:
        shutil.rmtree(folder(old))


def folder(step: int) -> Path:
    return OUTPUT / f"step-{step:06d}"


def share(rank: int, world: int) -> tuple[paddle.Tensor, paddle.Tensor]:
    """This trainer's share of made-up points near a plane."""
    dice = np.random.default_rng(7)
    inputs = dice.normal(size=(240, 4)).astype(np.float32)
    targets = inputs @ np.array([[1], [-2], [3], [0.5]], dtype=np.float32) + 4
    return paddle.to_tensor(inputs[rank::world]), paddle.to_tensor(targets[rank::world])


if __name__ == "__main__":
    main()
