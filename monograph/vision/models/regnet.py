"""RegNets: stages whose widths follow from a line, and blocks of grouped convolutions."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ... import nn
from ...tensor import Tensor
from ..ops import Conv2dNormActivation, SqueezeExcitation
from .mobile import _make_divisible
from .weights import made


def _conv(inner: int, outer: int, norm: Any, activation: Any, **options: Any) -> Any:
    return Conv2dNormActivation(
        inner, outer, norm_layer=norm, activation_layer=activation, **options
    )


class SimpleStemIN(Conv2dNormActivation):
    """A 3 × 3 convolution of stride 2."""

    def __init__(self, width_in: int, width_out: int, norm_layer: Any, activation: Any) -> None:
        super().__init__(
            width_in, width_out, 3, 2, norm_layer=norm_layer, activation_layer=activation
        )


class BottleneckTransform(nn.Sequential):
    """1 × 1, grouped 3 × 3, squeeze and excitation if there is a ratio, 1 × 1."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Any, activation_layer: Any,
        group_width: int, bottleneck_multiplier: float, se_ratio: float | None,
    ) -> None:  # fmt: skip
        narrow = int(round(width_out * bottleneck_multiplier))
        norm, activation = norm_layer, activation_layer
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        layers["a"] = _conv(width_in, narrow, norm, activation, kernel_size=1)
        groups = narrow // group_width
        layers["b"] = _conv(
            narrow, narrow, norm, activation, kernel_size=3, stride=stride, groups=groups
        )
        if se_ratio:
            squeezed = int(round(se_ratio * width_in))
            layers["se"] = SqueezeExcitation(narrow, squeezed, activation=activation)
        layers["c"] = _conv(narrow, width_out, norm, None, kernel_size=1)
        super().__init__(layers)


