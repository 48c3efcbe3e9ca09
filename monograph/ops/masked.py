"""Operators that count only what a mask lets through: `mg.masked.sum` and its kin.

What is masked out is replaced by the number that does not change the result (0 for a sum, the
lowest number for a maximum), and the ordinary operator does the rest. `mask` is true where elements
count, and is broadcast to the input. Without a mask, all of them do.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.dtypes import DType
from ..tensor import Tensor
from .creation import ones
from .define import function
from .linalg.norms import vector_norm
from .reduce import axes_of
from .selection import where_
from .views import expand


def _kept(input: Tensor, mask: Tensor | None, fill: Any) -> Any:
    """The input with `fill` where the mask is false."""
    if mask is None:
        return input
    return where_(_wide(input, mask), input, fill)


def _wide(input: Tensor, mask: Tensor) -> Any:
    """The mask as booleans, in the input's shape."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "masked operators expect a mask that can be broadcast to the input, got "
            f"{list(mask.shape)} for {list(input.shape)}"
        )
    return expand(mask.to(dtypes.bool_), *input.shape)  # type: ignore[attr-defined]


def _lowest(x: Tensor) -> Any:
    return build.lowest(x.dtype)


def _highest(x: Tensor) -> Any:
    return build.highest(x.dtype)


def _summed_dtype(x: Tensor, dtype: DType | None) -> DType:
    return dtype or (x.dtype if x.dtype.is_smooth else dtypes.int64)


# --- reductions ---------------------------------------------------------------------------------


