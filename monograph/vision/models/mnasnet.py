"""MNASNets: inverted residuals found by a search for what is fast on telephones."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...tensor import Tensor
from .mobile import _make_divisible
from .weights import made

# PyTorch's momentum is how much the new counts.
_MOMENTUM = 1 - 0.9997


def _layers(inner: int, outer: int, kernel: int, stride: int, groups: int) -> list[nn.Module]:
    conv = nn.Conv2d(inner, outer, kernel, stride, kernel // 2, groups=groups, bias=False)
    return [conv, nn.BatchNorm2d(outer, momentum=_MOMENTUM)]


class _InvertedResidual(nn.Module):
    """1 × 1, depthwise, 1 × 1, beside a shortcut where sizes agree."""

    def __init__(self, inner: int, outer: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inner * expansion
        self.apply_residual = inner == outer and stride == 1
        self.layers = nn.Sequential(
            *_layers(inner, wide, 1, 1, 1), nn.ReLU(inplace=True),
            *_layers(wide, wide, kernel, stride, wide), nn.ReLU(inplace=True),
            *_layers(wide, outer, 1, 1, 1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        """What the layers give, plus the shortcut."""
        return self.layers(x) + x if self.apply_residual else self.layers(x)


def _stack(
    inner: int, outer: int, kernel: int, stride: int, expansion: int, repeats: int
) -> nn.Sequential:
    first = _InvertedResidual(inner, outer, kernel, stride, expansion)
    more = [_InvertedResidual(outer, outer, kernel, 1, expansion) for _ in range(repeats - 1)]
    return nn.Sequential(first, *more)


class MNASNet(nn.Module):
    """Six stacks of inverted residuals, as wide as a factor says."""

    _version = 2

    def __init__(self, alpha: float, num_classes: int = 1000, dropout: float = 0.2) -> None:
        super().__init__()
        if alpha <= 0.0:
            raise ValueError(f"alpha should be greater than 0.0 instead of {alpha}")
        self.alpha, self.num_classes = alpha, num_classes
        widths = [_make_divisible(w * alpha, 8) for w in (32, 16, 24, 40, 80, 96, 192, 320)]
        layers: list[nn.Module] = [
            *_layers(3, widths[0], 3, 2, 1), nn.ReLU(inplace=True),
            *_layers(widths[0], widths[0], 3, 1, widths[0]), nn.ReLU(inplace=True),
            *_layers(widths[0], widths[1], 1, 1, 1),
        ]  # fmt: skip
        # kernel, stride, expansion, how often
        rows = [(3, 2, 3, 3), (5, 2, 3, 3), (5, 2, 6, 3), (3, 1, 6, 2), (5, 2, 6, 4), (3, 1, 6, 1)]
        for inner, outer, row in zip(widths[1:], widths[2:], rows, strict=False):
            layers.append(_stack(inner, outer, *row))
        layers += [*_layers(widths[-1], 1280, 1, 1, 1), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Dropout(dropout, inplace=True), nn.Linear(1280, num_classes)
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.kaiming_uniform_(m.weight, mode="fan_out", nonlinearity="sigmoid")
                nn.init.zeros_(m.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Scores of classes for images."""
        return self.classifier(self.layers(x).mean([2, 3]))


_WIDTHS: dict[str, Any] = {"0_5": 0.5, "0_75": 0.75, "1_0": 1.0, "1_3": 1.3}
MODELS = {
    f"mnasnet{name}": made(f"mnasnet{name}", MNASNet, alpha, file=f"mnasnet{alpha}_top1_*")
    for name, alpha in _WIDTHS.items()
}
