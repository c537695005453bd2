"""ArcFace over classes that are split over the trainers: each computes with its own classes, for the pictures of all.

PaddlePaddle's own margin_cross_entropy has no CPU kernel. Two layers with gradients of their own do it: one gathers
what the trainers see, the other is the loss, of which only one row of sums crosses the network.
"""

from __future__ import annotations

import math
from typing import Any

import paddle
from paddle.autograd import PyLayer
from trainers import Trainers


class Gathered(PyLayer):
    """The rows of all trainers; the gradient of a row is the sum of what all of them found for it."""

    @staticmethod
    def forward(context: Any, rows: paddle.Tensor, trainers: Trainers) -> paddle.Tensor:
        context.trainers, context.count = trainers, rows.shape[0]
        return trainers.rows(rows) if trainers.count > 1 else rows.clone()

    @staticmethod
    def backward(context: Any, gradient: paddle.Tensor) -> paddle.Tensor:
        first = context.trainers.rank * context.count
        return context.trainers.sum(gradient.clone())[first : first + context.count]


class ArcFace(PyLayer):
    """Mean loss of all pictures, and the share of them that are nearest to their own class, margin included.

    `features` are of all pictures, of length 1; `centres` are of this trainer's classes, of any length; `own` are the
    pictures whose class is among them (row), and which it is (column).
    """

    @staticmethod
    def forward(
        context: Any,
        features: paddle.Tensor,
        centres: paddle.Tensor,
        own: paddle.Tensor,
        margin: float,
        scale: float,
        trainers: Trainers,
    ) -> tuple[paddle.Tensor, paddle.Tensor]:
        # The gradient of F.normalize would take four times as long as all the rest of this.
        lengths = (centres * centres).sum(axis=1, keepdim=True).sqrt()
        units = centres / lengths
        logits = paddle.matmul(features * scale, units, transpose_y=True)
        cosine = paddle.gather_nd(logits, own) / scale
        turned, slope = _with_margin(cosine, margin)
        logits = paddle.scatter_nd_add(logits, own, (turned - cosine) * scale)
        highest = trainers.highest(logits.max(axis=1))
        powers = paddle.exp(logits - highest.unsqueeze(1))
        target = paddle.scatter_nd_add(paddle.zeros_like(highest), own[:, :1], turned * scale)
        total, target = trainers.sum(paddle.stack([powers.sum(axis=1), target])).unbind()
        context.scale, context.own, context.slope = scale, own, slope
        context.save_for_backward(features, units, lengths, powers, total)
        loss = (total.log() + highest - target).mean()
        nearest = (target >= highest - 1e-4).astype("float32").mean()
        context.mark_non_differentiable(nearest)
        return loss, nearest

    @staticmethod
    def backward(context: Any, gradient: paddle.Tensor, _: Any = None) -> tuple[paddle.Tensor, paddle.Tensor]:
        features, units, lengths, powers, total = context.saved_tensor()
        # Of a picture's own class it is (p - 1) times the margin's slope, of others p, the power's share of the total.
        mine = paddle.gather_nd(powers, context.own)
        whole = paddle.gather(total, context.own[:, 0])
        pull = paddle.scatter_nd_add(powers, context.own, (mine - whole) * context.slope - mine)
        weight = (gradient * context.scale / features.shape[0] / total).unsqueeze(1)
        turn = paddle.matmul(pull, features * weight, transpose_x=True)
        along = (turn * units).sum(axis=1, keepdim=True)
        return paddle.matmul(pull, units) * weight, (turn - units * along) / lengths


def _with_margin(cosine: paddle.Tensor, margin: float) -> tuple[paddle.Tensor, paddle.Tensor]:
    """cos(angle + margin) and its slope; a straight line where the sum would be beyond half a turn."""
    cosine = cosine.clip(-1 + 1e-6, 1 - 1e-6)
    sine = (1 - cosine * cosine).sqrt()
    within = cosine > math.cos(math.pi - margin)
    turned = cosine * math.cos(margin) - sine * math.sin(margin)
    slope = math.cos(margin) + cosine / sine * math.sin(margin)
    beyond = cosine - margin * math.sin(math.pi - margin)
    return paddle.where(within, turned, beyond), paddle.where(within, slope, paddle.ones_like(slope))
