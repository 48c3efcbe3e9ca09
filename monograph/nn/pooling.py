"""Pooling layers over one, two or three spatial axes."""

from __future__ import annotations

from typing import Any

from ..ops.window import spread, strides_of
from ..tensor import Tensor
from . import functional as F
from .module import Module


class _MaxPool(Module):
    rank: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.rank - 1]
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of [N, C, L].

    >>> import monograph as mg
    >>> mg.nn.MaxPool1d(2)(mg.arange(6.0).view(1, 1, 6)).tolist()
    [[[1.0, 3.0, 5.0]]]
    """

    rank = 1


class MaxPool2d(_MaxPool):
    """The largest element of each window of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.MaxPool2d(2)(mg.zeros(1, 3, 6, 6)).shape
    Size([1, 3, 3, 3])
    """

    rank = 2


class MaxPool3d(_MaxPool):
    """The largest element of each window of [N, C, D, H, W].

    >>> import monograph as mg
    >>> mg.nn.MaxPool3d(2)(mg.zeros(1, 3, 4, 6, 8)).shape
    Size([1, 3, 2, 3, 4])
    """

    rank = 3


class _MaxUnpool(Module):
    rank: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = spread(kernel_size, self.rank)
        self.stride = strides_of(stride, self.kernel_size)
        self.padding = spread(padding, self.rank)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.rank - 1]
        result: Tensor = unpool(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )
        return result

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """What MaxPool1d kept, back at its places.

    >>> import monograph as mg
    >>> pooled, where = mg.nn.MaxPool1d(2, return_indices=True)(mg.tensor([[[1.0, 3.0, 4.0, 2.0]]]))
    >>> mg.nn.MaxUnpool1d(2)(pooled, where).tolist()
    [[[0.0, 3.0, 4.0, 0.0]]]
    """

    rank = 1


class MaxUnpool2d(_MaxUnpool):
    """What MaxPool2d kept, back at its places; zeros elsewhere.

    >>> import monograph as mg
    >>> pooled, where = mg.nn.MaxPool2d(2, return_indices=True)(mg.ones(1, 1, 4, 4))
    >>> mg.nn.MaxUnpool2d(2)(pooled, where).sum().item()
    4.0
    """

    rank = 2


class MaxUnpool3d(_MaxUnpool):
    """What MaxPool3d kept, back at its places.

    >>> import monograph as mg
    >>> pooled, where = mg.nn.MaxPool3d(2, return_indices=True)(mg.ones(1, 1, 4, 4, 4))
    >>> mg.nn.MaxUnpool3d(2)(pooled, where).shape
    Size([1, 1, 4, 4, 4])
    """

    rank = 3


class _AvgPool(Module):
    rank: int

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        pool = (F.avg_pool2d, F.avg_pool3d)[self.rank - 2]
        result: Tensor = pool(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip
        return result

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """The mean of each window of [N, C, L].

    >>> import monograph as mg
    >>> mg.nn.AvgPool1d(2)(mg.arange(6.0).view(1, 1, 6)).tolist()
    [[[0.5, 2.5, 4.5]]]
    """

    rank = 1

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )
        return result

    def extra_repr(self) -> str:
        sizes = [spread(v, 1) for v in (self.kernel_size, self.stride, self.padding)]
        return f"kernel_size={sizes[0]}, stride={sizes[1]}, padding={sizes[2]}"


class AvgPool2d(_AvgPool):
    """The mean of each window of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.AvgPool2d(2)(mg.ones(1, 1, 2, 4)).tolist()
    [[[[1.0, 1.0]]]]
    """

    rank = 2


class AvgPool3d(_AvgPool):
    """The mean of each window of [N, C, D, H, W].

    >>> import monograph as mg
    >>> mg.nn.AvgPool3d(2)(mg.ones(1, 2, 4, 6, 8)).shape
    Size([1, 2, 2, 3, 4])
    """

    rank = 3


class _LPPool(Module):
    rank: int

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        pool = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self.rank - 1]
        result: Tensor = pool(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
        return result

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The p-norm of each window of [N, C, L].

    >>> import monograph as mg
    >>> mg.nn.LPPool1d(2, 2)(mg.tensor([[[3.0, 4.0]]])).tolist()
    [[[5.0]]]
    """

    rank = 1


