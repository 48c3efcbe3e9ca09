"""GoogLeNet and Inception v3: blocks whose branches look through windows of several sizes.

A branch is a list of convolutions; a block joins what its branches give. The tables below hold
(output channels, kernel, stride, padding), by the names that torchvision gives to the layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import monograph as mg
import monograph.nn.functional as F

from ... import nn
from ...tensor import Tensor
from .weights import made


class BasicConv2d(nn.Module):
    """A convolution, its batch norm and a rectifier."""

    def __init__(self, in_channels: int, out_channels: int, **options: Any) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **options)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        """New channels."""
        return F.relu(self.bn(self.conv(x)), inplace=True)


def _conv(inner: int, outer: int, kernel: Any, stride: int = 1, padding: Any = 0) -> BasicConv2d:
    return BasicConv2d(inner, outer, kernel_size=kernel, stride=stride, padding=padding)


def _draw(model: nn.Module, deviation: float) -> None:
    """Weights from a normal distribution without its ends."""
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            chosen = float(getattr(module, "stddev", deviation))
            nn.init.trunc_normal_(module.weight, mean=0.0, std=chosen, a=-2, b=2)


def _as_imagenet(x: Tensor) -> Tensor:
    """From numbers around 0 of [-1, 1] to those of ImageNet's means and deviations."""
    means, deviations = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    channels = [x[:, c] * (deviations[c] / 0.5) + (means[c] - 0.5) / 0.5 for c in range(len(means))]
    return mg.stack(channels, 1)


# --- GoogLeNet ------------------------------------------------------------------------------------


class GoogLeNetOutputs(NamedTuple):
    """Scores of classes, and in training those of the two classifiers on the way."""

    logits: Tensor
    aux_logits2: Tensor | None
    aux_logits1: Tensor | None


