"""Normalisation layers without running statistics."""

from __future__ import annotations

from typing import Any

from ..ir.dtypes import DType
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import zeros


class _Affine(Module):
    """A weight and a bias that start as no change; either may be absent."""

    weight: Parameter | None
    bias: Parameter | None

    def _make(
        self, size: tuple[int, ...], names: dict[str, bool], device: Any, dtype: DType | None
    ) -> None:
        for name, wanted in names.items():
            made = Parameter(zeros(*size, dtype=dtype, device=device)) if wanted else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by one, shift by zero."""
        for name, fill in (("weight", init.ones_), ("bias", init.zeros_)):
            made = self._parameters.get(name)
            if made is not None:
                fill(made)


def _sizes(normalized_shape: Any) -> tuple[int, ...]:
    return (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)


class LayerNorm(_Affine):
    """x centred and scaled over its last axes.

    >>> import monograph as mg
    >>> mg.nn.LayerNorm(4)(mg.randn(2, 4)).shape
    Size([2, 4])
    """

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        names = {"weight": elementwise_affine, "bias": elementwise_affine and bias}
        self._make(self.normalized_shape, names, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Affine):
    """x divided by the root of the mean of its squares over the last axes.

    >>> import monograph as mg
    >>> mg.nn.RMSNorm(4)(mg.randn(2, 4)).shape
    Size([2, 4])
    """

    def __init__(
        self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True,
        device: Any = None, dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.normalized_shape = _sizes(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._make(self.normalized_shape, {"weight": elementwise_affine}, device, dtype)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = F.rms_norm(x, self.normalized_shape, self.weight, self.eps)
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """x [N, C, …] normalised over each group of channels.

    >>> import monograph as mg
    >>> mg.nn.GroupNorm(2, 4)(mg.randn(3, 4, 5)).shape
    Size([3, 4, 5])
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: Any = None, dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels {num_channels} must be divisible by {num_groups}")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        names = {"weight": affine, "bias": affine and bias}
        self._make((num_channels,), names, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)
        return result

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(Module):
    """x divided by (k + alpha · mean of squares of `size` neighbouring channels) ** beta.

    >>> import monograph as mg
    >>> mg.nn.LocalResponseNorm(2)(mg.ones(1, 4, 5, 5)).shape
    Size([1, 4, 5, 5])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
        return result

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` over as many neighbours on either side, as PyTorch computes it.

    Its running sum over channels never loses the first one, so that counts for all behind it too.

    >>> import monograph as mg
    >>> mg.nn.CrossMapLRN2d(3, 1.0, 1.0, 0.0)(mg.ones(1, 5, 1, 1)).flatten()
    tensor([1.5000, 1.0000, 0.7500, 0.7500, 1.0000])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        reach = (self.size - 1) // 2
        squares = input.pow(2)
        row = squares.unsqueeze(1)
        window = (2 * reach + 1, 1, 1)
        near = F.avg_pool3d(row, window, 1, (reach, 0, 0), divisor_override=1).squeeze(1)
        before = input.shape[1] - reach - 1  # channels whose window has left the first one behind
        if before > 0:
            first = squares[:, :1].expand(-1, before, -1, -1)
            near = near + F.pad(first, (0, 0, 0, 0, reach + 1, 0))
        result: Tensor = input / (self.k + self.alpha / self.size * near) ** self.beta
        return result
