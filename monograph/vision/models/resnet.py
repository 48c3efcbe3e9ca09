"""ResNets, with torchvision's names of layers."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...tensor import Tensor
from .weights import made


def conv3x3(
    inner: int, outer: int, stride: int = 1, groups: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """A 3 × 3 convolution that keeps the size."""
    return nn.Conv2d(
        inner, outer, 3, stride, dilation, dilation=dilation, groups=groups, bias=False
    )


def conv1x1(inner: int, outer: int, stride: int = 1) -> nn.Conv2d:
    """A 1 × 1 convolution."""
    return nn.Conv2d(inner, outer, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: Any = None,
        groups: int = 1, base_width: int = 64, dilation: int = 1, norm_layer: Any = nn.BatchNorm2d,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups != 1 or base_width != 64:
            raise ValueError("BasicBlock only supports groups=1 and base_width=64")
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        """The shortcut plus what the convolutions give."""
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(out)) + identity)


class Bottleneck(nn.Module):
    """A 3 × 3 convolution between two of 1 × 1, beside a shortcut."""

    expansion = 4

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: Any = None,
        groups: int = 1, base_width: int = 64, dilation: int = 1, norm_layer: Any = nn.BatchNorm2d,
    ) -> None:  # fmt: skip
        super().__init__()
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = conv1x1(inplanes, width)
        self.bn1 = norm_layer(width)
        self.conv2 = conv3x3(width, width, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = conv1x1(width, planes * self.expansion)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x: Tensor) -> Tensor:
        """The shortcut plus what the convolutions give."""
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        return self.relu(self.bn3(self.conv3(out)) + identity)


class ResNet(nn.Module):
    """Four stages of blocks."""

    def __init__(
        self, block: Any, layers: list[int], num_classes: int = 1000,
        zero_init_residual: bool = False, groups: int = 1, width_per_group: int = 64,
        replace_stride_with_dilation: Any = None, norm_layer: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._norm_layer = norm_layer or nn.BatchNorm2d
        self.inplanes, self.dilation = 64, 1
        self.groups, self.base_width = groups, width_per_group
        dilated = replace_stride_with_dilation or [False, False, False]
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = self._norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2, dilated[0])
        self.layer3 = self._make_layer(block, 256, layers[2], 2, dilated[1])
        self.layer4 = self._make_layer(block, 512, layers[3], 2, dilated[2])
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            if zero_init_residual and isinstance(m, (BasicBlock, Bottleneck)):
                last = m.bn3 if isinstance(m, Bottleneck) else m.bn2
                nn.init.constant_(last.weight, 0)

    def _make_layer(
        self, block: Any, planes: int, blocks: int, stride: int = 1, dilate: bool = False
    ) -> nn.Sequential:
        previous = self.dilation
        if dilate:
            self.dilation *= stride
            stride = 1
        downsample = None
        outer = planes * block.expansion
        if stride != 1 or self.inplanes != outer:
            downsample = nn.Sequential(
                conv1x1(self.inplanes, outer, stride), self._norm_layer(outer)
            )
        shared = (self.groups, self.base_width)
        layers = [
            block(self.inplanes, planes, stride, downsample, *shared, previous, self._norm_layer)
        ]
        self.inplanes = outer
        for _ in range(1, blocks):
            layers.append(block(outer, planes, 1, None, *shared, self.dilation, self._norm_layer))
        return nn.Sequential(*layers)

    def _forward_impl(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images [N, 3, H, W]."""
        return self._forward_impl(x)


_KINDS: dict[str, tuple[Any, list[int], dict[str, Any]]] = {
    "resnet18": (BasicBlock, [2, 2, 2, 2], {}),
    "resnet34": (BasicBlock, [3, 4, 6, 3], {}),
    "resnet50": (Bottleneck, [3, 4, 6, 3], {}),
    "resnet101": (Bottleneck, [3, 4, 23, 3], {}),
    "resnet152": (Bottleneck, [3, 8, 36, 3], {}),
    "resnext50_32x4d": (Bottleneck, [3, 4, 6, 3], {"groups": 32, "width_per_group": 4}),
    "resnext101_32x8d": (Bottleneck, [3, 4, 23, 3], {"groups": 32, "width_per_group": 8}),
    "resnext101_64x4d": (Bottleneck, [3, 4, 23, 3], {"groups": 64, "width_per_group": 4}),
    "wide_resnet50_2": (Bottleneck, [3, 4, 6, 3], {"width_per_group": 128}),
    "wide_resnet101_2": (Bottleneck, [3, 4, 23, 3], {"width_per_group": 128}),
}
MODELS = {
    name: made(name, ResNet, block, layers, **options)
    for name, (block, layers, options) in _KINDS.items()
}
