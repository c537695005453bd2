"""Writes small made-up pictures of four kinds, always the same: `python make_data.py FOLDER`.

As seed 003's preprocess.sh: batches of pictures and labels, pickled, and train_meta with the mean of all pictures.
"""

from __future__ import annotations

import os
import pickle
import random
import sys

SIDE, LABELS, PICTURES = 12, 4, 64
TRAIN_BATCHES, TEST_BATCHES = 8, 2


def picture(label: int, chance: random.Random) -> bytes:
    """Stripes in one of four directions, in any colour and place, under noise."""
    colours = [chance.randrange(90, 200) for _ in range(3)]
    begin = chance.randrange(4)
    made = bytearray()
    for colour in colours:
        for y in range(SIDE):
            for x in range(SIDE):
                place = (x, y, x + y, x - y)[label]
                light = colour if (place + begin) % 4 < 2 else 40
                made.append(min(255, max(0, light + chance.randrange(-80, 81))))
    return bytes(made)


def batch(chance: random.Random) -> dict:
    labels = [chance.randrange(LABELS) for _ in range(PICTURES)]
    return {"images": [picture(label, chance) for label in labels], "labels": labels}


def write(file: str, content: dict) -> None:
    with open(file, "wb") as made:
        pickle.dump(content, made, protocol=2)


def main(folder: str) -> None:
    chance = random.Random(3)
    train = []
    for name, count in (("train", TRAIN_BATCHES), ("test", TEST_BATCHES)):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
        for number in range(count):
            made = batch(chance)
            train += made["images"] if name == "train" else []
            write(os.path.join(folder, name, f"{name}_batch_{number:03d}"), made)
    mean = [sum(values) / len(train) for values in zip(*train)]
    for name in ("train_meta", "test_meta"):
        write(os.path.join(folder, name), {"mean_image": mean, "image_size": SIDE, "num_classes": LABELS})


if __name__ == "__main__":
    main(sys.argv[1])
