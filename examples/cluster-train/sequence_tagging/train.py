"""Learns to tag words with PaddlePaddle 3, on one trainer or several: what v1 did by itself from a config.

How long and how often it tells and saves is said by the flags of `paddle cluster_train`, as variables.
"""

from __future__ import annotations

import os
import random

import numpy as np
import paddle
import paddle.distributed as dist
from dataprovider import TAGS, dictionary, process

PASSES = int(os.environ.get("NUM_PASSES", "6"))
LOG_PERIOD = int(os.environ.get("LOG_PERIOD", "20"))
DOT_PERIOD = int(os.environ.get("DOT_PERIOD", "5"))
SAVING_PERIOD = int(os.environ.get("SAVING_PERIOD", "1"))
OUTPUT = os.environ.get("OUTPUT_PATH", "output")
BATCH, WIDTH, IGNORED = 16, 32, -100


class Tagger(paddle.nn.Layer):
    """Reads a sentence in both directions, and names the tag of each word."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding = paddle.nn.Embedding(words + 1, WIDTH)
        self.reading = paddle.nn.GRU(WIDTH, WIDTH, direction="bidirect")
        self.tags = paddle.nn.Linear(2 * WIDTH, len(TAGS))

    def forward(self, words: paddle.Tensor) -> paddle.Tensor:
        return self.tags(self.reading(self.embedding(words))[0])


def batches(sentences: list) -> list:
    """Sentences side by side, the shorter ones filled up with what is not counted."""
    found = []
    for start in range(0, len(sentences), BATCH):
        part = sentences[start : start + BATCH]
        length = max(len(words) for words, _ in part)
        words = np.array([one + [0] * (length - len(one)) for one, _ in part], "int64")
        tags = np.array([one + [IGNORED] * (length - len(one)) for _, one in part], "int64")
        found.append((paddle.to_tensor(words), paddle.to_tensor(tags)))
    return found


def summed(*numbers: float) -> list:
    """Of all trainers together."""
    total = paddle.to_tensor(numbers, "float32")
    if dist.get_world_size() > 1:
        dist.all_reduce(total)
    return total.tolist()


def loss_of(model: paddle.nn.Layer, words: paddle.Tensor, tags: paddle.Tensor) -> paddle.Tensor:
    return paddle.nn.functional.cross_entropy(model(words), tags, ignore_index=IGNORED)


def rightly_tagged(model: paddle.nn.Layer, sentences: list) -> float:
    right = total = 0
    for words, tags in batches(sentences):
        counts = tags.numpy() != IGNORED
        right += int(((model(words).argmax(-1).numpy() == tags.numpy()) & counts).sum())
        total += int(counts.sum())
    right, total = summed(right, total)
    return right / max(1, total)


def main() -> None:
    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    paddle.seed(1)
    words = dictionary()
    train, test = (list(process(words, name)) for name in ("train.list", "test.list"))
    print(f"trainer {rank} of {world} has {len(train)} sentences, {len(test)} to test with", flush=True)
    if not train:
        raise SystemExit("this trainer was dealt no file: there must be as many files as trainers, at least")
    # All take the same number of steps: one that has fewer sentences begins again with its first.
    steps = max(1, int(summed(len(train))[0]) // world // BATCH)
    tagger = Tagger(len(words))
    model = paddle.DataParallel(tagger) if world > 1 else tagger
    optimizer = paddle.optimizer.Adam(0.002, parameters=model.parameters())
    for number in range(PASSES):
        random.Random(number).shuffle(train)
        order = batches(train)
        for step in range(1, steps + 1):
            loss = loss_of(model, *order[step % len(order)])
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            if step % LOG_PERIOD == 0 or step == steps:
                print(f"pass {number}  batch {step}  loss {summed(loss.item())[0] / world:.4f}", flush=True)
            elif step % DOT_PERIOD == 0:
                print(".", end="", flush=True)
        if (number + 1) % SAVING_PERIOD == 0:
            paddle.save(tagger.state_dict(), f"{OUTPUT}/pass-{number:05d}/tagger.pdparams")
    print(f"rightly tagged: {rightly_tagged(tagger, test):.3f}", flush=True)


if __name__ == "__main__":
    main()
