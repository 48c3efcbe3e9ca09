"""Normalisation layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..autograd.modes import no_grad
from ..ir.dtypes import DType, float32
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module, zeros
from .parameter import known, take


class _BatchNorm(Module):
    ranks: tuple[int, ...]  # how many axes the input may have
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Any

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, dtype: DType = float32, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = Parameter(zeros(num_features, dtype=dtype)) if wanted else None
            self.register_parameter(name, made)
        track = track_running_stats
        mean, variance = zeros(num_features, dtype=dtype), np.ones(num_features, dtype.numpy)
        self.register_buffer("running_mean", known(mean) if track else None)
        self.register_buffer("running_var", known(variance) if track else None)
        count = known(np.zeros((), np.int64))
        self.register_buffer("num_batches_tracked", count if track else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the statistics of past batches."""
        if self.running_mean is not None and self.running_var is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Scale by one, shift by zero, and forget the statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _share_of_new(self) -> Any:
        """How much of the running statistics this batch replaces."""
        if self.running_mean is None:
            return 0.0
        with no_grad():
            take(self.num_batches_tracked, self.num_batches_tracked + 1)
        if self.momentum is not None:
            return self.momentum
        return 1.0 / self.num_batches_tracked.to(self.running_mean.dtype)  # a mean of all batches

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim not in self.ranks:
            wanted = " or ".join(f"{n}D" for n in self.ranks)
            raise ValueError(f"expected {wanted} input (got {x.ndim}D input)")
        share = self._share_of_new() if self.training else 0.0
        by_batch = self.training or self.running_mean is None
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            by_batch,
            share,
            self.eps,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch norm of [N, C] or [N, C, L]."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.BatchNorm2d(3)(mg.randn(2, 3, 4, 4)).shape
    Size([2, 3, 4, 4])
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of [N, C, D, H, W]."""

    ranks = (5,)


class LayerNorm(Module):
    """x centred and scaled over its last axes."""

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, dtype: DType = float32,
    ) -> None:  # fmt: skip
        super().__init__()
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        self.normalized_shape = tuple(sizes)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", True), ("bias", bias)):
            present = wanted and elementwise_affine
            made = Parameter(zeros(*self.normalized_shape, dtype=dtype)) if present else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Scale by one, shift by zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )
