"""Layers without spatial structure: Linear, Bilinear, Identity, Flatten, Unflatten."""

from __future__ import annotations

import math
from typing import Any

from ..ir.dtypes import DType
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import zeros


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
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(zeros(out_features, in_features, dtype=dtype, device=device))
        self.register_parameter(
            "bias", Parameter(zeros(out_features, dtype=dtype, device=device)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights."""
        fill_as_pytorch(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.linear(input, self.weight, self.bias)
        return result

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """out[k] = Σ input1[i] · weight[k, i, j] · input2[j] + bias[k].

    >>> import monograph as mg
    >>> mg.nn.Bilinear(2, 3, 4)(mg.zeros(5, 2), mg.zeros(5, 3)).shape
    Size([5, 4])
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
        device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        size = (out_features, in1_features, in2_features)
        self.weight = Parameter(zeros(*size, dtype=dtype, device=device))
        made = Parameter(zeros(out_features, dtype=dtype, device=device)) if bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, uniform in ±1/√in1_features."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        result: Tensor = F.bilinear(input1, input2, self.weight, self.bias)
        return result

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """Returns its input; takes and ignores any arguments.

    >>> import monograph as mg
    >>> mg.nn.Identity()(mg.ones(2)).tolist()
    [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Flatten(Module):
    """The axes from start_dim to end_dim as one.

    >>> import monograph as mg
    >>> mg.nn.Flatten()(mg.zeros(2, 3, 4)).shape
    Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One axis as several: the inverse of Flatten.

    >>> import monograph as mg
    >>> mg.nn.Unflatten(1, (2, 3))(mg.zeros(4, 6)).shape
    Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(dim, int) or not isinstance(unflattened_size, (tuple, list)):
            raise TypeError("Unflatten takes an axis by its number, and a tuple or list of sizes")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        k = self.dim % input.ndim
        return input.reshape(*input.shape[:k], *self.unflattened_size, *input.shape[k + 1 :])

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
