"""Order: sorting, ranks and quantiles, search in sorted sequences.

NaN counts as the greatest value, and order among equal values is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..ir import build, dtypes
from ..ir.dtypes import Kind
from ..tensor import Tensor, adopt
from . import return_types
from .axis import first_of_last, take_last, to_last
from .define import function, operator
from .inplace import with_out

f = build.functions


# --- sorting ------------------------------------------------------------------------------------


@operator(to=None, method=False)
def ordered(x: Tensor, dim: int, descending: bool) -> Any:
    """(values, indices) in the order along dim."""
    rows, back = to_last(x, dim)
    where = build.call("argsort", rows, options=(descending,))
    return back(take_last(rows, where)), back(where)


ordered.operator.saves = {"x": ("order",)}  # the indices; not what was sorted
ordered.operator.lies = "operand"


@operator(to=None, method=False)
def first_in_order(x: Tensor, k: int, dim: int, descending: bool) -> Any:
    """(values, indices) of the first k in the order along dim."""
    rows, back = to_last(x, dim)
    where = build.call("top_positions", rows, options=(k, descending))
    return back(take_last(rows, where)), back(where)


first_in_order.operator.saves = {"x": ("order",)}


@function(method=True)
@with_out
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Any:
    """(values, indices) in ascending or descending order along dim; always stable.

    >>> import monograph as mg
    >>> mg.sort(mg.tensor([3.0, 1.0, 2.0])).values.tolist()
    [1.0, 2.0, 3.0]
    """
    return return_types.sort(ordered(input, dim, bool(descending)))


@function(method=True)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort along dim.

    >>> import monograph as mg
    >>> mg.argsort(mg.tensor([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    return sort(input, dim, descending).indices


@function(method=True)
@with_out
def msort(input: Tensor) -> Tensor:
    """x in ascending order along its first axis.

    >>> import monograph as mg
    >>> mg.msort(mg.tensor([[3], [1]])).tolist()
    [[1], [3]]
    """
    return sort(input, 0).values


def extent_of(x: Tensor, dim: int) -> int:
    if x.ndim and not -x.ndim <= dim < x.ndim:
        raise errors.IndexOutOfRange(
            f"Dimension out of range (expected to be in range of [{-x.ndim}, {x.ndim - 1}], "
            f"but got {dim})"
        )
    return x.shape[dim] if x.ndim else 1


@function(method=True)
@with_out
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """(values, indices) of the k largest or smallest elements along dim, in order.

    >>> import monograph as mg
    >>> mg.topk(mg.tensor([1.0, 3.0, 2.0]), 2).indices.tolist()
    [1, 2]
    """
    if not 0 <= k <= extent_of(input, dim):
        raise errors.OperandError("selected index k out of range")
    if input.ndim == 0 and k == 0:
        raise errors.OperandError("topk: a 0-d tensor has one element to choose")
    return return_types.topk(first_in_order(input, int(k), dim, bool(largest)))


@operator(to=None, method=False)
def kth_smallest(x: Tensor, k: int, dim: int, keepdim: bool) -> Any:
    """(value, index) of rank k, from 0, along dim."""
    rows, back = to_last(x, dim)
    where = first_of_last(build.call("argsort", rows, options=(False,)), k, 1)
    return _chosen(x, rows, back, where, keepdim)


kth_smallest.operator.saves = {"x": ("order",)}


def _chosen(x: Any, rows: Any, back: Any, where: Any, keepdim: bool) -> tuple[Any, Any]:
    """(values, indices) at one place of each row; `where` has a last axis of size 1."""
    values = take_last(rows, where)
    if keepdim or x.ndim == 0:
        return back(values), back(where)
    shape = rows.shape[:-1]
    return build.reshape(values, shape), build.reshape(where, shape)


@function(method=True)
@with_out(apart=True)
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the k-th smallest element along dim, counted from 1.

    >>> import monograph as mg
    >>> mg.kthvalue(mg.tensor([3.0, 1.0, 2.0]), 2).values.item()
    2.0
    """
    if not 1 <= k <= extent_of(input, dim):
        raise errors.OperandError(
            f"kthvalue(): selected number k out of range for dimension {dim % max(input.ndim, 1)}"
        )
    return return_types.kthvalue(kth_smallest(input, k - 1, dim, keepdim))


# --- medians, modes, quantiles ------------------------------------------------------------------


def _nan_count(rows: Any) -> Any:
    """How many elements of each row are NaN, with a last axis of size 1."""
    return build.reduce("add", build.cast(f.ne(rows, rows), dtypes.int64), (rows.ndim - 1,), True)


