"""EfficientNets, V1 and V2: inverted residuals whose width, depth and kernels were searched for."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ... import nn
from ...tensor import Tensor
from ..ops import Conv2dNormActivation, SqueezeExcitation, StochasticDepth
from .mobile import _make_divisible, initialise
from .weights import made


def _adjust_channels(channels: int, width_mult: float, min_value: int | None = None) -> int:
    return _make_divisible(channels * width_mult, 8, min_value)


@dataclass
class _MBConvConfig:
    """What the blocks of a stage are: their expansion, kernel, first stride, widths and number."""

    expand_ratio: float
    kernel: int
    stride: int
    input_channels: int
    out_channels: int
    num_layers: int
    block: Any

    adjust_channels = staticmethod(_adjust_channels)


class MBConvConfig(_MBConvConfig):
    """A stage of `MBConv`, made wider and deeper by two factors."""

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int,
        out_channels: int, num_layers: int, width_mult: float = 1.0, depth_mult: float = 1.0,
        block: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            expand_ratio, kernel, stride, _adjust_channels(input_channels, width_mult),
            _adjust_channels(out_channels, width_mult), math.ceil(num_layers * depth_mult),
            block or MBConv,
        )  # fmt: skip


class FusedMBConvConfig(_MBConvConfig):
    """A stage of `FusedMBConv`."""

    def __init__(
        self, expand_ratio: float, kernel: int, stride: int, input_channels: int,
        out_channels: int, num_layers: int, block: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            expand_ratio, kernel, stride, input_channels, out_channels, num_layers,
            block or FusedMBConv,
        )  # fmt: skip


class _Block(nn.Module):
    """Layers beside a shortcut where sizes agree; in training they are left out at times."""

    def __init__(self, cnf: _MBConvConfig, stochastic_depth_prob: float, norm: Any) -> None:
        super().__init__()
        if not 1 <= cnf.stride <= 2:
            raise ValueError("illegal stride value")
        self.use_res_connect = cnf.stride == 1 and cnf.input_channels == cnf.out_channels
        self.block = nn.Sequential(*self._layers(cnf, norm))
        self.stochastic_depth = StochasticDepth(stochastic_depth_prob, "row")
        self.out_channels = cnf.out_channels

    def _layers(self, cnf: _MBConvConfig, norm: Any) -> list[nn.Module]:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """What the layers give, plus the shortcut."""
        made = self.block(x)
        return self.stochastic_depth(made) + x if self.use_res_connect else made


def _conv(inner: int, outer: int, norm: Any, activation: Any = nn.SiLU, **options: Any) -> Any:
    return Conv2dNormActivation(
        inner, outer, norm_layer=norm, activation_layer=activation, **options
    )


class MBConv(_Block):
    """Wide in the middle, with squeeze and excitation."""

    def _layers(self, cnf: _MBConvConfig, norm: Any) -> list[nn.Module]:
        inner = cnf.input_channels
        wide = _adjust_channels(inner, cnf.expand_ratio)
        layers = [] if wide == inner else [_conv(inner, wide, norm, kernel_size=1)]
        layers += [
            _conv(wide, wide, norm, kernel_size=cnf.kernel, stride=cnf.stride, groups=wide),
            SqueezeExcitation(wide, max(1, inner // 4), activation=partial(nn.SiLU, inplace=True)),
            _conv(wide, cnf.out_channels, norm, None, kernel_size=1),
        ]
        return layers


class FusedMBConv(_Block):
    """The same with one convolution where `MBConv` has a 1 × 1 and a depthwise one."""

    def _layers(self, cnf: _MBConvConfig, norm: Any) -> list[nn.Module]:
        inner, outer = cnf.input_channels, cnf.out_channels
        wide = _adjust_channels(inner, cnf.expand_ratio)
        options = {"kernel_size": cnf.kernel, "stride": cnf.stride}
        if wide == inner:
            return [_conv(inner, outer, norm, **options)]
        return [
            _conv(inner, wide, norm, **options), _conv(wide, outer, norm, None, kernel_size=1)
        ]  # fmt: skip


class EfficientNet(nn.Module):
    """Stages of such blocks."""

    def __init__(
        self, inverted_residual_setting: Sequence[Any], dropout: float,
        stochastic_depth_prob: float = 0.2, num_classes: int = 1000, norm_layer: Any = None,
        last_channel: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if not inverted_residual_setting:
            raise ValueError("The inverted_residual_setting should not be empty")
        norm = norm_layer or nn.BatchNorm2d
        first = inverted_residual_setting[0].input_channels
        layers: list[nn.Module] = [_conv(3, first, norm, kernel_size=3, stride=2)]
        total = sum(cnf.num_layers for cnf in inverted_residual_setting)
        number = 0
        for setting in inverted_residual_setting:
            cnf, stage = copy.copy(setting), []
            for _ in range(setting.num_layers):
                stage.append(cnf.block(cnf, stochastic_depth_prob * number / total, norm))
                cnf.input_channels, cnf.stride = cnf.out_channels, 1
                number += 1
            layers.append(nn.Sequential(*stage))
        inner = inverted_residual_setting[-1].out_channels
        outer = 4 * inner if last_channel is None else last_channel
        layers.append(_conv(inner, outer, norm, kernel_size=1))
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout, inplace=True), nn.Linear(outer, num_classes)
        )
        initialise(self, _by_width)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


def _by_width(layer: nn.Linear) -> None:
    reach = 1.0 / math.sqrt(layer.out_features)
    nn.init.uniform_(layer.weight, -reach, reach)


# expansion, kernel, first stride, inner, outer, how often
_FIRST = [
    (1, 3, 1, 32, 16, 1), (6, 3, 2, 16, 24, 2), (6, 5, 2, 24, 40, 2), (6, 3, 2, 40, 80, 3),
    (6, 5, 1, 80, 112, 3), (6, 5, 2, 112, 192, 4), (6, 3, 1, 192, 320, 1),
]  # fmt: skip
# The first three stages of each are fused.
_SECOND: dict[str, tuple[float, list[tuple[int, ...]]]] = {
    "s": (0.2, [
        (1, 3, 1, 24, 24, 2), (4, 3, 2, 24, 48, 4), (4, 3, 2, 48, 64, 4), (4, 3, 2, 64, 128, 6),
        (6, 3, 1, 128, 160, 9), (6, 3, 2, 160, 256, 15),
    ]),
    "m": (0.3, [
        (1, 3, 1, 24, 24, 3), (4, 3, 2, 24, 48, 5), (4, 3, 2, 48, 80, 5), (4, 3, 2, 80, 160, 7),
        (6, 3, 1, 160, 176, 14), (6, 3, 2, 176, 304, 18), (6, 3, 1, 304, 512, 5),
    ]),
    "l": (0.4, [
        (1, 3, 1, 32, 32, 4), (4, 3, 2, 32, 64, 7), (4, 3, 2, 64, 96, 7), (4, 3, 2, 96, 192, 10),
        (6, 3, 1, 192, 224, 19), (6, 3, 2, 224, 384, 25), (6, 3, 1, 384, 640, 7),
    ]),
}  # fmt: skip
# By the number: width, depth and dropout.
_SCALES = [
    (1.0, 1.0, 0.2), (1.0, 1.1, 0.2), (1.1, 1.2, 0.3), (1.2, 1.4, 0.3), (1.4, 1.8, 0.4),
    (1.6, 2.2, 0.4), (1.8, 2.6, 0.5), (2.0, 3.1, 0.5),
]  # fmt: skip


def _first(number: int, **options: Any) -> EfficientNet:
    width, depth, dropout = _SCALES[number]
    stages = [MBConvConfig(*row, width_mult=width, depth_mult=depth) for row in _FIRST]
    if number >= 5:
        options.setdefault("norm_layer", partial(nn.BatchNorm2d, eps=0.001, momentum=0.01))
    return EfficientNet(stages, options.pop("dropout", dropout), **options)


def _second(size: str, **options: Any) -> EfficientNet:
    dropout, rows = _SECOND[size]
    stages: list[Any] = [FusedMBConvConfig(*row) for row in rows[:3]]
    stages += [MBConvConfig(*row) for row in rows[3:]]
    options = {
        "norm_layer": partial(nn.BatchNorm2d, eps=0.001), "last_channel": 1280, "dropout": dropout,
        **options,
    }  # fmt: skip
    return EfficientNet(stages, **options)


def _file(name: str, number: int) -> str:
    """How its file of weights begins: it says who trained them."""
    return f"{name}_{'rwightman' if number < 5 else 'lukemelas'}"


_NUMBERED = {f"efficientnet_b{n}": n for n in range(len(_SCALES))}
MODELS = {
    **{name: made(name, _first, n, file=_file(name, n)) for name, n in _NUMBERED.items()},
    **{f"efficientnet_v2_{size}": made(f"efficientnet_v2_{size}", _second, size)
       for size in _SECOND},
}  # fmt: skip
