"""Losses as modules."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Loss(Module):
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")
        self.reduction = reduction


class MSELoss(_Loss):
    """The squared difference."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.mse_loss(x, target, self.reduction)
        return result


class L1Loss(_Loss):
    """The absolute difference."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        result: Tensor = F.l1_loss(x, target, self.reduction)
        return result


class _ClassLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index


class NLLLoss(_ClassLoss):
    """-x[target] for log-probabilities."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(x, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_ClassLoss):
    """-log softmax(x)[target] for logits.

    >>> import monograph as mg
    >>> round(mg.nn.CrossEntropyLoss()(mg.zeros(2, 4), mg.tensor([0, 3])).item(), 4)
    1.3863
    """

    def __init__(
        self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(weight, ignore_index, reduction)
        self.label_smoothing = label_smoothing

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            x, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )
