"""What is trained: the network, of which every trainer has a copy, and the centres of this trainer's own classes."""

from __future__ import annotations

from collections.abc import Iterable

import checkpoint
import numpy as np
import paddle
import shards
from margin import ArcFace, Gathered
from network import Backbone
from paddle.nn import functional
from trainers import Trainers
from zip_reader import Pictures, scaled

_MOMENTUM = 0.9
_TOGETHER = 256  # pictures that are tested at once


class Learner:
    """`share` of the classes take part in a step: below 1 it is partial FC. Centres move `hurry` times as fast."""

    def __init__(
        self,
        trainers: Trainers,
        *,
        classes: int,
        embedding: int,
        share: float,
        margin: float,
        scale: float,
        decay: float,
        hurry: float,
    ) -> None:
        self._trainers, self._share, self._margin, self._scale = trainers, share, margin, scale
        self._decay, self._hurry = decay, hurry
        self.classes, self.steps = classes, 0
        self.shard = shards.shard(classes, trainers.rank, trainers.count)
        if not self.shard.count:
            raise SystemExit(f"{classes} classes are too few for {trainers.count} trainers: this one would have none")
        self._network = Backbone(embedding)
        self._trained = self._network.trained()
        self._counted = self._network.counted()
        self._velocity = {name: paddle.zeros_like(value) for name, value in self._trained.items()}
        self._centres = paddle.to_tensor(_first_centres(self.shard, embedding))
        self._centres_velocity = paddle.zeros_like(self._centres)
        self._agree()

    def step(self, pixels: np.ndarray, labels: np.ndarray, rate: float, dice: np.random.Generator) -> paddle.Tensor:
        """One step with this trainer's pictures; the mean loss of all, and the share that was recognized."""
        everyones = self._trainers.rows(paddle.to_tensor(labels)).numpy()
        chosen = self._chosen(everyones, dice)
        centres = (self._centres if chosen is None else self._centres[chosen]).detach()
        centres.stop_gradient = False
        features = Gathered.apply(functional.normalize(self._network(paddle.to_tensor(pixels))), self._trainers)
        own = self._own(everyones, chosen)
        loss, nearest = ArcFace.apply(features, centres, own, self._margin, self._scale, self._trainers)
        loss.backward()
        with paddle.no_grad():
            self._move_network(rate)
            self._move_centres(centres, chosen, rate * self._hurry)
        self.steps += 1
        return paddle.stack([loss.detach(), nearest])

    @paddle.no_grad()
    def recognized(self, pictures: Pictures) -> float:
        """The share of these, of which each trainer has as many, whose own class of all is the nearest."""
        self._network.eval()
        pieces = [
            functional.normalize(self._network(paddle.to_tensor(scaled(pictures.pixels[first : first + _TOGETHER]))))
            for first in range(0, len(pictures.labels), _TOGETHER)
        ]
        self._network.train()
        features = self._trainers.rows(paddle.concat(pieces))
        labels = self._trainers.rows(paddle.to_tensor(pictures.labels))
        near = paddle.matmul(features, functional.normalize(self._centres), transpose_y=True)
        best = near.max(axis=1)
        is_here = best >= self._trainers.highest(best.clone())
        right = is_here & (near.argmax(axis=1) + self.shard.first == labels)
        return float(self._trainers.sum(right.astype("float32").sum()).item()) / len(labels)

    def variables(self, rate: float) -> dict[str, np.ndarray]:
        """What this trainer saves: the first one all, the others their classes."""
        name = checkpoint.centres_name(self._trainers.rank)
        own = {
            name: self._centres.numpy().T,
            name + checkpoint.VELOCITY: self._centres_velocity.numpy().T,
        }
        if self._trainers.rank:
            return own
        own[checkpoint.COUNTER] = np.array([self.steps], dtype=np.int64)
        own[checkpoint.RATE] = np.array([rate], dtype=np.float32)
        own.update({name: value.numpy() for name, value in {**self._trained, **self._counted}.items()})
        own.update({name + checkpoint.VELOCITY: value.numpy() for name, value in self._velocity.items()})
        return own

    def restore(self, origin: checkpoint.Origin | None) -> None:
        """Go on from a pass; of its folders a trainer needs those with its classes, and the first also its own."""
        if origin is not None:
            centres, velocity = checkpoint.centres(origin, self.shard)
            self._centres.set_value(centres)
            self._centres_velocity.set_value(velocity)
            if self._trainers.rank == 0:
                self._restore_shared(origin)
        self.steps = self._trainers.told(self.steps)[0]
        self._agree()

    def _restore_shared(self, origin: checkpoint.Origin) -> None:
        moving = {name + checkpoint.VELOCITY: value for name, value in self._velocity.items()}
        targets = {**self._trained, **self._counted, **moving}
        found = checkpoint.shared(origin, [checkpoint.COUNTER, *targets])
        self.steps = int(found.pop(checkpoint.COUNTER)[0])
        for name, values in found.items():
            targets[name].set_value(values)

    def average_counts(self) -> None:
        """Each trainer has counted its own pictures: what is saved and tested with is the mean."""
        self._set(self._counted.values(), self._trainers.sum_together(self._counted.values()), self._trainers.count)

    @paddle.no_grad()
    def _agree(self) -> None:
        """All have what the first has, since the others add nothing."""
        everything = [*self._trained.values(), *self._counted.values(), *self._velocity.values()]
        mine = everything if self._trainers.rank == 0 else [paddle.zeros_like(one) for one in everything]
        self._set(everything, self._trainers.sum_together(mine), 1)

    @paddle.no_grad()
    def _set(self, targets: Iterable[paddle.Tensor], values: list[paddle.Tensor], parts: int) -> None:
        for target, value in zip(targets, values):
            target.set_value(value / parts)

    def _chosen(self, labels: np.ndarray, dice: np.random.Generator) -> paddle.Tensor | None:
        if self._share >= 1:
            return None
        return paddle.to_tensor(shards.sample(self.shard, labels, self._share, dice))

    def _own(self, labels: np.ndarray, chosen: paddle.Tensor | None) -> paddle.Tensor:
        """Row and column of each picture whose class is here."""
        columns = np.arange(self.shard.count) if chosen is None else chosen.numpy()
        found = shards.places(columns, labels, self.shard)
        rows = np.flatnonzero(found >= 0)
        return paddle.to_tensor(np.stack([rows, found[rows]], axis=1))

    def _move_network(self, rate: float) -> None:
        gradients = self._trainers.sum_together(value.grad for value in self._trained.values())
        for (name, value), gradient in zip(self._trained.items(), gradients):
            _move(value, self._velocity[name], gradient, rate, self._decay if value.ndim > 1 else 0.0)
            value.clear_gradient()

    def _move_centres(self, centres: paddle.Tensor, chosen: paddle.Tensor | None, rate: float) -> None:
        """Of partial FC only those that took part: the velocity of others waits for them."""
        gradient = centres.grad
        if chosen is None:
            _move(self._centres, self._centres_velocity, gradient, rate, self._decay)
            return
        velocity = self._centres_velocity[chosen]
        moved = centres.detach()
        _move(moved, velocity, gradient, rate, self._decay)
        paddle.scatter_(self._centres, chosen, moved)
        paddle.scatter_(self._centres_velocity, chosen, velocity)


def _move(value: paddle.Tensor, velocity: paddle.Tensor, gradient: paddle.Tensor, rate: float, decay: float) -> None:
    """Momentum, as PaddlePaddle's optimizer of that name has it."""
    velocity.scale_(_MOMENTUM)
    velocity.add_(gradient + value * decay if decay else gradient)
    value.subtract_(velocity * rate)


def _first_centres(shard: shards.Shard, embedding: int) -> np.ndarray:
    """By chance, but the same for a class whatever the number of trainers."""
    dice = np.random.default_rng(1)
    everyones = dice.standard_normal((shard.last, embedding), dtype=np.float32)
    return everyones[shard.first :] / np.float32(np.sqrt(embedding))
