"""What test_plsc_pictures.py runs with numpy and pillow: prints, as JSON, what a folder of pictures gives.

python within_pictures.py FOLDER-OF-THE-JOB make FOLDER CLASSES | read FOLDER TRAINERS
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np


def main() -> None:
    job, verb, folder, number = sys.argv[1:]
    sys.path.insert(0, job)
    if verb == "make":
        made: list[int] = []
        importlib.import_module("make_data").make(folder, int(number), advance=made.append)
        print(json.dumps(sum(made)))
        return
    reader: Any = importlib.import_module("zip_reader")
    listed = reader.listed(folder)
    shares = [reader.read(listed.train, rank, int(number)) for rank in range(int(number))]
    batches = [list(share.batches(4, np.random.default_rng(3), 0)) for share in shares]
    moved = next(shares[0].batches(4, np.random.default_rng(3), 2))[0]
    answer = {
        "classes": listed.classes,
        "train": [one.name for one in listed.train],
        "test": [one.name for one in listed.test],
        "evenly": [one.name for one in reader.evenly(listed.test, 2)],
        "labels": [share.labels.tolist() for share in shares],
        "shape": list(shares[0].pixels.shape),
        "batched": [sorted(int(label) for _, labels in given for label in labels) for given in batches],
        "span": [float(batches[0][0][0].min()), float(batches[0][0][0].max())],
        "moved": float(np.abs(moved - batches[0][0][0]).mean()),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
