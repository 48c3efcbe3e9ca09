"""Counts of values: histograms, how often integers occur, the different values.

What comes out of `unique` and `bincount` has a size that only the data knows, so those run when
they are called. A histogram without limits reads those of the data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import errors
from ..ir import build, dtypes
from ..ir.dtypes import Kind
from ..tensor import Tensor, adopt
from . import return_types
from .creation import linspace, ones, zeros
from .define import function, operator
from .inplace import with_out
from .sort import extent_of

f = build.functions
_each = range  # the builtin: functions here have a parameter of that name


@operator(to=None, method=False, smooth=False)
def counts_in_bins(x: Tensor, limits: Tensor, bins: int) -> Any:
    """How many elements fall into each of equal bins between two limits."""
    return build.call("histogram", x, limits, options=(bins,))


@function(method=True)
@with_out
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:  # noqa: A002
    """How many elements fall into each of `bins` equal bins from min to max.

    With min equal to max, the limits are those of the data.

    >>> import monograph as mg
    >>> mg.histc(mg.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"histogram_cpu" not implemented for {input.dtype.name!r}')
    if bins <= 0:
        raise errors.OperandError(f"histc: bins must be > 0, but got {bins} for dimension 0")
    low, high = float(min), float(max)
    if low == high and input.numel():
        data = input.detach().numpy()
        low, high = float(data.min()), float(data.max())
        if not np.isfinite([low, high]).all():
            raise errors.OperandError(f"histc: range of [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 1, high + 1
    if low > high:
        raise errors.OperandError("histc: max must be larger than min")
    limits = adopt(np.array([low, high], input.dtype.numpy))
    counted: Tensor = counts_in_bins(input.reshape(-1), limits, int(bins))
    return counted


# --- histograms with edges ----------------------------------------------------------------------


@operator(to=None, method=False, smooth=False)
def bins_of(x: Tensor, edges: Tensor) -> Any:
    """Which bin between neighbouring edges each x falls into; those outside get the number of bins.

    A bin holds its left edge, the last one both.
    """
    count = edges.shape[0] - 1
    first, last = (build.reindex(edges, x.shape, [k]) for k in (0, count))
    found = build.call("searchsorted", edges, x, options=(True, False)) - 1
    inside = getattr(f, "and")(x >= first, x <= last)
    return build.select(inside, f.minimum(found, count - 1), count)


def _edges(x: Tensor, bins: Any, limits: Any, name: str) -> Tensor:
    """The edges of bins along one axis: given as they are, or equal ones between two limits."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1 or bins.dtype is not x.dtype:
            raise errors.OperandError(
                f"{name}: edges must be one axis of {x.dtype.name}, got {bins.dtype.name}"
                f"{list(bins.shape)}"
            )
        return bins
    if bins <= 0:
        raise errors.OperandError(f"{name}: bins must be > 0, but got {bins}")
    if limits is None:
        data = x.detach().numpy()
        low, high = (float(data.min()), float(data.max())) if data.size else (0.0, 1.0)
    else:
        low, high = map(float, limits)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise errors.OperandError(f"{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise errors.OperandError(f"{name}: min should not exceed max, but got [{low}, {high}]")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, int(bins) + 1, dtype=x.dtype)


def _counted(points: Tensor, edges: list[Tensor], weight: Any, density: bool) -> Tensor:
    """A histogram of points [count, axes] with edges along each axis."""
    sizes = [len(each) - 1 for each in edges]
    place: Any = zeros(points.shape[0], dtype=dtypes.int64)
    outside: Any = zeros(points.shape[0], dtype=dtypes.bool_)
    for k, each in enumerate(edges):
        where = bins_of(points[:, k].contiguous(), each)
        outside = outside | (where == sizes[k])
        place = place * sizes[k] + where.clamp(max=sizes[k] - 1)
    shares = ones(points.shape[0], dtype=points.dtype) if weight is None else weight.reshape(-1)
    shares = shares.masked_fill(outside, 0)
    total: Any = zeros(math.prod(sizes), dtype=points.dtype).index_add(0, place, shares)
    made = total.reshape(sizes)
    if density:
        made = made / made.sum()
        for k, each in enumerate(edges):
            made = made / each.diff().reshape(-1, *[1] * (len(sizes) - 1 - k))
    return made  # type: ignore[no-any-return]


def _check_histogram(input: Tensor, weight: Any, shape: Any, name: str) -> None:
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f'"{name}_cpu" not implemented for {input.dtype.name!r}')
    if weight is not None and tuple(weight.shape) != tuple(shape):
        raise errors.OperandError(
            f"{name}: if weight tensor is provided it should have the shape {list(shape)}, got "
            f"{list(weight.shape)}"
        )
    if weight is not None and weight.dtype is not input.dtype:
        raise errors.OperandError(
            f"{name}: input and weight tensor must have the same dtype, got {input.dtype.name} and "
            f"{weight.dtype.name}"
        )


@function(method=True)
@with_out
def histogram(
    input: Tensor, bins: Any, *, range: Any = None, weight: Tensor | None = None,  # noqa: A002
    density: bool = False,
) -> Any:  # fmt: skip
    """(hist, bin_edges): how many elements fall between neighbouring edges, or their weights.

    `bins` is a number of equal bins, in `range` or between the limits of the data, or the edges.

    >>> import monograph as mg
    >>> mg.histogram(mg.tensor([1.0, 2.0, 1.0]), 3, range=(0.0, 3.0)).hist.tolist()
    [0.0, 2.0, 1.0]
    """
    _check_histogram(input, weight, input.shape, "histogram")
    edges = _edges(input, bins, range, "histogram")
    line = input.detach().reshape(-1, 1)
    return return_types.histogram(_counted(line, [edges], weight, density), edges)


@function
def histogramdd(
    input: Tensor, bins: Any, range: Any = None, weight: Tensor | None = None,  # noqa: A002
    density: bool = False,
) -> Any:  # fmt: skip
    """(hist, bin_edges) of points, whose coordinates lie along the last axis.

    >>> import monograph as mg
    >>> points = mg.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> mg.histogramdd(points, [2, 2]).hist.tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    if input.ndim < 2:
        raise errors.OperandError("histogramdd: input tensor should have at least 2 dimensions")
    count = input.shape[-1]
    _check_histogram(input, weight, input.shape[:-1], "histogramdd")
    given = [bins] * count if isinstance(bins, int) else list(bins)
    if len(given) != count:
        raise errors.OperandError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    points = input.detach().reshape(-1, count)
    limits = [None] * count if range is None else [range[2 * k : 2 * k + 2] for k in _each(count)]
    edges = [_edges(points[:, k], given[k], limits[k], "histogramdd") for k in _each(count)]
    return return_types.histogramdd(_counted(points, edges, weight, density), tuple(edges))


# --- occurrences --------------------------------------------------------------------------------


@function(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs, or the sum of its weights.

    >>> import monograph as mg
    >>> mg.bincount(mg.tensor([0, 1, 1, 3])).tolist()
    [1, 2, 0, 1]
    """
    if input.dtype.kind is not Kind.INT:
        raise errors.DtypeError(
            f"bincount is not defined for {input.dtype.name}, only for integers"
        )
    if input.ndim != 1:
        raise errors.OperandError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise errors.OperandError("minlength should be >= 0")
    if weights is not None and tuple(weights.shape) != tuple(input.shape):
        raise errors.OperandError("weights should be 1-d and have the same length as input")
    data = input.numpy()
    if data.size and data.min() < 0:
        raise errors.OperandError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return adopt(np.bincount(data, minlength=minlength).astype(np.int64))
    kind = np.float32 if weights.dtype is dtypes.float32 else np.float64
    given = weights.detach().numpy()
    return adopt(np.bincount(data, given, minlength).astype(kind))


@function(method=True)
def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The different values, in ascending order; along dim, the different slices.

    >>> import monograph as mg
    >>> mg.unique(mg.tensor([3, 1, 3])).tolist()
    [1, 3]
    """
    if dim is not None:
        extent_of(input, dim)
    found = np.unique(
        input.detach().numpy(), return_inverse=True, return_counts=True, axis=dim, equal_nan=False
    )
    values, inverse, counts = found
    inverse = inverse.reshape(input.shape if dim is None else -1)
    return _unique_results(values, inverse, counts, return_inverse, return_counts)


@function(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The first of each run of equal elements; along dim, of equal slices.

    >>> import monograph as mg
    >>> mg.unique_consecutive(mg.tensor([1, 1, 2, 1])).tolist()
    [1, 2, 1]
    """
    data = input.detach().numpy()
    if dim is not None:
        extent_of(input, dim)
    turned = data.reshape(-1) if dim is None or data.ndim == 0 else np.moveaxis(data, dim, 0)
    starts = np.ones(len(turned), bool)
    flat = turned.reshape(len(turned), -1) if turned.size else turned.reshape(len(turned), 0)
    starts[1:] = (flat[1:] != flat[:-1]).any(axis=1)
    values = turned[starts]
    inverse = np.cumsum(starts) - 1
    counts = np.bincount(inverse, minlength=len(values))
    if dim is None:
        inverse = inverse.reshape(data.shape)
    elif data.ndim:
        values = np.moveaxis(values, 0, dim)
    return _unique_results(values, inverse, counts, return_inverse, return_counts)


def _unique_results(values: Any, inverse: Any, counts: Any, with_: bool, counted: bool) -> Any:
    parts = [values]
    if with_:
        parts.append(inverse.astype(np.int64))
    if counted:
        parts.append(counts.astype(np.int64))
    made = [adopt(np.array(part, order="C")) for part in parts]
    return made[0] if len(made) == 1 else tuple(made)