@function(name="sum", to="masked")
def sum_of(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The sum of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.sum(mg.tensor([1, 2, 4]), mask=mg.tensor([True, False, True])).item()
    5
    """
    axes = axes_of(input, dim)
    return _kept(input, mask, 0).sum(axes, keepdim, dtype=_summed_dtype(input, dtype))


@function(name="prod", to="masked")
def prod_of(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The product of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.prod(mg.tensor([3, 2, 4]), mask=mg.tensor([True, False, True])).item()
    12
    """
    result = _kept(input, mask, 1).to(_summed_dtype(input, dtype))
    for k in sorted(axes_of(input, dim), reverse=True):
        result = result.prod(k, keepdim)
    return result


@function(to="masked")
def amax(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The largest of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.amax(mg.tensor([1, 9]), mask=mg.tensor([True, False])).item()
    1
    """
    found = _kept(input, mask, _lowest(input)).amax(axes_of(input, dim), keepdim)
    return found.to(dtype or input.dtype)


@function(to="masked")
def amin(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The smallest of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.amin(mg.tensor([1, 9]), mask=mg.tensor([False, True])).item()
    9
    """
    found = _kept(input, mask, _highest(input)).amin(axes_of(input, dim), keepdim)
    return found.to(dtype or input.dtype)


@function(to="masked")
def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """Where the largest of what the mask lets through stands, in the dtype of the input.

    >>> import monograph as mg
    >>> mg.masked.argmax(mg.tensor([1, 9, 5]), mask=mg.tensor([True, False, True])).item()
    2
    """
    found = _kept(input, mask, _lowest(input)).argmax(dim, keepdim)
    return found.to(dtype or input.dtype)


@function(to="masked")
def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """Where the smallest of what the mask lets through stands, in the dtype of the input.

    >>> import monograph as mg
    >>> mg.masked.argmin(mg.tensor([1, 9, 5]), mask=mg.tensor([False, True, True])).item()
    2
    """
    found = _kept(input, mask, _highest(input)).argmin(dim, keepdim)
    return found.to(dtype or input.dtype)


def _count(input: Tensor, dim: Any, keepdim: bool, mask: Tensor | None) -> Any:
    """How many elements count."""
    every = ones(tuple(input.shape), dtype=dtypes.bool_) if mask is None else _wide(input, mask)
    return every.sum(axes_of(input, dim), keepdim)  # type: ignore[attr-defined]


@function(to="masked")
def mean(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The mean of what the mask lets through; NaN where that is nothing.

    >>> import monograph as mg
    >>> mg.masked.mean(mg.tensor([1.0, 9.0, 3.0]), mask=mg.tensor([True, False, True])).item()
    2.0
    """
    if not (dtype or input.dtype).is_smooth:
        raise ValueError(
            f"masked.mean needs floating-point or complex numbers, got {input.dtype.name}"
        )
    total = sum_of(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dim, keepdim, mask)  # type: ignore[operator]


@function(to="masked")
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The lower median of what the mask lets through, NaN aside.

    >>> import monograph as mg
    >>> mg.masked.median(mg.tensor([1.0, 9.0, 3.0]), mask=mg.tensor([True, False, True])).item()
    1.0
    """
    given = input if input.dtype.is_floating_point else input.to(dtypes.float32)
    found = _kept(given, mask, float("nan")).nanmedian(dim, keepdim).values
    if input.dtype.is_floating_point:
        return found
    if bool(found.isnan().any()):
        raise ValueError("masked.median: a row of integers is masked out as a whole")
    return found.to(dtype or input.dtype)


@function(to="masked")
def norm(
    input: Tensor, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool = False,
    dtype: DType | None = None, mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The norm of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.norm(mg.tensor([3.0, 9.0, 4.0]), mask=mg.tensor([True, False, True])).item()
    5.0
    """
    order = 2.0 if ord is None else ord
    fill = float("inf") if order == float("-inf") else 0.0
    kept = _kept(input, mask, fill)
    return vector_norm(kept, order, axes_of(input, dim), keepdim, dtype=dtype or input.dtype)


@function(to="masked")
def logsumexp(
    input: Tensor, dim: Any = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The logarithm of the sum of exponentials of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.logsumexp(mg.tensor([0.0, 9.0]), 0, mask=mg.tensor([True, False])).item()
    0.0
    """
    nothing = complex(float("-inf"), 0.0) if input.dtype.is_complex else _lowest(input)
    found = _kept(input, mask, nothing).logsumexp(axes_of(input, dim), keepdim)
    return found.to(dtype or input.dtype)


def _variance(
    input: Tensor, dim: Any, unbiased: bool | None, correction: float | None, keepdim: bool,
    dtype: DType | None, mask: Tensor | None,
) -> Any:  # fmt: skip
    if unbiased is not None and correction is not None:
        raise errors.OperandError("only one of unbiased and correction may be given")
    less = float(correction) if correction is not None else 0.0 if unbiased is False else 1.0
    kind = dtype or (input.dtype if input.dtype.is_smooth else dtypes.float32)
    wide = kind if kind.is_smooth else dtypes.float32
    count = _count(input, dim, True, mask)
    middle = sum_of(input, dim, keepdim=True, dtype=kind, mask=mask) / count  # type: ignore[operator]
    away = input - middle  # type: ignore[operator]
    total = sum_of(away * away.conj(), dim, keepdim=keepdim, dtype=wide, mask=mask)
    freedom = count.reshape(total.shape)
    if less:
        freedom = (freedom.to(wide.to_real()) - less).clamp(0.0)
    return (total / freedom).to(kind)  # type: ignore[operator]


@function(to="masked")
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *,
    correction: float | None = None, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The variance of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.var(mg.tensor([1.0, 9.0, 3.0]), mask=mg.tensor([True, False, True])).item()
    2.0
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@function(to="masked")
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, *,
    correction: float | None = None, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """The standard deviation of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.std(mg.tensor([1.0, 9.0, 9.0]), mask=mg.tensor([False, True, True])).item()
    0.0
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


# --- along an axis ------------------------------------------------------------------------------


@function(to="masked")
def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Any:
    """The running sum of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.cumsum(mg.tensor([1, 2, 4]), 0, mask=mg.tensor([True, False, True])).tolist()
    [1, 1, 5]
    """
    return _kept(input, mask, 0).cumsum(dim, dtype=dtype or input.dtype)


@function(to="masked")
def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Any:
    """The running product of what the mask lets through.

    >>> import monograph as mg
    >>> mg.masked.cumprod(mg.tensor([3, 2, 4]), 0, mask=mg.tensor([True, False, True])).tolist()
    [3, 3, 12]
    """
    return _kept(input, mask, 1).cumprod(dim, dtype=dtype or input.dtype)


@function(to="masked")
def softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Any:
    """softmax along dim of what the mask lets through; 0 elsewhere.

    >>> import monograph as mg
    >>> mg.masked.softmax(mg.tensor([1.0, 5.0, 1.0]), 0, mask=mg.tensor([1, 0, 1])).tolist()
    [0.5, 0.0, 0.5]
    """
    return _kept(input, mask, _lowest(input)).softmax(dim, dtype=dtype or input.dtype)


@function(to="masked")
def log_softmax(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Any:
    """The logarithm of `masked.softmax`.

    >>> import monograph as mg
    >>> mg.masked.log_softmax(mg.tensor([1.0, 5.0]), 0, mask=mg.tensor([1, 0])).tolist()
    [0.0, -inf]
    """
    return _kept(input, mask, _lowest(input)).log_softmax(dim, dtype=dtype or input.dtype)


@function(to="masked")
def softmin(
    input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
) -> Any:
    """softmax of -x along dim, of what the mask lets through; 0 elsewhere.

    >>> import monograph as mg
    >>> mg.masked.softmin(mg.tensor([1.0, 5.0, 1.0]), 0, mask=mg.tensor([1, 0, 1])).tolist()
    [0.5, 0.0, 0.5]
    """
    return (-_kept(input, mask, _highest(input))).softmax(dim, dtype=dtype or input.dtype)


@function(to="masked")
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """x along dim divided by its norm, of what the mask lets through; 0 elsewhere.

    >>> import monograph as mg
    >>> mg.masked.normalize(mg.tensor([3.0, 9.0]), 2.0, 0, mask=mg.tensor([1, 0])).tolist()
    [1.0, 0.0]
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _kept(input, mask, 0) / length.clamp(eps)  # type: ignore[attr-defined]


@function(to="masked")
def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Any:  # fmt: skip
    """log(exp(input) + exp(other)), where what is masked out of either adds nothing.

    >>> import monograph as mg
    >>> x, y = mg.tensor([1.0]), mg.tensor([5.0])
    >>> mg.masked.logaddexp(x, y, other_mask=mg.tensor([False])).tolist()
    [1.0]
    """
    left = _kept(input, input_mask, _lowest(input))
    right = _kept(other, other_mask, _lowest(other))
    return left.logaddexp(right).to(dtype or input.dtype)
