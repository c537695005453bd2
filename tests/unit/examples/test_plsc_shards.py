"""Classes over trainers, and the few of them that partial FC takes into a step."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.examples.plsc import shards


@pytest.mark.parametrize(
    ("classes", "trainers", "counts"),
    [(10_000, 2, [5000, 5000]), (10_001, 2, [5001, 5000]), (10_000, 3, [3334, 3334, 3332]), (5, 4, [2, 2, 1, 0])],
)
def test_every_class_has_one_trainer(classes: int, trainers: int, counts: list[int]) -> None:
    found = [shards.shard(classes, rank, trainers) for rank in range(trainers)]
    assert [shard.count for shard in found] == counts
    assert [number for shard in found for number in range(shard.first, shard.last)] == list(range(classes))


def test_a_sample_has_every_class_of_the_step_and_none_of_another_trainer() -> None:
    dice = np.random.default_rng(7)
    shard = shards.shard(1001, 1, 2)
    for _ in range(50):
        labels = dice.integers(0, 1001, 64)
        chosen = shards.sample(shard, labels, 0.1, dice)
        assert len(chosen) == len(set(chosen)) == 50
        assert chosen.min() >= 0
        assert chosen.max() < shard.count
        own = labels[labels >= shard.first] - shard.first
        assert set(own) <= set(chosen)
        assert list(chosen) == sorted(chosen)


def test_a_sample_grows_where_the_step_has_more_classes_than_its_share() -> None:
    shard = shards.shard(100, 0, 2)
    chosen = shards.sample(shard, np.arange(40), 0.1, np.random.default_rng(7))
    assert list(chosen) == list(range(40))


def test_over_many_steps_every_class_is_drawn() -> None:
    dice = np.random.default_rng(7)
    shard = shards.shard(200, 0, 2)
    counts = np.zeros(100)
    for _ in range(500):
        counts[shards.sample(shard, np.array([3]), 0.1, dice)] += 1
    assert counts[3] == 500
    others = np.delete(counts, 3)
    assert others.min() > 20
    assert others.max() < 85


def test_a_label_is_found_where_its_class_was_put_and_not_at_another_trainer() -> None:
    shard = shards.shard(100, 1, 2)
    chosen = np.array([0, 4, 9])
    assert list(shards.places(chosen, np.array([50, 54, 3, 59, 99 - 60]), shard)) == [0, 1, -1, 2, -1]
