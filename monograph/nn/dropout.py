"""Dropout layers: active while training."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        super().__init__()
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """Elements zeroed at probability p while training, the others scaled by 1 / (1 - p).

    >>> import monograph as mg
    >>> layer = mg.nn.Dropout(0.5)
    >>> sorted(set(layer(mg.ones(1000)).tolist()))
    [0.0, 2.0]
    >>> layer.eval()(mg.ones(3)).tolist()
    [1.0, 1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.dropout(input, self.p, self.training, self.inplace)
        return result


class Dropout1d(_Dropout):
    """Whole channels of [N, C, L] or [C, L] zeroed at probability p while training.

    >>> import monograph as mg
    >>> mg.nn.Dropout1d(0.5)(mg.ones(2, 8, 5)).shape
    Size([2, 8, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.dropout1d(input, self.p, self.training, self.inplace)
        return result


class Dropout2d(_Dropout):
    """Whole channels of [N, C, H, W] zeroed at probability p while training.

    >>> import monograph as mg
    >>> kept = mg.nn.Dropout2d(0.5)(mg.ones(2, 8, 4, 4))
    >>> bool((kept.amax((2, 3)) == kept.amin((2, 3))).all())
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.dropout2d(input, self.p, self.training, self.inplace)
        return result


class Dropout3d(_Dropout):
    """Whole channels of [N, C, D, H, W] zeroed at probability p while training.

    >>> import monograph as mg
    >>> mg.nn.Dropout3d(0.5)(mg.ones(2, 8, 3, 4, 5)).shape
    Size([2, 8, 3, 4, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.dropout3d(input, self.p, self.training, self.inplace)
        return result


class AlphaDropout(_Dropout):
    """Dropout that keeps mean 0 and variance 1, for networks of SELU.

    >>> import monograph as mg
    >>> mg.nn.AlphaDropout(0.1)(mg.zeros(4, 3)).shape
    Size([4, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.alpha_dropout(input, self.p, self.training, self.inplace)
        return result


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels.

    >>> import monograph as mg
    >>> mg.nn.FeatureAlphaDropout(0.1)(mg.zeros(2, 8, 4, 4)).shape
    Size([2, 8, 4, 4])
    """

    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
        return result
