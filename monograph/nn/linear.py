"""Layers without spatial structure: Linear, Identity, Flatten."""

from __future__ import annotations

import math
from typing import Any

from ..ir.dtypes import DType, float32
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module, zeros


def fill_as_pytorch(weight: Tensor, bias: Tensor | None) -> None:
    """The default of Linear and Conv: both uniform in ±1/√fan_in."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
    if bias is not None and fan_in > 0:
        bound = 1 / math.sqrt(fan_in)
        init.uniform_(bias, -bound, bound)


class Linear(Module):
    """x · weightᵀ + bias.

    >>> import monograph as mg
    >>> mg.nn.Linear(3, 2)(mg.zeros(4, 3)).shape
    Size([4, 2])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, dtype: DType = float32
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(zeros(out_features, in_features, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(zeros(out_features, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        fill_as_pytorch(self.weight, self.bias)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.linear(x, self.weight, self.bias)
        return result

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Identity(Module):
    """Returns its input; takes and ignores any arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        return x


class Flatten(Module):
    """The axes from start_dim to end_dim as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Any) -> Any:
        return x.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
