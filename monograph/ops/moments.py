"""Spread and size of data: variance, covariance, norms, distances."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build
from ..ir.dtypes import DType, Kind
from ..ir.extent import real
from ..ir.node import axis
from ..tensor import Tensor
from .define import Scalar, function, operator
from .inplace import with_out
from .linalg.norms import matrix_norm, vector_norm
from .reduce import axes_of, count, mean, numpy_names, root, squared

f = build.functions
INFINITY = float("inf")


# --- variance -----------------------------------------------------------------------------------


@operator(to=None, name="var", method=False)
def variance(x: Tensor, dim: Any, correction: float, keepdim: bool) -> Any:
    """The variance over dim, from the distances to the mean.

    The mean is rounded, so the distances do not quite add up to 0; what that brings is taken off.
    """
    if not x.dtype.is_smooth:
        raise ValueError(f"variance needs a floating point or complex dtype, got {x.dtype.name}")
    axes = axes_of(x, dim)
    number = count(x, axes)
    away = _centred(x, axes)
    total = build.reduce("add", squared(away), axes, keepdim)
    if number >= 1:
        rest = build.reduce("add", away, axes, keepdim)
        total = f.maximum(total - squared(rest) * (1.0 / real(number)), 0.0)
    return total / real(max(number - correction, 0))


def _centred(x: Any, axes: tuple[int, ...]) -> Any:
    return x - mean(x, axes, True)


@variance.derivative
def _(g: Any, y: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    """Without the derivative of the mean, by which the distances add up to 0."""
    axes = axes_of(x, dim)
    if not keepdim:
        g = build.expand_dims(g, axes)
    away = _centred(x, axes)
    freedom = count(x, axes) - correction
    if freedom > 0:
        return (g * (away * (2.0 / real(freedom))),)
    return (g * build.select(f.eq(away, 0.0), float("nan"), INFINITY),)


@operator(to=None, name="std", method=False)
def deviation(x: Tensor, dim: Any, correction: float, keepdim: bool) -> Any:
    """The square root of the variance over dim."""
    return root(variance(x, dim, correction, keepdim))


def _asked(name: str, dim: Any, unbiased: bool | None, correction: Any) -> tuple[Any, float]:
    """(dim, correction) from PyTorch's three ways to say it."""
    if isinstance(dim, bool):  # var(x, False)
        dim, unbiased = None, dim
    if unbiased is not None and correction is not None:
        raise TypeError(f"{name}() takes either unbiased or correction, not both")
    if isinstance(dim, list):
        dim = tuple(dim)
    if unbiased is not None:
        return dim, int(unbiased)
    return dim, 1 if correction is None else correction


@function(method=True)
@with_out
@numpy_names
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The variance over dim, divided by n - correction; `unbiased` is a correction of 1, or none.

    >>> import monograph as mg
    >>> mg.var(mg.tensor([1.0, 2.0, 3.0])).item()
    1.0
    """
    dim, correction = _asked("var", dim, unbiased, correction)
    result: Tensor = variance(input, dim, correction, keepdim)
    return result


@function(method=True)
@with_out
@numpy_names
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation over dim: the square root of `var`.

    >>> import monograph as mg
    >>> mg.std(mg.tensor([1.0, 3.0]), correction=0).item()
    1.0
    """
    dim, correction = _asked("std", dim, unbiased, correction)
    result: Tensor = deviation(input, dim, correction, keepdim)
    return result


@function
@with_out
@numpy_names
def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(variance, mean) over dim.

    >>> import monograph as mg
    >>> [part.item() for part in mg.var_mean(mg.tensor([1.0, 3.0]))]
    [2.0, 2.0]
    """
    dim, correction = _asked("var_mean", dim, unbiased, correction)
    return variance(input, dim, correction, keepdim), mean(input, dim, keepdim)


@function
@with_out
@numpy_names
def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(standard deviation, mean) over dim.

    >>> import monograph as mg
    >>> [part.item() for part in mg.std_mean(mg.tensor([1.0, 3.0]), correction=0)]
    [1.0, 2.0]
    """
    dim, correction = _asked("std_mean", dim, unbiased, correction)
    return deviation(input, dim, correction, keepdim), mean(input, dim, keepdim)


# --- covariance ---------------------------------------------------------------------------------


@operator(to=None, name="cov", method=False)
def covariance(
    x: Tensor, fweights: Tensor | None, aweights: Tensor | None, correction: float
) -> Any:
    """Covariances of the rows, whose columns are observations with weights."""
    rows = build.reshape(x, (1, x.size)) if x.ndim < 2 else x
    number = rows.shape[1]
    weights = fweights
    if aweights is not None:
        weights = aweights if fweights is None else fweights * aweights
    if weights is None:
        total: Any = real(number)
        freedom: Any = real(max(number - correction, 0))
        weighted = rows
    else:
        total = build.reduce("add", weights, (0,))
        freedom = _freedom(weights, total, aweights, correction)
        weighted = rows * weights
    centre = build.reduce("add", weighted, (1,), True) / total
    away = rows - centre
    other = away if weights is None else away * build.cast(weights, away.dtype)
    found = build.einsum("mk", "nk", "mn", away, f.conj(other)) / freedom
    return found if rows.shape[0] != 1 else build.reshape(found, ())