class ResBottleneckBlock(nn.Module):
    """The bottleneck beside a shortcut."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, norm_layer: Any, activation_layer: Any,
        group_width: int = 1, bottleneck_multiplier: float = 1.0, se_ratio: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.proj: Any = None
        if width_in != width_out or stride != 1:
            self.proj = _conv(width_in, width_out, norm_layer, None, kernel_size=1, stride=stride)
        self.f = BottleneckTransform(
            width_in, width_out, stride, norm_layer, activation_layer, group_width,
            bottleneck_multiplier, se_ratio,
        )  # fmt: skip
        self.activation = activation_layer(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        """The shortcut plus what the bottleneck gives."""
        return self.activation((x if self.proj is None else self.proj(x)) + self.f(x))


class AnyStage(nn.Sequential):
    """Blocks of one width; the first has the stride."""

    def __init__(
        self, width_in: int, width_out: int, stride: int, depth: int, block_type: Any,
        norm_layer: Any, activation_layer: Any, group_width: int, bottleneck_multiplier: float,
        se_ratio: float | None = None, stage_index: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        for n in range(depth):
            block = block_type(
                width_out if n else width_in, width_out, 1 if n else stride, norm_layer,
                activation_layer, group_width, bottleneck_multiplier, se_ratio,
            )  # fmt: skip
            self.add_module(f"block{stage_index}-{n}", block)


@dataclass
class BlockParams:
    """Of each stage: depth, width, width of groups, bottleneck and stride."""

    depths: list[int]
    widths: list[int]
    group_widths: list[int]
    bottleneck_multipliers: list[float]
    strides: list[int]
    se_ratio: float | None = None

    @classmethod
    def from_init_params(
        cls, depth: int, w_0: int, w_a: float, w_m: float, group_width: int,
        bottleneck_multiplier: float = 1.0, se_ratio: float | None = None, **_: Any,
    ) -> BlockParams:  # fmt: skip
        """The stages of depth blocks whose widths would be w_0 + w_a · number.

        Widths are rounded to powers of w_m, and to multiples of 8; blocks of equal width are a
        stage.

        >>> BlockParams.from_init_params(16, 48, 27.89, 2.09, 8).widths
        [48, 104, 208, 440]
        """
        if w_a < 0 or w_0 <= 0 or w_m <= 1 or w_0 % 8:
            raise ValueError("Invalid RegNet settings")
        steps = np.rint(np.log(np.arange(depth) * w_a / w_0 + 1) / math.log(w_m))
        each = (np.rint(w_0 * np.power(w_m, steps) / 8) * 8).astype(int)
        found, counts = np.unique(each, return_counts=True)
        widths, groups = [], []
        for width in found.tolist():
            narrow = int(width * bottleneck_multiplier)
            groups.append(min(group_width, narrow))
            widths.append(int(_make_divisible(narrow, groups[-1]) / bottleneck_multiplier))
        return cls(
            counts.tolist(), widths, groups, [bottleneck_multiplier] * len(widths),
            [2] * len(widths), se_ratio,
        )  # fmt: skip

    def stages(self) -> Iterator[tuple[int, int, int, int, float]]:
        """(width, stride, depth, width of groups, bottleneck) of each stage."""
        return zip(
            self.widths, self.strides, self.depths, self.group_widths,
            self.bottleneck_multipliers, strict=True,
        )  # fmt: skip


class RegNet(nn.Module):
    """A stem and stages."""

    def __init__(
        self, block_params: BlockParams, num_classes: int = 1000, stem_width: int = 32,
        stem_type: Any = None, block_type: Any = None, norm_layer: Any = None,
        activation: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        norm, activation = norm_layer or nn.BatchNorm2d, activation or nn.ReLU
        self.stem = (stem_type or SimpleStemIN)(3, stem_width, norm, activation)
        width, stages = stem_width, OrderedDict()
        for n, (outer, stride, depth, group, narrow) in enumerate(block_params.stages(), 1):
            stages[f"block{n}"] = AnyStage(
                width, outer, stride, depth, block_type or ResBottleneckBlock, norm, activation,
                group, narrow, block_params.se_ratio, n,
            )  # fmt: skip
            width = outer
        self.trunk_output = nn.Sequential(stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(width, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                fan = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                nn.init.normal_(m.weight, 0.0, math.sqrt(2.0 / fan))
            elif isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.normal_(m.weight, 0.0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        return self.fc(self.avgpool(self.trunk_output(self.stem(x))).flatten(1))


# Depth, w_0, w_a, w_m and the width of groups; those of y have squeeze and excitation.
_SIZES = {
    "y_400mf": (16, 48, 27.89, 2.09, 8), "y_800mf": (14, 56, 38.84, 2.4, 16),
    "y_1_6gf": (27, 48, 20.71, 2.65, 24), "y_3_2gf": (21, 80, 42.63, 2.66, 24),
    "y_8gf": (17, 192, 76.82, 2.19, 56), "y_16gf": (18, 200, 106.23, 2.48, 112),
    "y_32gf": (20, 232, 115.89, 2.53, 232), "y_128gf": (27, 456, 160.83, 2.52, 264),
    "x_400mf": (22, 24, 24.48, 2.54, 16), "x_800mf": (16, 56, 35.73, 2.28, 16),
    "x_1_6gf": (18, 80, 34.01, 2.25, 24), "x_3_2gf": (25, 88, 26.31, 2.25, 48),
    "x_8gf": (23, 80, 49.56, 2.88, 120), "x_16gf": (22, 216, 55.59, 2.1, 128),
    "x_32gf": (23, 320, 69.86, 2.0, 168),
}  # fmt: skip


def _regnet(size: str, **options: Any) -> RegNet:
    ratio = 0.25 if size.startswith("y") else None
    options.setdefault("norm_layer", partial(nn.BatchNorm2d, eps=1e-5, momentum=0.1))
    return RegNet(BlockParams.from_init_params(*_SIZES[size], se_ratio=ratio), **options)


MODELS = {f"regnet_{size}": made(f"regnet_{size}", _regnet, size) for size in _SIZES}
