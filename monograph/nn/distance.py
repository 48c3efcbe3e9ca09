"""Distances as modules."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along dim.

    >>> import monograph as mg
    >>> mg.nn.CosineSimilarity()(mg.tensor([[2.0, 0.0]]), mg.tensor([[0.0, 3.0]])).tolist()
    [0.0]
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        result: Tensor = F.cosine_similarity(x1, x2, self.dim, self.eps)
        return result


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> import monograph as mg
    >>> mg.nn.PairwiseDistance(eps=0)(mg.tensor([[3.0, 4.0]]), mg.zeros(1, 2)).tolist()
    [5.0]
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        result: Tensor = F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
        return result
