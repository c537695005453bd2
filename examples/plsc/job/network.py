"""The network that makes 128 numbers of a picture, by which faces are told apart: four convolutions and a full layer.

Its variables have the names that PLSC gave them on disk, so that what is saved reads as it always did.
"""

from __future__ import annotations

import paddle
from paddle import nn

_CHANNELS = (64, 64, 128, 128)
_STRIDES = (2, 2, 1, 2)
_SIDE = 32 // 8


class Backbone(nn.Layer):
    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.convolutions = nn.LayerList()
        self.norms = nn.LayerList()
        before = 3
        for channels, stride in zip(_CHANNELS, _STRIDES):
            self.convolutions.append(nn.Conv2D(before, channels, 3, stride=stride, padding=1, bias_attr=False))
            self.norms.append(nn.BatchNorm2D(channels))
            before = channels
        self.dense = nn.Linear(before * _SIDE * _SIDE, embedding)
        self.norms.append(nn.BatchNorm1D(embedding))

    def forward(self, pictures: paddle.Tensor) -> paddle.Tensor:
        found = pictures
        for convolution, norm in zip(self.convolutions, self.norms):
            found = nn.functional.relu(norm(convolution(found)))
        return self.norms[-1](self.dense(found.flatten(1)))

    def trained(self) -> dict[str, paddle.Tensor]:
        """What gradients change, by its name on disk."""
        named = {f"conv2d_{number}.w_0": layer.weight for number, layer in enumerate(self.convolutions)}
        for number, norm in enumerate(self.norms):
            named[f"batch_norm_{number}.w_0"] = norm.weight
            named[f"batch_norm_{number}.b_0"] = norm.bias
        return {**named, "fc_0.w_0": self.dense.weight, "fc_0.b_0": self.dense.bias}

    def counted(self) -> dict[str, paddle.Tensor]:
        """What is counted along the way: mean and variance of each layer's input."""
        named = {}
        for number, norm in enumerate(self.norms):
            counts = dict(norm.named_parameters())
            named[f"batch_norm_{number}.w_1"] = counts["_mean"]
            named[f"batch_norm_{number}.w_2"] = counts["_variance"]
        return named