def _freedom(weights: Any, total: Any, aweights: Any, correction: float) -> Any:
    """What the sum of products is divided by; never less than 0."""
    if aweights is not None and correction != 0:
        share = build.reduce("add", weights * aweights, (0,)) / total
        found = total - share * correction
    else:
        found = total - correction
    return f.maximum(found, 0)


@function(method=True)
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The covariance matrix of variables in rows, observed in columns.

    `fweights` says how often each observation counts, `aweights` how much.

    >>> import monograph as mg
    >>> mg.cov(mg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if input.ndim > 2:
        raise errors.OperandError(
            f"cov: expected input to have two or fewer dimensions but got {input.ndim}"
        )
    if input.dtype.kind is Kind.BOOL:
        raise errors.OperandError("cov: bool dtype is not supported for input")
    number = input.shape[-1] if input.ndim else 1
    for name, kind, word, weights in (
        ("fweights", Kind.INT, "integral", fweights),
        ("aweights", Kind.FLOAT, "floating point", aweights),
    ):
        if weights is not None:
            _require_weights(name, kind, word, weights, number)
    flat = [None if w is None else w.reshape(-1) for w in (fweights, aweights)]
    result: Tensor = covariance(input, *flat, correction)
    return result


def _require_weights(name: str, kind: Kind, word: str, weights: Tensor, number: int) -> None:
    """Weights are one number of a kind for each observation, read here since none is negative."""
    if weights.ndim > 1:
        raise errors.OperandError(f"cov: expected {name} to have one or fewer dimensions")
    if weights.dtype.kind is not kind:
        raise errors.OperandError(f"cov: expected {name} to have a {word} dtype")
    if weights.numel() != number:
        raise errors.OperandError(
            f"cov: expected {name} to have the same numel as there are observations: "
            f"{weights.numel()} and {number}"
        )
    values = weights.detach().numpy()
    if (values < 0).any():
        raise errors.OperandError(f"cov: {name} cannot be negative")


@operator
def corrcoef(x: Tensor) -> Any:
    """Pearson's correlation coefficients of variables in rows, observed in columns.

    >>> import monograph as mg
    >>> mg.corrcoef(mg.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    if x.ndim > 2:
        raise ValueError(f"expected input to have two or fewer dimensions but got {x.ndim}")
    found = covariance(x, None, None, 1)
    if found.ndim == 0:
        return found / found
    n = found.shape[0]
    spread = f.sqrt(f.real(_diagonal(found, n)))
    found = found / build.expand_dims(spread, [1]) / build.expand_dims(spread, [0])
    if found.dtype.is_complex:
        return f.complex(_within_one(f.real(found)), _within_one(f.imag(found)))
    return _within_one(found)


def _diagonal(matrix: Any, n: int) -> Any:
    place = axis(0, n)
    return build.reindex(matrix, (n,), (place, place))


def _within_one(x: Any) -> Any:
    """x, but not beyond -1 and 1: rounding may lead there."""
    return build.select(x > 1.0, 1.0, build.select(x < -1.0, -1.0, x))


# --- norms --------------------------------------------------------------------------------------


@function(method=True)
@with_out
@numpy_names
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:  # fmt: skip
    """The norm of order p over dim: a number, "fro" for the 2-norm, or "nuc" for matrices.

    >>> import monograph as mg
    >>> mg.norm(mg.tensor([3.0, 4.0])).item()
    5.0
    """
    if not isinstance(p, str):
        return vector_norm(input, 2 if p is None else p, dim, keepdim, dtype)
    if p == "fro" and (dim is None or isinstance(dim, int) or len(dim) <= 2):
        return vector_norm(input, 2, dim, keepdim, dtype)
    axes = tuple(range(input.ndim)) if dim is None else dim
    return matrix_norm(input, p, axes, keepdim, dtype=dtype)


@function(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other.

    >>> import monograph as mg
    >>> mg.dist(mg.tensor([3.0, 4.0]), mg.zeros(2)).item()
    5.0
    """
    result: Tensor = distance(input, other, p)
    return result


@operator(to=None, name="dist", method=False)
def distance(x: Tensor, other: Tensor, p: float) -> Any:
    """The p-norm of a difference."""
    return vector_norm(x - other, p)


distance.operator.saves = {"*": ("x", "other", "result")}


@operator(to=None, name="renorm", method=False)
def shortened(x: Tensor, p: float, dim: int, maxnorm: Scalar) -> Any:
    """Slices along dim, those longer than maxnorm scaled down to it."""
    kept = axes_of(x, dim)[0]
    others = tuple([k for k in range(x.ndim) if k != kept])
    length = vector_norm(x, p, others, True)
    limit = build.as_node(maxnorm, length.dtype)
    scale = build.select(length > limit, limit / (length + 1e-7), 1.0)
    return x * build.cast(scale, length.dtype)


@function(method=True, inplace=True)
@with_out
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """The tensor with each slice along dim whose p-norm exceeds maxnorm scaled down to it.

    >>> import monograph as mg
    >>> mg.renorm(mg.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    if p <= 0:
        raise errors.OperandError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise errors.OperandError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise errors.OperandError(
            f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions"
        )
    result: Tensor = shortened(input, p, dim, maxnorm)
    return result
