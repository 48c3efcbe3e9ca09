"""Pooling layers over one, two or three spatial axes."""

from __future__ import annotations

from typing import Any

from ..ops.window import spread
from ..tensor import Tensor
from . import functional as F
from .module import Module


class _MaxPool(Module):
    rank: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.rank - 1]
        result: Tensor = pool(
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode
        )
        return result

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of [N, C, L]."""

    rank = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.MaxPool2d(2)(mg.zeros(1, 3, 6, 6)).shape
    Size([1, 3, 3, 3])
    """

    rank = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window of [N, C, D, H, W]."""

    rank = 3


class _AvgPool(Module):
    rank: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[self.rank - 1]
        result: Tensor = pool(
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )
        return result

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window of [N, C, L]."""

    rank = 1

    def extra_repr(self) -> str:
        sizes = [spread(v, 1) for v in (self.kernel_size, self.stride, self.padding)]
        return f"kernel_size={sizes[0]}, stride={sizes[1]}, padding={sizes[2]}"


class AvgPool2d(_AvgPool):
    """The mean of each window of [N, C, H, W]."""

    rank = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of [N, C, D, H, W]."""

    rank = 3


class _AdaptiveAvgPool(Module):
    rank: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, x: Tensor) -> Tensor:
        pools = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        result: Tensor = pools[self.rank - 1](x, self.output_size)
        return result

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean over blocks of [N, C, L] so that the result has output_size."""

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean over blocks of [N, C, H, W] so that the result has output_size."""

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean over blocks of [N, C, D, H, W] so that the result has output_size."""

    rank = 3
