"""Layers that resample the spatial axes of their input."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import functional as F
from .module import Module


class Upsample(Module):
    """`nn.functional.interpolate` as a layer.

    >>> import monograph as mg
    >>> mg.nn.Upsample(scale_factor=2)(mg.tensor([[[1.0, 2.0]]])).tolist()
    [[[1.0, 1.0, 2.0, 2.0]]]
    """

    def __init__(
        self, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
        align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = size
        several = isinstance(scale_factor, (tuple, list))
        self.scale_factor = (
            tuple([float(s) for s in scale_factor])
            if several
            else (float(scale_factor) if scale_factor else None)
        )
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip
        return result

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images resampled to the nearest place.

    >>> import monograph as mg
    >>> mg.nn.UpsamplingNearest2d(scale_factor=2)(mg.tensor([[[[1.0, 2.0]]]])).tolist()
    [[[[1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0]]]]
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images resampled linearly, from corner to corner.

    >>> import monograph as mg
    >>> mg.nn.UpsamplingBilinear2d(scale_factor=2)(mg.zeros(1, 3, 4, 5)).shape
    Size([1, 3, 8, 10])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
