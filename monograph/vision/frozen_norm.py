"""Batch normalisation whose statistics and weights are fixed, named as in torchvision.

Detectors keep the normalisation of a pretrained network as it is: all four vectors are buffers, so
no optimiser changes them and training mode updates nothing.
"""

from __future__ import annotations

from typing import Any

from .. import ones, rsqrt, zeros
from ..nn import Module
from ..tensor import Tensor

__all__ = ["FrozenBatchNorm2d"]


class FrozenBatchNorm2d(Module):
    """x scaled and shifted per channel by fixed numbers.

    >>> import monograph as mg
    >>> FrozenBatchNorm2d(3)(mg.ones(1, 3, 2, 2)).shape
    Size([1, 3, 2, 2])
    """

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_features: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", ones(num_features))
        self.register_buffer("bias", zeros(num_features))
        self.register_buffer("running_mean", zeros(num_features))
        self.register_buffer("running_var", ones(num_features))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        # State of a BatchNorm2d fits, too: what it counts is not needed.
        state_dict.pop(f"{prefix}num_batches_tracked", None)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, x: Tensor) -> Tensor:
        """x of shape [N, C, H, W], normalised."""
        scale = self.weight * rsqrt(self.running_var + self.eps)
        shift = self.bias - self.running_mean * scale
        return x * scale.reshape(1, -1, 1, 1) + shift.reshape(1, -1, 1, 1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight.shape[0]}, eps={self.eps})"