@operator(to=None, method=False)
def middle(x: Tensor, dim: int, keepdim: bool, ignore_nan: bool) -> Any:
    """(value, index) of the lower median; NaN where there is one, unless it is ignored."""
    rows, back = to_last(x, dim)
    length = rows.shape[-1]
    order = build.call("argsort", rows, options=(False,))
    if rows.dtype.kind is not Kind.FLOAT:
        where = first_of_last(order, (length - 1) // 2, 1)
        return _chosen(x, rows, back, where, keepdim)
    bad = _nan_count(rows)
    if ignore_nan:
        good = build.select(bad < length, length - bad - 1, 0)
        rank = f.floordiv(good, build.const(2, dtypes.int64))
    else:
        rank = build.select(bad > 0, length - bad, (length - 1) // 2)
    where = take_last(order, build.cast(rank, dtypes.int64))
    return _chosen(x, rows, back, where, keepdim)


@operator(to=None, method=False, name="median")
def middle_of_all(x: Tensor, ignore_nan: bool) -> Any:
    """The lower median of all elements; equal ones share the derivative."""
    value, _ = middle(build.reshape(x, (x.size,)), 0, False, ignore_nan)
    return value


middle_of_all.operator.selects = True


@middle_of_all.derivative
def _(g: Any, y: Any, x: Any, ignore_nan: bool) -> Any:
    same = f.eq(x, y)
    both = getattr(f, "and")(f.ne(x, x), f.ne(y, y))  # NaN, where that is the median
    ties = build.cast(getattr(f, "or")(same, both), x.dtype)
    return (g * ties / build.reduce("add", ties, tuple(range(x.ndim)), False),)


middle_of_all.operator.saves = {"x": ("x", "result")}


middle.operator.saves = {"x": ("order",)}


def _median(input: Tensor, dim: Any, keepdim: bool, ignore_nan: bool, name: str) -> Any:
    if dim is None:
        if input.numel() == 0:
            return _no_middle(input)
        return middle_of_all(input, ignore_nan)
    if extent_of(input, dim) == 0:
        raise errors.IndexOutOfRange(
            f"{name}(): Expected reduction dim {dim} to have non-zero size."
        )
    return getattr(return_types, name)(middle(input, dim, keepdim, ignore_nan))


def _no_middle(x: Tensor) -> Tensor:
    """PyTorch's answer for no elements: NaN, or the lowest integer."""
    low = float("nan") if x.dtype.is_floating_point else build.lowest(x.dtype)
    return adopt(np.asarray(low, x.dtype.numpy))


@function(method=True)
@with_out
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of all elements, or (values, indices) of the medians along dim.

    >>> import monograph as mg
    >>> mg.median(mg.tensor([4.0, 1.0, 3.0, 2.0])).item()
    2.0
    """
    return _median(input, dim, keepdim, False, "median")


@function(method=True)
@with_out
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The lower median of all that is not NaN.

    >>> import monograph as mg
    >>> mg.nanmedian(mg.tensor([1.0, float("nan"), 3.0])).item()
    1.0
    """
    return _median(input, dim, keepdim, True, "nanmedian")


@operator(to=None, method=False)
def most_frequent(x: Tensor, dim: int, keepdim: bool) -> Any:
    """(value, index) of the smallest of the most frequent values along dim."""
    rows, back = to_last(x, dim)
    where = build.expand_dims(build.call("mode_position", rows), [rows.ndim - 1])
    return _chosen(x, rows, back, where, keepdim)


most_frequent.operator.selects = True


@function(method=True)
@with_out
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the value that occurs most along dim, where it stands last.

    >>> import monograph as mg
    >>> mg.mode(mg.tensor([1, 2, 2, 3])).values.item()
    2
    """
    if extent_of(input, dim) == 0:
        raise errors.IndexOutOfRange(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    return return_types.mode(most_frequent(input, dim, keepdim))


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@operator(to=None, method=False)
def quantiles(x: Tensor, q: Tensor, interpolation: str, ignore_nan: bool) -> Any:
    """out[…, i] = the q[i]-quantile of a row."""
    length = x.shape[-1]
    values = take_last(x, build.call("argsort", x, options=(False,)))
    bad = _nan_count(x)
    shape = (*x.shape[:-1], q.shape[0])
    if ignore_nan:
        last = build.cast(build.select(bad < length, length - bad - 1, 0), x.dtype)
        rank = build.broadcast_to(q, shape) * build.broadcast_to(last, shape)
    else:
        end = float(length - 1)
        rank = build.select(bad > 0, build.const(end, x.dtype), q * end)
    below, above = f.floor(rank), f.ceil(rank)
    if interpolation == "lower":
        above = below
    elif interpolation == "higher":
        below = above
    elif interpolation == "nearest":
        below = above = f.round(rank)
    low = take_last(values, build.cast(below, dtypes.int64))
    if interpolation not in ("linear", "midpoint"):
        return low
    high = take_last(values, build.cast(above, dtypes.int64))
    weight = rank - build.apply("detach", below) if interpolation == "linear" else 0.5
    near_low = low + (high - low) * weight
    if interpolation == "midpoint":
        return high - (high - low) * 0.5
    return build.select(weight < 0.5, near_low, high - (high - low) * (1.0 - weight))


def _quantile(
    input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, ignore_nan: bool, name: str
) -> Any:
    if input.numel() == 0:
        raise errors.OperandError(f"{name}() input tensor must be non-empty")
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise errors.OperandError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise errors.OperandError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    at = q if isinstance(q, Tensor) else adopt(np.asarray(q, input.dtype.numpy))
    if at.ndim > 1:
        raise errors.OperandError(f"{name}() q must be a scalar or 1D tensor")
    if at.dtype is not input.dtype:
        raise errors.OperandError(f"{name}() q tensor must be same dtype as the input tensor")
    known = at.detach().numpy()
    if not ((known >= 0) & (known <= 1)).all():
        raise errors.OperandError(f"{name}() q values must be in the range [0, 1]")
    if dim is not None:
        extent_of(input, dim)
    if dim is None or input.ndim == 0:
        rows = input.reshape(-1)
    else:
        others = [n for n in range(input.ndim) if n != dim % input.ndim]
        rows = input.permute(*others, dim % input.ndim)
    result = quantiles(rows, at.reshape(-1), interpolation, ignore_nan)
    if keepdim and input.ndim:
        kept = [1] * input.ndim if dim is None else list(input.shape)
        if dim is not None:
            kept[dim] = 1
        result = result.reshape(*kept, result.shape[-1])
    if at.ndim == 0:
        return result.squeeze(-1).clone()
    return result.permute(result.ndim - 1, *range(result.ndim - 1)).clone()


@function(method=True)
@with_out
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Any:  # fmt: skip
    """The q-quantiles along dim, or of all elements; q is a number or a vector.

    >>> import monograph as mg
    >>> mg.quantile(mg.tensor([0.0, 1.0, 4.0]), 0.75).item()
    2.5
    """
    return _quantile(input, q, dim, keepdim, interpolation, False, "quantile")


@function(method=True)
@with_out
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *,
    interpolation: str = "linear",
) -> Any:  # fmt: skip
    """The q-quantiles of all that is not NaN.

    >>> import monograph as mg
    >>> mg.nanquantile(mg.tensor([0.0, float("nan"), 4.0]), 0.5).item()
    2.0
    """
    return _quantile(input, q, dim, keepdim, interpolation, True, "nanquantile")


# --- search -------------------------------------------------------------------------------------


@operator(to=None, method=False, smooth=False)
def places_among(bounds: Tensor, x: Tensor, right: bool, int32: bool) -> Any:
    """Where each x would be put among the ascending bounds."""
    return build.call("searchsorted", bounds, x, options=(right, int32))


@function
@with_out
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where each value would be put into a sorted sequence so that it stays sorted.

    >>> import monograph as mg
    >>> mg.searchsorted(mg.tensor([1.0, 3.0, 5.0]), mg.tensor([3.0, 6.0])).tolist()
    [1, 3]
    """
    if side not in (None, "left", "right"):
        raise errors.OperandError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise errors.OperandError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left "
            "while right was True"
        )
    values = input if isinstance(input, Tensor) else _like(sorted_sequence, input)
    bounds = sorted_sequence
    if bounds.dtype is not values.dtype:
        raise errors.OperandError(
            "torch.searchsorted(): boundary tensor and input value tensor should have same dtype, "
            f"but got boundary dtype {bounds.dtype.name} and value dtype {values.dtype.name}"
        )
    same_rows = tuple(bounds.shape[:-1]) == tuple(values.shape[:-1])
    if bounds.ndim == 0 or (bounds.ndim > 1 and not (values.ndim == bounds.ndim and same_rows)):
        raise errors.OperandError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            f"dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(bounds.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        bounds = bounds.gather(-1, sorter)
    found: Tensor = places_among(bounds, values, right or side == "right", out_int32)
    return found


def _like(bounds: Tensor, number: Any) -> Tensor:
    """A number in the dtype of the bounds; a fraction among integers makes floats of neither."""
    return adopt(np.asarray(number, bounds.dtype.numpy))


@function
@with_out
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """Which of the buckets between ascending boundaries each value falls into.

    >>> import monograph as mg
    >>> mg.bucketize(mg.tensor([0.5, 2.0]), mg.tensor([1.0, 2.0, 3.0])).tolist()
    [0, 1]
    """
    if boundaries.ndim != 1:
        raise errors.OperandError(
            f"bucketize: boundaries must have one axis, got {list(boundaries.shape)}"
        )
    if isinstance(input, Tensor) and input.dtype is not boundaries.dtype:
        common = dtypes.promote(input.dtype, boundaries.dtype)
        input, boundaries = input.to(common), boundaries.to(common)
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)
