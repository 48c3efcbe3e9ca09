"""Batch norm and instance norm layers: normalisation per channel, with running statistics."""

from __future__ import annotations

from typing import Any

from ..autograd.modes import no_grad
from ..ir.dtypes import DType, int64
from ..tensor import Parameter, Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import take, zeros


class _RunningNorm(Module):
    """Weights and running statistics, one of each for a channel."""

    ranks: tuple[int, ...]  # how many axes the input may have
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Any
    _version = 2  # since when batches are counted

    def __init__(
        self, num_features: int, eps: float, momentum: float | None, affine: bool,
        track_running_stats: bool, device: Any, dtype: DType | None, bias: bool,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            made = zeros(num_features, dtype=dtype, device=device)
            self.register_parameter(name, Parameter(made) if wanted else None)
        track = track_running_stats
        for name in ("running_mean", "running_var"):
            made = zeros(num_features, dtype=dtype, device=device)
            self.register_buffer(name, made if track else None)
        count = zeros(dtype=int64, device=device)
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

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: Any, *rest: Any
    ) -> None:
        """Take what belongs to this layer; states without a version need not have the count."""
        count = self.num_batches_tracked
        if (local_metadata.get("version") or 1) < 2 and count is not None:
            state_dict.setdefault(
                f"{prefix}num_batches_tracked",
                zeros(dtype=int64) if count.is_meta else count.detach().clone(),
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.ndim not in self.ranks:
            wanted = " or ".join(f"{n}D" for n in self.ranks)
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_RunningNorm):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: Any = None,
        dtype: DType | None = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def _share_of_new(self) -> Any:
        """How much of the running statistics this batch replaces."""
        if self.running_mean is None:
            return 0.0
        with no_grad():
            take(self.num_batches_tracked, self.num_batches_tracked + 1)
        if self.momentum is not None:
            return self.momentum
        return 1.0 / self.num_batches_tracked.to(self.running_mean.dtype)  # a mean of all batches

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        share = self._share_of_new() if self.training else 0.0
        by_batch = self.training or self.running_mean is None
        result: Tensor = F.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, by_batch, share,
            self.eps,
        )  # fmt: skip
        return result


class BatchNorm1d(_BatchNorm):
    """Batch norm of [N, C] or [N, C, L].

    >>> import monograph as mg
    >>> layer = mg.nn.BatchNorm1d(3)
    >>> layer(mg.randn(8, 3)).shape, list(layer.state_dict())
    (Size([8, 3]), ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked'])
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of [N, C, H, W].

    >>> import monograph as mg
    >>> mg.nn.BatchNorm2d(3)(mg.randn(2, 3, 4, 4)).shape
    Size([2, 3, 4, 4])
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of [N, C, D, H, W].

    >>> import monograph as mg
    >>> mg.nn.BatchNorm3d(3)(mg.randn(2, 3, 4, 5, 6)).shape
    Size([2, 3, 4, 5, 6])
    """

    ranks = (5,)


class _InstanceNorm(_RunningNorm):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: Any = None, dtype: DType | None = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.ndim == self.ranks[0]  # one sample without a batch axis
        channels = input.shape[0 if alone else 1]
        if channels != self.num_features and self.affine:
            raise ValueError(f"expected {self.num_features} channels, got {channels}")
        batch: Any = input.unsqueeze(0) if alone else input  # type: ignore[attr-defined]
        result = F.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, self.momentum or 0.0, self.eps,
        )  # fmt: skip
        return result.squeeze(0) if alone else result  # type: ignore[no-any-return]


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each sample of [N, C, L] or [C, L] normalised by itself.

    >>> import monograph as mg
    >>> mg.nn.InstanceNorm1d(3)(mg.randn(2, 3, 8)).shape
    Size([2, 3, 8])
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each sample of [N, C, H, W] or [C, H, W] normalised by itself.

    >>> import monograph as mg
    >>> mg.nn.InstanceNorm2d(3)(mg.randn(2, 3, 4, 4)).shape
    Size([2, 3, 4, 4])
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each sample of [N, C, D, H, W] or [C, D, H, W] normalised by itself.

    >>> import monograph as mg
    >>> mg.nn.InstanceNorm3d(3)(mg.randn(2, 3, 4, 5, 6)).shape
    Size([2, 3, 4, 5, 6])
    """

    ranks = (4, 5)
