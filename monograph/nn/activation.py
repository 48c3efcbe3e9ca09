"""Activations as modules."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module
from .parameter import take


class _InPlace(Module):
    """An activation that may write its result over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def compute(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        result = self.compute(x)
        return take(x, result) if self.inplace and result is not x else result

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """max(x, 0)."""

    def compute(self, x: Tensor) -> Tensor:
        result: Tensor = F.relu(x)
        return result


class SiLU(_InPlace):
    """x · sigmoid(x)."""

    def compute(self, x: Tensor) -> Tensor:
        result: Tensor = F.silu(x)
        return result


class LeakyReLU(_InPlace):
    """x, or negative_slope · x below zero."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def compute(self, x: Tensor) -> Tensor:
        result: Tensor = F.leaky_relu(x, self.negative_slope)
        return result

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class Dropout(_InPlace):
    """Elements zeroed at probability p while training, the others scaled by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        super().__init__(inplace)
        self.p = p

    def compute(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class GELU(Module):
    """x · Φ(x), exactly or by the tanh formula."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.gelu(x, approximate=self.approximate)
        return result

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """tanh(x)."""

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.tanh(x)
        return result


class Sigmoid(Module):
    """1 / (1 + exp(-x))."""

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.sigmoid(x)
        return result


class Softmax(Module):
    """exp(x) normalised to sum 1 along dim."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.softmax(x, self.dim)
        return result

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """log(softmax(x)) along dim."""

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.log_softmax(x, self.dim)
        return result