class LPPool2d(_LPPool):
    """The p-norm of each window of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.LPPool2d(2, 2)(mg.ones(1, 1, 2, 2)).tolist()
    [[[[2.0]]]]
    """

    rank = 2


class LPPool3d(_LPPool):
    """The p-norm of each window of [N, C, D, H, W].

    >>> import monograph as mg
    >>> mg.nn.LPPool3d(2, 2)(mg.ones(1, 1, 4, 4, 4)).shape
    Size([1, 1, 2, 2, 2])
    """

    rank = 3


class _FractionalMaxPool(Module):
    rank: int

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = spread(kernel_size, self.rank)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        if (output_size is None) == (output_ratio is None):
            raise ValueError("fractional max pooling needs either output_size or output_ratio")
        self.output_size = None if output_size is None else spread(output_size, self.rank)
        self.output_ratio = None if output_ratio is None else spread(output_ratio, self.rank)
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1, got {output_ratio}")

    def forward(self, input: Tensor) -> Any:
        pool = (F.fractional_max_pool2d, F.fractional_max_pool3d)[self.rank - 2]
        return pool(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest element of windows of [N, C, H, W] that begin at random, evenly spread places.

    >>> import monograph as mg
    >>> mg.nn.FractionalMaxPool2d(2, output_ratio=0.5)(mg.zeros(1, 1, 8, 8)).shape
    Size([1, 1, 4, 4])
    """

    rank = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest element of windows of [N, C, D, H, W] that begin at random places.

    >>> import monograph as mg
    >>> mg.nn.FractionalMaxPool3d(2, output_size=3)(mg.zeros(1, 1, 8, 8, 8)).shape
    Size([1, 1, 3, 3, 3])
    """

    rank = 3


class _AdaptiveAvgPool(Module):
    rank: int

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        pools = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        result: Tensor = pools[self.rank - 1](input, self.output_size)
        return result

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The mean over windows of [N, C, L], as many as output_size says.

    >>> import monograph as mg
    >>> mg.nn.AdaptiveAvgPool1d(2)(mg.arange(6.0).view(1, 1, 6)).tolist()
    [[[1.0, 4.0]]]
    """

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The mean over windows of [N, C, H, W], as many as output_size says; None keeps a size.

    >>> import monograph as mg
    >>> mg.nn.AdaptiveAvgPool2d((1, None))(mg.ones(1, 2, 5, 7)).shape
    Size([1, 2, 1, 7])
    """

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The mean over windows of [N, C, D, H, W], as many as output_size says.

    >>> import monograph as mg
    >>> mg.nn.AdaptiveAvgPool3d((1, 2, None))(mg.ones(1, 2, 5, 6, 7)).shape
    Size([1, 2, 1, 2, 7])
    """

    rank = 3


class _AdaptiveMaxPool(Module):
    rank: int

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        pools = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
        return pools[self.rank - 1](input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest element of windows of [N, C, L], as many as output_size says.

    >>> import monograph as mg
    >>> mg.nn.AdaptiveMaxPool1d(2)(mg.arange(6.0).view(1, 1, 6)).tolist()
    [[[2.0, 5.0]]]
    """

    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest element of windows of [N, C, H, W], as many as output_size says.

    >>> import monograph as mg
    >>> mg.nn.AdaptiveMaxPool2d(3)(mg.ones(1, 2, 5, 7)).shape
    Size([1, 2, 3, 3])
    """

    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest element of windows of [N, C, D, H, W], as many as output_size says.

    >>> import monograph as mg
    >>> mg.nn.AdaptiveMaxPool3d((1, 2, 3))(mg.ones(1, 2, 5, 6, 7)).shape
    Size([1, 2, 1, 2, 3])
    """

    rank = 3
