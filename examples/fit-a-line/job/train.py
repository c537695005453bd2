"""Fits a line through house prices with PaddlePaddle, on one trainer or several, by PaddleCloud's variables alone.

Trainers average their gradients among themselves (paddle.DataParallel), or send them to pservers where the job has
some. Without any of the variables it trains alone, right here.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
from pathlib import Path

import numpy as np
import pserver

PASSES = int(os.environ.get("PASSES", "200"))
LEARNING_RATE = 0.02
REPORTS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sync", action="store_true", help="pservers take a step when all trainers have sent theirs")
    sync = parser.parse_args().sync
    pservers = [address for address in os.environ.get("PADDLE_PSERVERS_IP_PORT_LIST", "").split(",") if address]
    if os.environ.get("TRAINING_ROLE") == "PSERVER":
        pserver.serve(int(os.environ["PADDLE_TRAINERS_NUM"]), LEARNING_RATE, sync=sync)
    elif pservers:
        train_by_pservers(pservers)
    else:
        train_together()


def train_together() -> None:
    """All trainers as one group: after each pass they hold the same weights."""
    import paddle
    import paddle.distributed as dist

    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    houses, prices = read_houses(rank, world)
    paddle.seed(rank)  # each begins elsewhere: DataParallel gives all of them the first one's weights
    line = paddle.nn.Linear(houses.shape[1], 1)
    model = paddle.DataParallel(line) if world > 1 else line
    optimizer = paddle.optimizer.SGD(LEARNING_RATE, parameters=model.parameters())
    for number in range(1, PASSES + 1):
        loss = paddle.nn.functional.mse_loss(model(paddle.to_tensor(houses)), paddle.to_tensor(prices))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if reports(number):
            mean = loss.detach()
            if world > 1:
                dist.all_reduce(mean)
            print(f"pass {number}  loss {mean.item() / world:.4f}")
    digest = save(line)
    digests = [digest]
    if world > 1:
        digests = []
        dist.all_gather_object(digests, digest)
    if len(set(digests)) > 1:
        raise SystemExit(f"the ranks do not hold the same weights: {digests}")
    print(f"{world} of {world} ranks hold the weights {digest[:16]}")


def train_by_pservers(pservers: list[str]) -> None:
    """The pservers hold the weights: gradients go there, and what has become of the weights comes back."""
    import paddle

    rank, world = int(os.environ["PADDLE_TRAINER_ID"]), int(os.environ["PADDLE_TRAINERS_NUM"])
    houses, prices = read_houses(rank, world)
    paddle.seed(rank)
    line = paddle.nn.Linear(houses.shape[1], 1)
    servers = pserver.Servers(pservers, rank)
    done, weights = servers.join(flat([one.numpy() for one in line.parameters()]))
    if done:
        print(f"going on after pass {done}")
    for number in range(done + 1, PASSES + 1):
        put(line, weights)
        loss = paddle.nn.functional.mse_loss(line(paddle.to_tensor(houses)), paddle.to_tensor(prices))
        loss.backward()
        weights = servers.step(flat([one.grad.numpy() for one in line.parameters()]))
        line.clear_gradients()
        if reports(number):
            print(f"pass {number}  loss {loss.item():.4f}")
    put(line, servers.leave())
    print(f"saved the weights {save(line)[:16]}")


def read_houses(rank: int, world: int) -> tuple[np.ndarray, np.ndarray]:
    """This trainer's share of the houses, columns with mean 0 and deviation 1 over all houses."""
    folder = Path(os.environ.get("LOCAL_MOUNT_PATH") or Path(__file__).parent)
    with (folder / "data/housing.csv").open(newline="") as file:
        table = np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]], dtype=np.float32)
    houses, prices = table[:, :-1], table[:, -1:]
    houses = (houses - houses.mean(axis=0)) / houses.std(axis=0)
    print(f"trainer {rank} of {world}: {len(houses[rank::world])} of {len(houses)} houses")
    return houses[rank::world], prices[rank::world]


def reports(number: int) -> bool:
    return number == 1 or number % max(1, PASSES // REPORTS) == 0


def flat(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.ravel() for array in arrays])


def put(line, vector: np.ndarray) -> None:
    for parameter in line.parameters():
        size = int(np.prod(parameter.shape))
        parameter.set_value(vector[:size].reshape(parameter.shape))
        vector = vector[size:]


def save(line) -> str:
    """Save the model as PaddlePaddle does, and give a digest of its weights."""
    import paddle

    folder = Path(os.environ.get("OUTPUT_PATH", "output"))
    folder.mkdir(parents=True, exist_ok=True)
    paddle.save(line.state_dict(), str(folder / "model.pdparams"))
    digest = hashlib.sha256(flat([one.numpy() for one in line.parameters()]).tobytes()).hexdigest()
    (folder / "weights.sha256").write_text(digest + "\n")
    return digest


if __name__ == "__main__":
    main()
