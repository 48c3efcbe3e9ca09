"""DenseNets: every layer reads all that were before it in its block."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import monograph as mg
import monograph.nn.functional as F

from ... import nn
from ...autograd import checkpoint
from ...tensor import Tensor
from .weights import made


class _DenseLayer(nn.Module):
    def __init__(
        self, inner: int, growth_rate: int, bn_size: int, drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inner)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inner, bn_size * growth_rate, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, 3, padding=1, bias=False)
        self.drop_rate, self.memory_efficient = float(drop_rate), memory_efficient

    def bn_function(self, *inputs: Tensor) -> Tensor:
        """The narrow part, of all that were before."""
        return self.conv1(self.relu1(self.norm1(mg.cat(inputs, 1))))

    def forward(self, inputs: Any) -> Tensor:
        """What this layer adds."""
        before = [inputs] if isinstance(inputs, Tensor) else list(inputs)
        if self.memory_efficient and any(x.requires_grad for x in before):
            narrow = checkpoint(self.bn_function, *before)
        else:
            narrow = self.bn_function(*before)
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return F.dropout(new, self.drop_rate, self.training) if self.drop_rate > 0 else new


class _DenseBlock(nn.ModuleDict):
    def __init__(
        self, count: int, inner: int, bn_size: int, growth_rate: int, drop_rate: float,
        memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        for n in range(count):
            layer = _DenseLayer(
                inner + n * growth_rate, growth_rate, bn_size, drop_rate, memory_efficient
            )
            self.add_module(f"denselayer{n + 1}", layer)

    def forward(self, first: Tensor) -> Tensor:
        """All layers' channels, side by side."""
        features = [first]
        for layer in self.values():
            features.append(layer(features))
        return mg.cat(features, 1)


def _transition(inner: int, outer: int) -> nn.Sequential:
    return nn.Sequential(
        OrderedDict(
            norm=nn.BatchNorm2d(inner),
            relu=nn.ReLU(inplace=True),
            conv=nn.Conv2d(inner, outer, 1, bias=False),
            pool=nn.AvgPool2d(2, 2),
        )
    )


class DenseNet(nn.Module):
    """Blocks of dense layers with poolings between."""

    def __init__(
        self, growth_rate: int = 32, block_config: tuple[int, ...] = (6, 12, 24, 16),
        num_init_features: int = 64, bn_size: int = 4, drop_rate: float = 0,
        num_classes: int = 1000, memory_efficient: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.features = nn.Sequential(
            OrderedDict(
                conv0=nn.Conv2d(3, num_init_features, 7, 2, 3, bias=False),
                norm0=nn.BatchNorm2d(num_init_features),
                relu0=nn.ReLU(inplace=True),
                pool0=nn.MaxPool2d(3, 2, 1),
            )
        )
        count = num_init_features
        for n, layers in enumerate(block_config):
            block = _DenseBlock(layers, count, bn_size, growth_rate, drop_rate, memory_efficient)
            self.features.add_module(f"denseblock{n + 1}", block)
            count += layers * growth_rate
            if n != len(block_config) - 1:
                self.features.add_module(f"transition{n + 1}", _transition(count, count // 2))
                count //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(count))
        self.classifier = nn.Linear(count, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight)
            elif isinstance(m, nn.Linear):
                nn.init.constant_(m.bias, 0)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        out = F.relu(self.features(x), inplace=True)
        return self.classifier(F.adaptive_avg_pool2d(out, (1, 1)).flatten(1))


MODELS = {
    "densenet121": made("densenet121", DenseNet, 32, (6, 12, 24, 16), 64),
    "densenet161": made("densenet161", DenseNet, 48, (6, 12, 36, 24), 96),
    "densenet169": made("densenet169", DenseNet, 32, (6, 12, 32, 32), 64),
    "densenet201": made("densenet201", DenseNet, 32, (6, 12, 48, 32), 64),
}
