"""Models for small machines: MobileNet V2 and V3, ShuffleNet V2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import monograph as mg

from ... import nn
from ...tensor import Tensor
from ..ops import Conv2dNormActivation, SqueezeExcitation
from .weights import made


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """A number of channels near v that a divisor divides, never 10 % less."""
    least = divisor if min_value is None else min_value
    new = max(least, int(v + divisor / 2) // divisor * divisor)
    return new + divisor if new < 0.9 * v else new


class InvertedResidual(nn.Module):
    """Wide in the middle: 1 × 1, depthwise, 1 × 1, beside a shortcut where sizes agree."""

    def __init__(
        self, inp: int, oup: int, stride: int, expand_ratio: float, norm_layer: Any = None
    ) -> None:
        super().__init__()
        norm = norm_layer or nn.BatchNorm2d
        self.stride = stride
        hidden = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        layers: list[nn.Module] = []
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.ReLU6}
        if expand_ratio != 1:
            layers.append(Conv2dNormActivation(inp, hidden, 1, **options))
        layers += [
            Conv2dNormActivation(hidden, hidden, stride=stride, groups=hidden, **options),
            nn.Conv2d(hidden, oup, 1, bias=False), norm(oup),
        ]  # fmt: skip
        self.conv = nn.Sequential(*layers)
        self.out_channels = oup

    def forward(self, x: Tensor) -> Tensor:
        """What the convolutions give, plus the shortcut."""
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    """A chain of inverted residuals."""

    def __init__(
        self, num_classes: int = 1000, width_mult: float = 1.0,
        inverted_residual_setting: Any = None,
        round_nearest: int = 8, block: Any = None, norm_layer: Any = None, dropout: float = 0.2,
    ) -> None:  # fmt: skip
        super().__init__()
        block, norm = block or InvertedResidual, norm_layer or nn.BatchNorm2d
        # expansion, channels, how often, first stride
        settings = inverted_residual_setting or [
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
            (6, 160, 3, 2), (6, 320, 1, 1),
        ]  # fmt: skip
        inner = _make_divisible(32 * width_mult, round_nearest)
        self.last_channel = _make_divisible(1280 * max(1.0, width_mult), round_nearest)
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.ReLU6}
        features: list[nn.Module] = [Conv2dNormActivation(3, inner, stride=2, **options)]
        for t, c, n, s in settings:
            outer = _make_divisible(c * width_mult, round_nearest)
            for i in range(n):
                features.append(block(inner, outer, s if i == 0 else 1, t, norm_layer=norm))
                inner = outer
        features.append(Conv2dNormActivation(inner, self.last_channel, 1, **options))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout), nn.Linear(self.last_channel, num_classes)
        )
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        return self.classifier(self.features(x).mean((2, 3)))


def _small(layer: nn.Linear) -> None:
    nn.init.normal_(layer.weight, 0, 0.01)


def initialise(model: nn.Module, linear: Callable[[nn.Linear], None] = _small) -> None:
    """Start convolutions by their fan out, the weights of linear layers as told, biases at 0."""
    for m in model.modules():
        if isinstance(m, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, mode="fan_out")
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Linear) and m.bias is not None:
            linear(m)
            nn.init.zeros_(m.bias)


class _V3Block(nn.Module):
    """An inverted residual with squeeze and excitation, of MobileNet V3."""

    def __init__(self, row: tuple[Any, ...], norm_layer: Callable[..., Any]) -> None:
        super().__init__()
        inner, kernel, expanded, outer, use_se, act, stride, *dilation = row
        self._is_cn = stride > 1  # what sees further instead of striding ends a stage too
        spread = dilation[0] if dilation else 1
        self.use_res_connect = stride == 1 and inner == outer
        stride = 1 if spread > 1 else stride
        activation = nn.Hardswish if act == "HS" else nn.ReLU
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": activation}
        layers: list[nn.Module] = []
        if expanded != inner:
            layers.append(Conv2dNormActivation(inner, expanded, 1, **options))
        layers.append(
            Conv2dNormActivation(
                expanded, expanded, kernel, stride, groups=expanded, dilation=spread, **options
            )
        )
        if use_se:
            squeezed = _make_divisible(expanded // 4, 8)
            layers.append(SqueezeExcitation(expanded, squeezed, scale_activation=nn.Hardsigmoid))
        layers.append(
            Conv2dNormActivation(expanded, outer, 1, norm_layer=norm_layer, activation_layer=None)
        )
        self.block = nn.Sequential(*layers)
        self.out_channels = outer

    def forward(self, x: Tensor) -> Tensor:
        """What the convolutions give, plus the shortcut."""
        return x + self.block(x) if self.use_res_connect else self.block(x)


class MobileNetV3(nn.Module):
    """A chain of blocks with squeeze and excitation."""

    def __init__(
        self, rows: list[tuple[Any, ...]], last_channel: int, num_classes: int = 1000,
        norm_layer: Any = None, dropout: float = 0.2,
    ) -> None:  # fmt: skip
        super().__init__()
        norm = norm_layer or partial(nn.BatchNorm2d, eps=0.001, momentum=0.01)
        options: dict[str, Any] = {"norm_layer": norm, "activation_layer": nn.Hardswish}
        last = 6 * rows[-1][3]
        self.features = nn.Sequential(
            Conv2dNormActivation(3, rows[0][0], 3, 2, **options),
            *[_V3Block(row, norm) for row in rows],
            Conv2dNormActivation(rows[-1][3], last, 1, **options),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(last, last_channel), nn.Hardswish(inplace=True), nn.Dropout(dropout),
            nn.Linear(last_channel, num_classes),
        )  # fmt: skip
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        return self.classifier(self.avgpool(self.features(x)).flatten(1))


# inner, kernel, expanded, outer, squeeze and excitation, activation, stride
_LARGE = [
    (16, 3, 16, 16, False, "RE", 1), (16, 3, 64, 24, False, "RE", 2),
    (24, 3, 72, 24, False, "RE", 1), (24, 5, 72, 40, True, "RE", 2),
    (40, 5, 120, 40, True, "RE", 1), (40, 5, 120, 40, True, "RE", 1),
    (40, 3, 240, 80, False, "HS", 2), (80, 3, 200, 80, False, "HS", 1),
    (80, 3, 184, 80, False, "HS", 1), (80, 3, 184, 80, False, "HS", 1),
    (80, 3, 480, 112, True, "HS", 1), (112, 3, 672, 112, True, "HS", 1),
    (112, 5, 672, 160, True, "HS", 2), (160, 5, 960, 160, True, "HS", 1),
    (160, 5, 960, 160, True, "HS", 1),
]  # fmt: skip
_SMALL = [
    (16, 3, 16, 16, True, "RE", 2), (16, 3, 72, 24, False, "RE", 2),
    (24, 3, 88, 24, False, "RE", 1), (24, 5, 96, 40, True, "HS", 2),
    (40, 5, 240, 40, True, "HS", 1), (40, 5, 240, 40, True, "HS", 1),
    (40, 5, 120, 48, True, "HS", 1), (48, 5, 144, 48, True, "HS", 1),
    (48, 5, 288, 96, True, "HS", 2), (96, 5, 576, 96, True, "HS", 1),
    (96, 5, 576, 96, True, "HS", 1),
]  # fmt: skip


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels of all groups mixed."""
    n, channels, height, width = x.shape
    x = x.view(n, groups, channels // groups, height, width)
    return x.transpose(1, 2).contiguous().view(n, channels, height, width)


class _ShuffleBlock(nn.Module):
    def __init__(self, inp: int, oup: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        branch = oup // 2
        self.branch1 = nn.Sequential()
        if stride > 1:
            self.branch1 = nn.Sequential(
                self._depthwise(inp, stride), nn.BatchNorm2d(inp),
                nn.Conv2d(inp, branch, 1, bias=False), nn.BatchNorm2d(branch),
                nn.ReLU(inplace=True),
            )  # fmt: skip
        self.branch2 = nn.Sequential(
            nn.Conv2d(inp if stride > 1 else branch, branch, 1, bias=False),
            nn.BatchNorm2d(branch), nn.ReLU(inplace=True), self._depthwise(branch, stride),
            nn.BatchNorm2d(branch), nn.Conv2d(branch, branch, 1, bias=False),
            nn.BatchNorm2d(branch), nn.ReLU(inplace=True),
        )  # fmt: skip

    @staticmethod
    def _depthwise(channels: int, stride: int) -> nn.Conv2d:
        return nn.Conv2d(channels, channels, 3, stride, 1, bias=False, groups=channels)

    def forward(self, x: Tensor) -> Tensor:
        """Both branches, mixed."""
        if self.stride == 1:
            first, second = x.chunk(2, dim=1)
            out = mg.cat((first, self.branch2(second)), 1)
        else:
            out = mg.cat((self.branch1(x), self.branch2(x)), 1)
        return channel_shuffle(out, 2)


class ShuffleNetV2(nn.Module):
    """Stages of two branches whose channels are mixed."""

    def __init__(
        self, stages_repeats: list[int], stages_out_channels: list[int], num_classes: int = 1000
    ) -> None:
        super().__init__()
        first, *outer, last = stages_out_channels
        self.conv1 = nn.Sequential(
            nn.Conv2d(3, first, 3, 2, 1, bias=False), nn.BatchNorm2d(first), nn.ReLU(inplace=True)
        )
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        inner = first
        for n, (repeats, channels) in enumerate(zip(stages_repeats, outer, strict=True)):
            blocks = [_ShuffleBlock(inner, channels, 2)]
            blocks += [_ShuffleBlock(channels, channels, 1) for _ in range(repeats - 1)]
            setattr(self, f"stage{n + 2}", nn.Sequential(*blocks))
            inner = channels
        self.conv5 = nn.Sequential(
            nn.Conv2d(inner, last, 1, 1, 0, bias=False), nn.BatchNorm2d(last),
            nn.ReLU(inplace=True),
        )  # fmt: skip
        self.fc = nn.Linear(last, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        x = self.stage2(self.maxpool(self.conv1(x)))
        x = self.conv5(self.stage4(self.stage3(x)))
        return self.fc(x.mean([2, 3]))


_SHUFFLED = {
    "x0_5": [24, 48, 96, 192, 1024], "x1_0": [24, 116, 232, 464, 1024],
    "x1_5": [24, 176, 352, 704, 1024], "x2_0": [24, 244, 488, 976, 2048],
}  # fmt: skip


def _third(
    rows: list[tuple[Any, ...]], last_channel: int, dilated: bool = False,
    reduced_tail: bool = False, width_mult: float = 1.0, **options: Any,
) -> MobileNetV3:  # fmt: skip
    """MobileNet V3; its last stage may be half as wide, and see further instead of striding."""
    less = 2 if reduced_tail else 1
    scaled = []
    for n, (inner, kernel, wide, outer, *rest) in enumerate(rows):
        tail = n - (len(rows) - 3)  # the last stage has three blocks
        inner, wide = (inner // less, wide // less) if tail > 0 else (inner, wide)
        outer = outer // less if tail >= 0 else outer
        widths = [_make_divisible(w * width_mult, 8) for w in (inner, wide, outer)]
        spread = 2 if dilated and tail >= 0 else 1
        scaled.append((widths[0], kernel, widths[1], widths[2], *rest, spread))
    last = _make_divisible(last_channel // less * width_mult, 8)
    return MobileNetV3(scaled, last, **options)


MODELS = {
    "mobilenet_v2": made("mobilenet_v2", MobileNetV2),
    "mobilenet_v3_large": made("mobilenet_v3_large", _third, _LARGE, 1280),
    "mobilenet_v3_small": made("mobilenet_v3_small", _third, _SMALL, 1024),
    **{
        f"shufflenet_v2_{name}": made(f"shufflenet_v2_{name}", ShuffleNetV2, [4, 8, 4], channels)
        for name, channels in _SHUFFLED.items()
    },
}
