"""Convolution layers over one, two or three spatial axes."""

from __future__ import annotations

from typing import Any

from ..ir.dtypes import DType, float32
from ..ops.window import spread
from ..tensor import Parameter, Tensor
from . import functional as F
from .linear import fill_as_pytorch
from .module import Module, zeros


class _Conv(Module):
    rank: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", dtype: DType = float32,
    ) -> None:  # fmt: skip
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"in_channels {in_channels} and out_channels {out_channels} "
                f"must be divisible by groups {groups}"
            )
        if padding_mode != "zeros":
            raise ValueError(f"only padding_mode 'zeros' is supported, got {padding_mode!r}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"padding must be numbers, 'same' or 'valid', got {padding!r}")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = spread(kernel_size, self.rank)
        self.stride = spread(stride, self.rank)
        self.padding = padding if isinstance(padding, str) else spread(padding, self.rank)
        self.dilation = spread(dilation, self.rank)
        self.groups = groups
        if padding == "same" and self.stride != (1,) * self.rank:
            raise ValueError("padding='same' is not supported for strided convolutions")
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(zeros(*shape, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(zeros(out_channels, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        fill_as_pytorch(self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        function = (F.conv1d, F.conv2d, F.conv3d)[self.rank - 1]
        result: Tensor = function(
            x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
        )
        return result

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"
        text += f", stride={self.stride}"
        if self.padding != (0,) * self.rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.rank:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias is not None else f"{text}, bias=False"


class Conv1d(_Conv):
    """Convolution of [N, C, L]."""

    rank = 1


class Conv2d(_Conv):
    """Convolution of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.Conv2d(3, 8, 3, padding=1)(mg.zeros(1, 3, 6, 6)).shape
    Size([1, 8, 6, 6])
    """

    rank = 2


class Conv3d(_Conv):
    """Convolution of [N, C, D, H, W]."""

    rank = 3