class Inception(nn.Module):
    """Four branches: windows of one, two sizes of three, and a pooling."""

    def __init__(
        self, in_channels: int, ch1x1: int, ch3x3red: int, ch3x3: int, ch5x5red: int, ch5x5: int,
        pool_proj: int,
    ) -> None:  # fmt: skip
        super().__init__()
        self.branch1 = _conv(in_channels, ch1x1, 1)
        for name, narrow, wide in (("branch2", ch3x3red, ch3x3), ("branch3", ch5x5red, ch5x5)):
            both = _conv(in_channels, narrow, 1), _conv(narrow, wide, 3, padding=1)
            setattr(self, name, nn.Sequential(*both))
        pool = nn.MaxPool2d(3, stride=1, padding=1, ceil_mode=True)
        self.branch4 = nn.Sequential(pool, _conv(in_channels, pool_proj, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The branches' channels side by side."""
        return mg.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionAux(nn.Module):
    """A classifier on the way."""

    def __init__(self, in_channels: int, num_classes: int, dropout: float = 0.7) -> None:
        super().__init__()
        self.conv = _conv(in_channels, 128, 1)
        self.fc1 = nn.Linear(2048, 1024)
        self.fc2 = nn.Linear(1024, num_classes)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes."""
        x = self.conv(F.adaptive_avg_pool2d(x, (4, 4))).flatten(1)
        return self.fc2(self.dropout(F.relu(self.fc1(x), inplace=True)))


_BLOCKS = {
    "3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64), "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}  # fmt: skip
_PATH = (
    "conv1", "maxpool1", "conv2", "conv3", "maxpool2", "inception3a", "inception3b", "maxpool3",
    "inception4a", "inception4b", "inception4c", "inception4d", "inception4e", "maxpool4",
    "inception5a", "inception5b", "avgpool",
)  # fmt: skip


class GoogLeNet(nn.Module):
    """Nine blocks, and in training two classifiers on the way."""

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        init_weights: bool | None = None, blocks: Any = None, dropout: float = 0.2,
        dropout_aux: float = 0.7,
    ) -> None:  # fmt: skip
        super().__init__()
        _, block, aux = blocks or (BasicConv2d, Inception, InceptionAux)
        self.aux_logits, self.transform_input = aux_logits, transform_input
        self.conv1 = _conv(3, 64, 7, 2, 3)
        self.maxpool1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = _conv(64, 64, 1)
        self.conv3 = _conv(64, 192, 3, padding=1)
        for stage, window in (("2", 3), ("3", 3), ("4", 2)):
            setattr(self, f"maxpool{stage}", nn.MaxPool2d(window, stride=2, ceil_mode=True))
        for name, sizes in _BLOCKS.items():
            setattr(self, f"inception{name}", block(*sizes))
        self.aux1 = aux(512, num_classes, dropout=dropout_aux) if aux_logits else None
        self.aux2 = aux(528, num_classes, dropout=dropout_aux) if aux_logits else None
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(1024, num_classes)
        if init_weights is not False:
            _draw(self, 0.01)

    def forward(self, x: Tensor) -> Any:
        """Scores of classes for images; in training, those of all classifiers."""
        x = _as_imagenet(x) if self.transform_input else x
        aside: dict[str, Tensor] = {}
        taps = {"inception4a": self.aux1, "inception4d": self.aux2}
        for name in _PATH:
            x = getattr(self, name)(x)
            tap = taps.get(name)
            if self.training and tap is not None:
                aside[name] = tap(x)
        scores = self.fc(self.dropout(x.flatten(1)))
        if not (self.training and self.aux_logits):
            return scores
        return GoogLeNetOutputs(scores, aside.get("inception4d"), aside.get("inception4a"))


# --- Inception v3 ---------------------------------------------------------------------------------


class InceptionOutputs(NamedTuple):
    """Scores of classes, and in training those of the classifier on the way."""

    logits: Tensor
    aux_logits: Tensor | None


_HIGH, _WIDE = (((7, 1), 1, (3, 0)), ((1, 7), 1, (0, 3)))  # (kernel, stride, padding)
_TALL, _LONG = (((3, 1), 1, (1, 0)), ((1, 3), 1, (0, 1)))
_ONE, _SAME, _HALF = (1, 1, 0), (3, 1, 1), (3, 2, 0)


class _Block(nn.Module):
    """Branches of convolutions, a fork at the end of some, and a pooling.

    A branch is a list of (name, channels, window). The names behind a "|" are a fork: each reads
    what came before it.
    """

    def __init__(self, inner: int, branches: Any, pool: Any) -> None:
        super().__init__()
        self._branches: list[list[str]] = []
        self._forks: list[list[str]] = []
        for branch in branches:
            width = inner
            names: list[str] = []
            fork: list[str] = []
            for name, outer, window in branch:
                plain = name.removeprefix("|")
                setattr(self, plain, _conv(width, outer, *window))
                (fork if name.startswith("|") else names).append(plain)
                width = width if name.startswith("|") else outer
            self._branches.append(names)
            self._forks.append(fork)
        self._averages = pool is not None
        if pool is not None:
            self.branch_pool = _conv(inner, pool, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The branches' channels side by side, the pooling's last."""
        found = []
        for names, fork in zip(self._branches, self._forks, strict=True):
            here = x
            for name in names:
                here = getattr(self, name)(here)
            found += [getattr(self, name)(here) for name in fork] or [here]
        if self._averages:
            found.append(self.branch_pool(F.avg_pool2d(x, 3, stride=1, padding=1)))
        else:
            found.append(F.max_pool2d(x, 3, stride=2))
        return mg.cat(found, 1)


class InceptionA(_Block):
    """Windows of one, five and twice three."""

    def __init__(self, in_channels: int, pool_features: int) -> None:
        double = [("branch3x3dbl_1", 64, _ONE), ("branch3x3dbl_2", 96, _SAME),
                  ("branch3x3dbl_3", 96, _SAME)]  # fmt: skip
        five = [("branch5x5_1", 48, _ONE), ("branch5x5_2", 64, (5, 1, 2))]
        super().__init__(in_channels, [[("branch1x1", 64, _ONE)], five, double], pool_features)


class InceptionB(_Block):
    """Half the size, by windows of three."""

    def __init__(self, in_channels: int) -> None:
        double = [("branch3x3dbl_1", 64, _ONE), ("branch3x3dbl_2", 96, _SAME),
                  ("branch3x3dbl_3", 96, _HALF)]  # fmt: skip
        super().__init__(in_channels, [[("branch3x3", 384, _HALF)], double], None)


class InceptionC(_Block):
    """Windows of seven, one axis after the other."""

    def __init__(self, in_channels: int, channels_7x7: int) -> None:
        c = channels_7x7
        once = [("branch7x7_1", c, _ONE), ("branch7x7_2", c, _WIDE), ("branch7x7_3", 192, _HIGH)]
        twice = [("branch7x7dbl_1", c, _ONE), ("branch7x7dbl_2", c, _HIGH),
                 ("branch7x7dbl_3", c, _WIDE), ("branch7x7dbl_4", c, _HIGH),
                 ("branch7x7dbl_5", 192, _WIDE)]  # fmt: skip
        super().__init__(in_channels, [[("branch1x1", 192, _ONE)], once, twice], 192)


class InceptionD(_Block):
    """Half the size, by windows of three and seven."""

    def __init__(self, in_channels: int) -> None:
        three = [("branch3x3_1", 192, _ONE), ("branch3x3_2", 320, _HALF)]
        seven = [("branch7x7x3_1", 192, _ONE), ("branch7x7x3_2", 192, _WIDE),
                 ("branch7x7x3_3", 192, _HIGH), ("branch7x7x3_4", 192, _HALF)]  # fmt: skip
        super().__init__(in_channels, [three, seven], None)


class InceptionE(_Block):
    """Windows of three that fork into both axes."""

    def __init__(self, in_channels: int) -> None:
        once = [("branch3x3_1", 384, _ONE), ("|branch3x3_2a", 384, _LONG),
                ("|branch3x3_2b", 384, _TALL)]  # fmt: skip
        twice = [("branch3x3dbl_1", 448, _ONE), ("branch3x3dbl_2", 384, _SAME),
                 ("|branch3x3dbl_3a", 384, _LONG), ("|branch3x3dbl_3b", 384, _TALL)]  # fmt: skip
        super().__init__(in_channels, [[("branch1x1", 320, _ONE)], once, twice], 192)


class InceptionV3Aux(nn.Module):
    """A classifier on the way."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.conv0 = _conv(in_channels, 128, 1)
        self.conv1 = _conv(128, 768, 5)
        self.fc = nn.Linear(768, num_classes)
        self.conv1.conv.stddev, self.fc.stddev = 0.01, 0.001

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes."""
        x = self.conv1(self.conv0(F.avg_pool2d(x, 5, stride=3)))
        return self.fc(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


_STEM: dict[str, tuple[int, ...]] = {
    "Conv2d_1a_3x3": (3, 32, 3, 2), "Conv2d_2a_3x3": (32, 32, 3),
    "Conv2d_2b_3x3": (32, 64, 3, 1, 1), "maxpool1": (), "Conv2d_3b_1x1": (64, 80, 1),
    "Conv2d_4a_3x3": (80, 192, 3), "maxpool2": (),
}  # fmt: skip
_MIXED: dict[str, tuple[Any, ...]] = {
    "5b": (InceptionA, 192, 32), "5c": (InceptionA, 256, 64), "5d": (InceptionA, 288, 64),
    "6a": (InceptionB, 288), "6b": (InceptionC, 768, 128), "6c": (InceptionC, 768, 160),
    "6d": (InceptionC, 768, 160), "6e": (InceptionC, 768, 192), "7a": (InceptionD, 768),
    "7b": (InceptionE, 1280), "7c": (InceptionE, 2048),
}  # fmt: skip


class Inception3(nn.Module):
    """Inception v3, for images of 299 by 299."""

    def __init__(
        self, num_classes: int = 1000, aux_logits: bool = True, transform_input: bool = False,
        inception_blocks: Any = None, init_weights: bool | None = None, dropout: float = 0.5,
    ) -> None:  # fmt: skip
        super().__init__()
        self.aux_logits, self.transform_input = aux_logits, transform_input
        for name, sizes in _STEM.items():
            setattr(self, name, _conv(*sizes) if sizes else nn.MaxPool2d(3, stride=2))
        self.AuxLogits: Any = None
        for name, (block, *widths) in _MIXED.items():
            setattr(self, f"Mixed_{name}", block(*widths))
            if name == "6e" and aux_logits:
                self.AuxLogits = InceptionV3Aux(768, num_classes)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(2048, num_classes)
        if init_weights is not False:
            _draw(self, 0.1)

    def forward(self, x: Tensor) -> Any:
        """Scores of classes for images; in training, those of both classifiers."""
        x = _as_imagenet(x) if self.transform_input else x
        aside = None
        for name in (*_STEM, *[f"Mixed_{name}" for name in _MIXED]):
            x = getattr(self, name)(x)
            if name == "Mixed_6e" and self.training and self.AuxLogits is not None:
                aside = self.AuxLogits(x)
        scores = self.fc(self.dropout(self.avgpool(x)).flatten(1))
        return InceptionOutputs(scores, aside) if self.training and self.aux_logits else scores


MODELS = {
    "googlenet": made("googlenet", GoogLeNet),
    "inception_v3": made("inception_v3", Inception3),
}
