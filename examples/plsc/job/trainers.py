"""The job's trainers, as one of them sees them: what they add up, compare and gather.

A trainer alone needs no other. Over gloo there are all_reduce, all_gather and no more, which is all that is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import paddle
import paddle.distributed as dist


class Trainers:
    def __init__(self) -> None:
        """Meets the others. A call that one of them is 30 s late for fails, so whatever takes long is done before."""
        self.rank = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
        self.count = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
        if self.count > 1:
            dist.init_parallel_env()
            if dist.get_world_size() != self.count:
                raise SystemExit(
                    f"PADDLE_TRAINERS_NUM says {self.count} trainers, PaddlePaddle sees {dist.get_world_size()}: "
                    "each would train alone"
                )

    def sum(self, values: paddle.Tensor) -> paddle.Tensor:
        if self.count > 1:
            dist.all_reduce(values, op=dist.ReduceOp.SUM)
        return values

    def highest(self, values: paddle.Tensor) -> paddle.Tensor:
        if self.count > 1:
            dist.all_reduce(values, op=dist.ReduceOp.MAX)
        return values

    def rows(self, values: paddle.Tensor) -> paddle.Tensor:
        """The rows of all trainers, one below the other; all must have as many."""
        if self.count == 1:
            return values
        gathered: list[paddle.Tensor] = []
        dist.all_gather(gathered, values)
        return paddle.concat(gathered)

    def told(self, what: Any) -> list[Any]:
        """What each of them says, by rank."""
        if self.count == 1:
            return [what]
        said: list[Any] = []
        dist.all_gather_object(said, what)
        return said

    def sum_together(self, tensors: Iterable[paddle.Tensor]) -> list[paddle.Tensor]:
        """Each added up over the trainers, in one call."""
        tensors = list(tensors)
        if self.count == 1:
            return tensors
        flat = self.sum(paddle.concat([tensor.flatten() for tensor in tensors]))
        pieces = paddle.split(flat, [tensor.size for tensor in tensors])
        return [piece.reshape(tensor.shape) for piece, tensor in zip(pieces, tensors)]
