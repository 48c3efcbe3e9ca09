"""Dropout in all its forms: what is dropped is a function of (seed, offset, position)."""

from __future__ import annotations

from typing import Any

from ..errors import OperandError
from ..ir import build, dtypes
from ..tensor import Tensor
from .define import Scalar, function, no_tensor, operator
from .inplace import over
from .random import default_generator, dropout_with, unit

f = build.functions

# What SELU gives far below zero: the value that alpha dropout puts in the place of the dropped.
_ALPHA = 1.6732632423543772848170429916717 * 1.0507009873554804934193349852946


def _require_share(p: float) -> None:
    if not 0 <= p <= 1:
        raise OperandError(f"dropout probability has to be between 0 and 1, but got {p}")


@function(to=("", "nn.functional"), inplace=True)
def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, *,
    train: bool | None = None,
) -> Tensor:  # fmt: skip
    """Elements zeroed at probability p while training, the others scaled by 1 / (1 - p).

    `torch.dropout` calls `training` by the name of `train`.

    >>> import monograph as mg
    >>> mg.nn.functional.dropout(mg.ones(3), 0.5, training=False).tolist()
    [1.0, 1.0, 1.0]
    """
    if not 0 <= p <= 1:
        _require_share(p)
    if not (training if train is None else train) or p == 0:
        return input
    try:
        smooth = input.dtype.is_smooth
    except AttributeError:
        raise no_tensor("dropout", input=input) from None
    if not smooth:
        raise OperandError(f"dropout needs a floating point tensor, got {input.dtype.name}")
    made = dropout_with(input, float(p), *default_generator.draw())
    return over(input, made, "dropout") if inplace else made  # type: ignore[no-any-return]


def _features(x: Any) -> tuple[int, ...]:
    """The shape of a mask that drops whole features: [N, C, 1, …]."""
    return (*x.shape[:2], *[1] * (x.ndim - 2))


@operator(to=None, method=False, name="feature_dropout")
def drop_features(x: Tensor, p: Scalar, seed: Scalar, offset: Scalar) -> Any:
    """Whole features [n, c] zeroed at probability p, the others scaled by 1 / (1 - p)."""
    if x.ndim < 2:
        raise ValueError(f"feature dropout needs at least 2 axes, got {list(x.shape)}")
    keep = 1.0 - build.as_node(p, x.dtype)
    scale = 1.0 / build.select(keep > 0, keep, 1.0)
    kept = unit(_features(x), seed, offset, dtypes.float32) >= p
    return build.select(kept, x * scale, 0.0)


@operator(to=None, method=False, name="alpha_dropout")
def drop_to_alpha(x: Tensor, p: Scalar, seed: Scalar, offset: Scalar, features: bool) -> Any:
    """Elements, or whole features, set to SELU's lower limit; then mean and variance restored."""
    if features and x.ndim < 2:
        raise ValueError(f"feature dropout needs at least 2 axes, got {list(x.shape)}")
    p = build.as_node(p, x.dtype)
    kept = unit(_features(x) if features else x.shape, seed, offset, dtypes.float32) >= p
    keep = 1.0 - p
    scale = 1.0 / f.sqrt((p * _ALPHA * _ALPHA + 1.0) * build.select(keep > 0, keep, 1.0))
    shift = p * _ALPHA * scale
    mixed = build.select(kept, x * scale, -_ALPHA * scale) + shift
    return build.select(keep > 0, mixed, 0.0)


def _by_feature(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    _require_share(p)
    if not training or p == 0:
        return input
    made = drop_features(input, float(p), *default_generator.draw())
    return over(input, made, "feature_dropout") if inplace else made  # type: ignore[no-any-return]


def _without_batch(input: Tensor, ndim: int, p: float, training: bool, inplace: bool) -> Tensor:
    """Features of one sample without a batch axis: axis 0 holds them."""
    if input.ndim != ndim:
        return _by_feature(input, p, training, inplace)
    made = _by_feature(input.unsqueeze(0), p, training, False)  # type: ignore[attr-defined]
    made = made.squeeze(0)  # type: ignore[attr-defined]
    return over(input, made, "feature_dropout") if inplace else made


@function(inplace=True)
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Whole features [n, c] zeroed at probability p.

    >>> import monograph as mg
    >>> mg.feature_dropout(mg.ones(1, 2, 3), 1.0, True).sum().item()
    0.0
    """
    return _by_feature(input, p, train, False)


@function(to="nn.functional")
def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of [N, C, L] or [C, L] zeroed at probability p.

    >>> import monograph as mg
    >>> mg.nn.functional.dropout1d(mg.ones(2, 3), 1.0).sum().item()
    0.0
    """
    if input.ndim not in (2, 3):
        raise OperandError(f"dropout1d takes 2 or 3 axes, got {list(input.shape)}")
    return _without_batch(input, 2, p, training, inplace)


@function(to="nn.functional")
def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of [N, C, H, W] zeroed at probability p.

    >>> import monograph as mg
    >>> mg.nn.functional.dropout2d(mg.ones(1, 2, 3, 3), 1.0).sum().item()
    0.0
    """
    return _by_feature(input, p, training, inplace)


@function(to="nn.functional")
def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of [N, C, D, H, W] zeroed at probability p.

    >>> import monograph as mg
    >>> mg.nn.functional.dropout3d(mg.ones(1, 2, 3, 3, 3), 1.0).sum().item()
    0.0
    """
    return _by_feature(input, p, training, inplace)


def _alpha(input: Tensor, p: float, training: bool, inplace: bool, features: bool) -> Tensor:
    _require_share(p)
    if not training or p == 0:
        return input
    made = drop_to_alpha(input, float(p), *default_generator.draw(), features)
    return over(input, made, "alpha_dropout") if inplace else made  # type: ignore[no-any-return]


@function(to=("", "nn.functional"), inplace=True)
def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *,
    train: bool | None = None,
) -> Tensor:  # fmt: skip
    """Dropout that keeps mean 0 and variance 1, for networks of SELU.

    >>> import monograph as mg
    >>> mg.nn.functional.alpha_dropout(mg.ones(3), 1.0, training=True).tolist()
    [0.0, 0.0, 0.0]
    """
    return _alpha(input, p, training if train is None else train, inplace, False)


@function(to=("", "nn.functional"), inplace=True)
def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False, *,
    train: bool | None = None,
) -> Tensor:  # fmt: skip
    """alpha_dropout of whole features [n, c].

    >>> import monograph as mg
    >>> mg.nn.functional.feature_alpha_dropout(mg.ones(1, 2, 3), 1.0, training=True).sum().item()
    0.0
    """
    return _alpha(input, p, training if train is None else train, inplace, True)
