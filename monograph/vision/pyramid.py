"""Feature pyramids: maps of all scales with what the deepest knows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import monograph.nn.functional as F

from .. import nn
from ..tensor import Tensor
from .layers import Conv2dNormActivation

Maps = list[Tensor]


class ExtraFPNBlock(nn.Module):
    """What makes further maps of those of a pyramid."""

    def forward(self, results: Maps, x: Maps, names: list[str]) -> tuple[Maps, list[str]]:
        """(maps, names), with more at the end."""
        raise NotImplementedError


class LastLevelMaxPool(ExtraFPNBlock):
    """Every other point of the last map.

    >>> import monograph as mg
    >>> maps, names = LastLevelMaxPool()([mg.zeros(1, 4, 8, 8)], [], ["0"])
    >>> maps[-1].shape, names
    (Size([1, 4, 4, 4]), ['0', 'pool'])
    """

    def forward(self, results: Maps, x: Maps, names: list[str]) -> tuple[Maps, list[str]]:
        """(maps, names), with one more at the end."""
        return [*results, F.max_pool2d(results[-1], 1, 2, 0)], [*names, "pool"]


class LastLevelP6P7(ExtraFPNBlock):
    """Two convolutions of stride 2, as RetinaNet has."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.p6 = nn.Conv2d(in_channels, out_channels, 3, 2, 1)
        self.p7 = nn.Conv2d(out_channels, out_channels, 3, 2, 1)
        for layer in (self.p6, self.p7):
            nn.init.kaiming_uniform_(layer.weight, a=1)
            nn.init.constant_(layer.bias, 0)
        self.use_P5 = in_channels == out_channels

    def forward(self, results: Maps, x: Maps, names: list[str]) -> tuple[Maps, list[str]]:
        """(maps, names), with two more at the end."""
        sixth = self.p6(results[-1] if self.use_P5 else x[-1])
        seventh = self.p7(F.relu(sixth))
        return [*results, sixth, seventh], [*names, "p6", "p7"]


class FeaturePyramidNetwork(nn.Module):
    """Each map plus the one above it, from the deepest down, all with as many channels.

    >>> import monograph as mg
    >>> from collections import OrderedDict
    >>> maps = OrderedDict(a=mg.zeros(1, 2, 8, 8), b=mg.zeros(1, 3, 4, 4))
    >>> made = mg.vision.ops.FeaturePyramidNetwork([2, 3], 5)(maps)
    >>> [(name, tuple(x.shape)) for name, x in made.items()]
    [('a', (1, 5, 8, 8)), ('b', (1, 5, 4, 4))]
    """

    _version = 2

    def __init__(
        self, in_channels_list: Sequence[int], out_channels: int,
        extra_blocks: ExtraFPNBlock | None = None, norm_layer: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.inner_blocks, self.layer_blocks = nn.ModuleList(), nn.ModuleList()
        options: dict[str, Any] = {"norm_layer": norm_layer, "activation_layer": None}
        for width in in_channels_list:
            if width == 0:
                raise ValueError("in_channels=0 is currently not supported")
            self.inner_blocks.append(Conv2dNormActivation(width, out_channels, 1, **options))
            self.layer_blocks.append(Conv2dNormActivation(out_channels, out_channels, 3, **options))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_uniform_(m.weight, a=1)
                if m.bias is not None:
                    nn.init.constant_(m.bias, 0)
        if extra_blocks is not None and not isinstance(extra_blocks, ExtraFPNBlock):
            raise TypeError(
                f"extra_blocks should be of type ExtraFPNBlock not {type(extra_blocks)}"
            )
        self.extra_blocks = extra_blocks

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        # At first the convolutions stood in the lists themselves.
        for block in ("inner_blocks", "layer_blocks"):
            for n in range(len(self.inner_blocks)):
                for kind in ("weight", "bias"):
                    old = f"{prefix}{block}.{n}.{kind}"
                    if old in state_dict:
                        state_dict[f"{prefix}{block}.{n}.0.{kind}"] = state_dict.pop(old)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, x: dict[str, Tensor]) -> OrderedDict[str, Tensor]:
        """Maps by name, from the finest to the coarsest."""
        names, maps = list(x), list(x.values())
        above = self.inner_blocks[-1](maps[-1])
        results = [self.layer_blocks[-1](above)]
        for n in range(len(maps) - 2, -1, -1):
            side = self.inner_blocks[n](maps[n])
            above = side + F.interpolate(above, size=side.shape[-2:], mode="nearest")
            results.insert(0, self.layer_blocks[n](above))
        if self.extra_blocks is not None:
            results, names = self.extra_blocks(results, maps, names)
        return OrderedDict(zip(names, results, strict=True))
