"""Reads what a trainer was dealt: in a list each line is a batch, such as ./train_data_dir/train/train_batch_033."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator

import numpy as np


class Settings:
    """What describes the pictures: their mean, their size, how many kinds there are."""

    def __init__(self, meta_path: str) -> None:
        with open(meta_path, "rb") as file:
            meta = pickle.load(file)
        self.side, self.labels = meta["image_size"], meta["num_classes"]
        self.mean = np.array(meta["mean_image"], "float32")


def process(settings: Settings, list_file: str, chance: random.Random | None = None) -> Iterator[tuple]:
    """Picture by picture, less the mean, and its label; with `chance` in any order."""
    with open(list_file) as names:
        batches = [name.strip() for name in names]
    for name in batches:
        with open(name, "rb") as file:
            data = pickle.load(file)
        indexes = list(range(len(data["images"])))
        if chance is not None:
            chance.shuffle(indexes)
        for index in indexes:
            picture = np.frombuffer(data["images"][index], "uint8").astype("float32")
            yield ((picture - settings.mean) / 64).reshape(3, settings.side, settings.side), int(data["labels"][index])
