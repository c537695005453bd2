"""Seed 003's config of that name as a program of today: a small VGG that learns kinds of pictures."""

from __future__ import annotations

import os
import random

import numpy as np
import paddle
import paddle.distributed as dist
from cluster_train import cluster_config  # where trainers find it; it does nothing
from image_provider import Settings, process

cluster_config(
    # In HDFS: fs_name="hdfs://host:port", fs_ugi="user,password", work_dir="/path/image_classification/"
    work_dir="~/demos/image_classification/",
    has_meta_data=True,
)
meta_path = "./train_data_dir/image_classification/train_meta"

PASSES = int(os.environ.get("NUM_PASSES", "4"))
LOG_PERIOD = int(os.environ.get("LOG_PERIOD", "10"))
DOT_PERIOD = int(os.environ.get("DOT_PERIOD", "2"))
SAVING_PERIOD = int(os.environ.get("SAVING_PERIOD", "1"))
OUTPUT = os.environ.get("OUTPUT_PATH", "output")
BATCH = 16


def vgg(settings: Settings) -> paddle.nn.Layer:
    """Two blocks of the sixteen layers are enough for so small a picture."""

    def block(before: int, behind: int) -> list:
        return [
            paddle.nn.Conv2D(before, behind, 3, padding=1),
            paddle.nn.ReLU(),
            paddle.nn.Conv2D(behind, behind, 3, padding=1),
            paddle.nn.ReLU(),
            paddle.nn.MaxPool2D(2),
        ]

    pixels = (settings.side // 4) ** 2
    end = [paddle.nn.Flatten(), paddle.nn.Linear(32 * pixels, 64), paddle.nn.ReLU()]
    return paddle.nn.Sequential(*block(3, 16), *block(16, 32), *end, paddle.nn.Linear(64, settings.labels))


def batches(samples: list) -> list:
    parts = [samples[start : start + BATCH] for start in range(0, len(samples), BATCH)]
    return [
        (paddle.to_tensor(np.stack([image for image, _ in part])), paddle.to_tensor([label for _, label in part]))
        for part in parts
    ]


def summed(*numbers: float) -> list:
    """Of all trainers together."""
    total = paddle.to_tensor(numbers, "float32")
    if dist.get_world_size() > 1:
        dist.all_reduce(total)
    return total.tolist()


def rightly_named(model: paddle.nn.Layer, samples: list) -> float:
    right = sum(int((model(images).argmax(-1) == labels).sum()) for images, labels in batches(samples))
    right, total = summed(right, len(samples))
    return right / max(1, total)


def main() -> None:
    dist.init_parallel_env()
    rank, world = dist.get_rank(), dist.get_world_size()
    paddle.seed(1)
    settings = Settings(meta_path)
    train = list(process(settings, "train.list"))
    print(f"trainer {rank} of {world} has {len(train)} pictures", flush=True)
    if not train:
        raise SystemExit("this trainer was dealt no file: there must be as many files as trainers, at least")
    # All take the same number of steps: one that has fewer pictures begins again with its first.
    steps = max(1, int(summed(len(train))[0]) // world // BATCH)
    network = vgg(settings)
    model = paddle.DataParallel(network) if world > 1 else network
    optimizer = paddle.optimizer.Adam(0.0005, parameters=model.parameters())
    for number in range(PASSES):
        order = batches(list(process(settings, "train.list", random.Random(number))))
        for step in range(1, steps + 1):
            images, labels = order[step % len(order)]
            loss = paddle.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            if step % LOG_PERIOD == 0 or step == steps:
                print(f"pass {number}  batch {step}  loss {summed(loss.item())[0] / world:.4f}", flush=True)
            elif step % DOT_PERIOD == 0:
                print(".", end="", flush=True)
        if (number + 1) % SAVING_PERIOD == 0:
            paddle.save(network.state_dict(), f"{OUTPUT}/pass-{number:05d}/vgg.pdparams")
    print(f"rightly named: {rightly_named(network, list(process(settings, 'test.list'))):.3f}", flush=True)


if __name__ == "__main__":
    main()
