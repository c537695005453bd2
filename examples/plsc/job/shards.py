"""Which trainer has which classes, and which of them take part in a step: plain arithmetic, without PaddlePaddle.

Classes are split in order, as evenly as whole blocks allow: of 10,001 on two trainers the first has 5,001.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Shard(NamedTuple):
    """The classes from `first` to `last`, which is not one of them."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first

    def has(self, labels: np.ndarray) -> np.ndarray:
        return (labels >= self.first) & (labels < self.last)


def shard(classes: int, rank: int, trainers: int) -> Shard:
    """Blocks are of one size but the last, which may be smaller (PLSC's own rule)."""
    block = -(-classes // trainers)
    return Shard(min(rank * block, classes), min((rank + 1) * block, classes))


def sample(of: Shard, labels: np.ndarray, share: float, dice: np.random.Generator) -> np.ndarray:
    """Partial FC: the shard's classes that take part in a step, by their place in it, in order.

    Those of the step's own labels always do; others by chance, until it is this share of the shard. PaddlePaddle's
    class_center_sample would do it on GPUs; on CPUs it gives classes of other trainers without a word.
    """
    here = np.unique(labels[of.has(labels)]) - of.first
    wanted = max(round(of.count * share), len(here))
    others = np.ones(of.count, dtype=bool)
    others[here] = False
    drawn = dice.choice(np.flatnonzero(others), wanted - len(here), replace=False)
    return np.sort(np.concatenate([here, drawn])).astype(np.int64)


def places(chosen: np.ndarray, labels: np.ndarray, of: Shard) -> np.ndarray:
    """Where the class of each label is among the chosen ones; -1 where another trainer has it."""
    own = of.has(labels)
    found = np.searchsorted(chosen, np.where(own, labels - of.first, 0))
    return np.where(own, found, -1).astype(np.int64)
