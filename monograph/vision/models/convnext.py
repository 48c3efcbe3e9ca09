"""ConvNeXts: convolutions in the manner of transformers, with layer norms and few activations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ... import nn
from ...tensor import Tensor
from ..ops import Conv2dNormActivation, Permute, StochasticDepth
from .weights import made


class LayerNorm2d(nn.LayerNorm):
    """A layer norm over the channels of images [N, C, H, W].

    >>> LayerNorm2d(4)(mg.zeros(1, 4, 2, 2)).shape
    Size([1, 4, 2, 2])
    """

    def forward(self, x: Tensor) -> Tensor:
        """x with channels of mean 0 and variance 1 at each pixel."""
        last = x.permute(0, 2, 3, 1)
        normed = F.layer_norm(last, self.normalized_shape, self.weight, self.bias, self.eps)
        return normed.permute(0, 3, 1, 2)


class CNBlock(nn.Module):
    """A depthwise convolution and two linear layers beside a shortcut, scaled by channel."""

    def __init__(
        self, dim: int, layer_scale: float, stochastic_depth_prob: float, norm_layer: Any = None
    ) -> None:
        super().__init__()
        norm = norm_layer or partial(nn.LayerNorm, eps=1e-6)
        self.block = nn.Sequential(
            nn.Conv2d(dim, dim, 7, padding=3, groups=dim), Permute([0, 2, 3, 1]), norm(dim),
            nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim), Permute([0, 3, 1, 2]),
        )  # fmt: skip
        self.layer_scale = nn.Parameter(mg.full((dim, 1, 1), layer_scale))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")

    def forward(self, x: Tensor) -> Tensor:
        """The shortcut plus what the layers give."""
        return self.stochastic_depth(self.layer_scale * self.block(x)) + x


@dataclass
class CNBlockConfig:
    """A stage: its channels, those of the next stage if there is one, and how many blocks."""

    input_channels: int
    out_channels: int | None
    num_layers: int


class ConvNeXt(nn.Module):
    """Stages of blocks, with convolutions of stride 2 between them."""

    def __init__(
        self, block_setting: Sequence[CNBlockConfig], stochastic_depth_prob: float = 0.0,
        layer_scale: float = 1e-6, num_classes: int = 1000, block: Any = None,
        norm_layer: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not block_setting:
            raise ValueError("The block_setting should not be empty")
        block, norm = block or CNBlock, norm_layer or partial(LayerNorm2d, eps=1e-6)
        layers: list[nn.Module] = [
            Conv2dNormActivation(
                3, block_setting[0].input_channels, 4, 4, 0, norm_layer=norm,
                activation_layer=None, bias=True,
            )
        ]  # fmt: skip
        last = sum(cnf.num_layers for cnf in block_setting) - 1.0
        number = 0
        for cnf in block_setting:
            inner, outer = cnf.input_channels, cnf.out_channels
            chances = [stochastic_depth_prob * (number + n) / last for n in range(cnf.num_layers)]
            number += cnf.num_layers
            layers.append(nn.Sequential(*[block(inner, layer_scale, p) for p in chances]))
            if outer is not None:
                layers.append(nn.Sequential(norm(inner), nn.Conv2d(inner, outer, 2, 2)))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        ends = block_setting[-1]
        width = ends.input_channels if ends.out_channels is None else ends.out_channels
        self.classifier = nn.Sequential(norm(width), nn.Flatten(1), nn.Linear(width, num_classes))
        for m in self.modules():
            if isinstance(m, (nn.Conv2d, nn.Linear)):
                nn.init.trunc_normal_(m.weight, std=0.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        return self.classifier(self.avgpool(self.features(x)))


# Channels, how many blocks there are, the chance to leave out the last of them.
_SIZES = {
    "tiny": ((96, 192, 384, 768), (3, 3, 9, 3), 0.1),
    "small": ((96, 192, 384, 768), (3, 3, 27, 3), 0.4),
    "base": ((128, 256, 512, 1024), (3, 3, 27, 3), 0.5),
    "large": ((192, 384, 768, 1536), (3, 3, 27, 3), 0.5),
}


def _convnext(size: str, **options: Any) -> ConvNeXt:
    channels, depths, chance = _SIZES[size]
    stages = [
        CNBlockConfig(inner, outer, depth)
        for inner, outer, depth in zip(channels, (*channels[1:], None), depths, strict=True)
    ]
    return ConvNeXt(stages, **{"stochastic_depth_prob": chance, **options})


MODELS = {f"convnext_{size}": made(f"convnext_{size}", _convnext, size) for size in _SIZES}
