"""What test_plsc_margin.py runs on each trainer, with PaddlePaddle: ArcFace by shards, beside the same in one piece.

    python within_margin.py FOLDER-OF-THE-JOB CLASSES

Prints, as JSON, both losses and the largest difference of the gradients. Nothing of ours is in the one piece but its
formula, and its gradients are PaddlePaddle's own.
"""

from __future__ import annotations

import importlib
import json
import math
import sys
from typing import Any

import numpy as np

MARGIN, SCALE, EMBEDDING, PICTURES = 0.2, 32.0, 16, 12  # pictures of all trainers together


def main() -> None:
    folder, classes = sys.argv[1], int(sys.argv[2])
    sys.path.insert(0, folder)
    paddle: Any = importlib.import_module("paddle")
    margin: Any = importlib.import_module("margin")
    shards: Any = importlib.import_module("shards")
    trainers: Any = importlib.import_module("trainers").Trainers()
    dice = np.random.default_rng(5)
    features = dice.standard_normal((PICTURES, EMBEDDING)).astype("float32")
    centres = dice.standard_normal((classes, EMBEDDING)).astype("float32")
    labels = dice.integers(0, classes, PICTURES)
    labels[0], labels[1] = 0, classes - 1
    features[2] = -centres[labels[2]]  # half a turn away: beyond it with the margin
    loss, of_features, of_centres = _in_one_piece(paddle, features, centres, labels)

    shard = shards.shard(classes, trainers.rank, trainers.count)
    share = PICTURES // trainers.count
    mine = slice(trainers.rank * share, (trainers.rank + 1) * share)
    own_features, own_centres = paddle.to_tensor(features[mine]), paddle.to_tensor(centres[shard.first : shard.last])
    own_features.stop_gradient = own_centres.stop_gradient = False
    places = shards.places(np.arange(shard.count), labels, shard)
    rows = np.flatnonzero(places >= 0)
    own = paddle.to_tensor(np.stack([rows, places[rows]], axis=1))
    gathered = margin.Gathered.apply(paddle.nn.functional.normalize(own_features), trainers)
    found, _ = margin.ArcFace.apply(gathered, own_centres, own, MARGIN, SCALE, trainers)
    found.backward()
    answer = {
        "trainers": trainers.count,
        "classes": shard.count,
        "loss": [float(loss.item()), float(found.item())],
        "features": float(np.abs(own_features.grad.numpy() - of_features[mine]).max()),
        "centres": float(np.abs(own_centres.grad.numpy() - of_centres[shard.first : shard.last]).max()),
        "largest": float(max(np.abs(of_features).max(), np.abs(of_centres).max())),
    }
    print(json.dumps(answer))


def _in_one_piece(paddle: Any, features: Any, centres: Any, labels: Any) -> tuple[Any, Any, Any]:
    functional = paddle.nn.functional
    features, centres = paddle.to_tensor(features), paddle.to_tensor(centres)
    features.stop_gradient = centres.stop_gradient = False
    cosine = paddle.matmul(functional.normalize(features), functional.normalize(centres), transpose_y=True)
    cosine = cosine.clip(-1 + 1e-6, 1 - 1e-6)
    turned = paddle.where(
        cosine > math.cos(math.pi - MARGIN),
        paddle.cos(paddle.acos(cosine) + MARGIN),
        cosine - MARGIN * math.sin(math.pi - MARGIN),
    )
    is_own = functional.one_hot(paddle.to_tensor(labels), centres.shape[0])
    loss = functional.cross_entropy(SCALE * paddle.where(is_own > 0, turned, cosine), paddle.to_tensor(labels))
    loss.backward()
    return loss, features.grad.numpy(), centres.grad.numpy()


if __name__ == "__main__":
    main()
