"""Grids, products and combinations of lines, powers of a line, and slopes on a grid."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .. import errors
from ..ir import dtypes
from ..tensor import Tensor, adopt
from . import math, shape
from .creation import full
from .define import function
from .shape import axis_of
from .views import expand, integer, reshape, sizes_of


def _lines(tensors: tuple[Any, ...]) -> list[Tensor]:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    return list(tensors)


@function
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of the grid over several lines: a tensor for each line.

    >>> import monograph as mg
    >>> [g.tolist() for g in mg.meshgrid(mg.tensor([1, 2]), mg.tensor([3, 4]), indexing="ij")]
    [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
    """
    lines = _lines(tensors)
    if not lines:
        raise errors.OperandError("meshgrid expects a non-empty list of tensors")
    if indexing not in (None, "ij", "xy"):
        raise errors.OperandError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    if any(x.ndim > 1 for x in lines):
        raise errors.OperandError("meshgrid: expected scalars or 1D tensors")
    if any(x.dtype is not lines[0].dtype for x in lines):
        raise errors.OperandError("meshgrid expects all tensors to have the same dtype")
    swapped = indexing == "xy" and len(lines) > 1
    if swapped:
        lines[0], lines[1] = lines[1], lines[0]
    sizes = [x.numel() for x in lines]
    grids = []
    for k, x in enumerate(lines):
        column = reshape(x, *[-1 if n == k else 1 for n in range(len(lines))])
        grids.append(expand(column, *sizes))
    if swapped:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@function
def cartesian_prod(*tensors: Any) -> Tensor:
    """Every choice of one element from each line, a row each.

    >>> import monograph as mg
    >>> mg.cartesian_prod(mg.tensor([1, 2]), mg.tensor([3, 4])).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    lines = _lines(tensors)
    if any(x.ndim != 1 for x in lines):
        raise errors.OperandError("cartesian_prod: expected 1D vectors")
    if len(lines) == 1:
        return lines[0]
    grids = [reshape(g, -1) for g in meshgrid(*lines, indexing="ij")]
    return shape.cat([shape.unsqueeze(g, 1) for g in grids], 1)


@function
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a line, in its order, a row each.

    >>> import monograph as mg
    >>> mg.combinations(mg.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """
    if input.ndim != 1:
        raise errors.OperandError("combinations: expected a 1D vector")
    if r < 0:
        raise errors.OperandError("combinations: expected a non-negative number")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    if r == 0:
        return full((0,), 0, dtype=input.dtype)
    rows = list(choose(range(input.shape[0]), r))
    places = np.asarray(rows, np.int64).reshape(-1)
    return reshape(input.index_select(0, adopt(places)), len(rows), r)


Tensor.combinations = combinations  # type: ignore[attr-defined]


@function
def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given ones on its diagonal and zeros elsewhere.

    >>> import monograph as mg
    >>> mg.block_diag(mg.tensor([[1, 2]]), mg.tensor(3)).tolist()
    [[1, 2, 0], [0, 0, 3]]
    """
    from .padding import pad_constant

    if any(x.ndim > 2 for x in tensors):
        raise errors.OperandError("block_diag: input tensors must have 2 or fewer dimensions")
    blocks = [reshape(x, 1, -1) if x.ndim < 2 else x for x in tensors]
    if not blocks:
        return full((1, 0), 0.0)
    width = sum([b.shape[1] for b in blocks])
    rows, start = [], 0
    for block in blocks:
        rows.append(pad_constant(block, (start, width - start - block.shape[1])))
        start += block.shape[1]
    return shape.cat(rows, 0)


@function
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:  # noqa: N803
    """The powers of a line's elements, a row each, the highest first.

    >>> import monograph as mg
    >>> mg.vander(mg.tensor([2, 3]), 3).tolist()
    [[4, 2, 1], [9, 3, 1]]
    """
    if x.ndim != 1:
        raise errors.OperandError("vander: x must be a one-dimensional tensor")
    count = x.shape[0] if N is None else integer(N)
    if count < 0:
        raise errors.OperandError("vander: N must be non-negative")
    wide = x.dtype if x.dtype.is_smooth else dtypes.int64
    if not count:
        return full((x.shape[0], 0), 0, dtype=x.dtype)
    powers = [full((x.shape[0],), 1, dtype=wide)]
    line = x.to(wide)
    for _ in range(count - 1):
        powers.append(math.mul(powers[-1], line))
    made = shape.cat([shape.unsqueeze(p, 1) for p in powers], 1)
    return made if increasing else shape.flip_axes(made, (1,))


@function
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:  # noqa: A002
    """The coordinates of places that count through a tensor of that shape.

    >>> import monograph as mg
    >>> [c.tolist() for c in mg.unravel_index(mg.tensor([5]), (2, 3))]
    [[1], [2]]
    """
    if not isinstance(indices, Tensor):
        raise TypeError(f"unravel_index: expected a tensor, got {type(indices).__name__}")
    if indices.dtype.kind != dtypes.Kind.INT:
        raise TypeError(f"unravel_index: expected integer indices, but got dtype={indices.dtype!r}")
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(f"unravel_index: shape must be int or sequence of ints, got {shape!r}")
    try:
        sizes = sizes_of((shape,))
    except TypeError:
        raise TypeError(f"unravel_index: shape must hold integers, got {shape!r}") from None
    if min(sizes, default=0) < 0:
        raise ValueError(f"unravel_index: sizes must not be negative, got {list(sizes)}")
    made, step, places = [], 1, indices.to(dtypes.int64)
    for extent in reversed(sizes):
        made.append(math.remainder(math.floor_divide(places, step), extent))
        step *= extent
    return tuple(reversed(made))


# --- slopes -------------------------------------------------------------------------------------


@function
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The slope of values on a grid along each axis, from neighbours on both sides.

    `spacing` is one distance, a distance for each axis, or the coordinates along each axis.

    >>> import monograph as mg
    >>> mg.gradient(mg.tensor([1.0, 4.0, 9.0]))[0].tolist()
    [3.0, 4.0, 5.0]
    """
    if edge_order not in (1, 2):
        raise errors.OperandError("gradient only supports edge_order=1 and edge_order=2")
    if input.dtype is dtypes.uint8:
        raise errors.OperandError("gradient does not support uint8 tensors")
    axes = range(input.ndim) if dim is None else sizes_of((dim,))
    axes = [axis_of(input, d) for d in axes]
    if len(set(axes)) != len(axes):
        raise errors.OperandError("gradient: dim names an axis twice")
    if spacing is None:
        spacing = 1
    if isinstance(spacing, (tuple, list)):
        distances = list(spacing)
        if len(distances) != len(axes):
            raise errors.OperandError(
                f"gradient: {len(distances)} spacings are given for {len(axes)} axes"
            )
    else:
        distances = [spacing] * len(axes)
    for k in axes:
        if input.shape[k] < edge_order + 1:
            raise errors.OperandError("gradient expected each dimension size to be at least "
                                      "edge_order+1")  # fmt: skip
    return tuple([_slope(input, k, h, edge_order) for k, h in zip(axes, distances, strict=True)])


def _slope(x: Tensor, k: int, spacing: Any, edge_order: int) -> Tensor:
    """By second order inside, of the given order at the two edges."""
    extent = x.shape[k]

    def at(start: int, length: int) -> Any:
        return shape.narrow(x, k, start, length)

    h = _steps(x, k, spacing)
    if h is None:
        step = spacing
        inner = (at(2, extent - 2) - at(0, extent - 2)) / (2.0 * step) if extent > 2 else None
        edge = lambda a, b: (at(b, 1) - at(a, 1)) / step  # noqa: E731
        first, last = edge(0, 1), edge(extent - 2, extent - 1)
        if edge_order == 2:
            first = (-1.5 * at(0, 1) + 2.0 * at(1, 1) - 0.5 * at(2, 1)) / step
            n = extent - 1
            last = (1.5 * at(n, 1) - 2.0 * at(n - 1, 1) + 0.5 * at(n - 2, 1)) / step
    else:
        inner, first, last = _uneven(x, k, h, edge_order)
    parts = [first, *([] if inner is None else [inner]), last]
    return shape.cat(parts, k)


def _steps(x: Tensor, k: int, spacing: Any) -> Tensor | None:
    """The distances along axis k, in its place; None where they are all equal."""
    if not isinstance(spacing, Tensor) or spacing.ndim == 0:
        return None
    if spacing.ndim != 1 or spacing.shape[0] != x.shape[k]:
        raise errors.OperandError(
            f"gradient: expected {x.shape[k]} coordinates along axis {k}, got {list(spacing.shape)}"
        )
    apart = shape.narrow(spacing, 0, 1, x.shape[k] - 1) - shape.narrow(
        spacing, 0, 0, x.shape[k] - 1
    )
    made: Tensor = reshape(apart, *[-1 if n == k else 1 for n in range(x.ndim)])
    return made


def _uneven(x: Tensor, k: int, h: Tensor, edge_order: int) -> tuple[Any, Any, Any]:
    extent = x.shape[k]

    def at(start: int, length: int) -> Any:
        return shape.narrow(x, k, start, length)

    def step(start: int, length: int) -> Any:
        return shape.narrow(h, k, start, length)

    inner = None
    if extent > 2:
        a, b = step(0, extent - 2), step(1, extent - 2)
        inner = (
            at(0, extent - 2) * (-b / (a * (a + b)))
            + at(1, extent - 2) * ((b - a) / (a * b))
            + at(2, extent - 2) * (a / (b * (a + b)))
        )
    if edge_order == 1:
        first = (at(1, 1) - at(0, 1)) / step(0, 1)
        last = (at(extent - 1, 1) - at(extent - 2, 1)) / step(extent - 2, 1)
        return inner, first, last
    a, b = step(0, 1), step(1, 1)
    first = (
        at(0, 1) * (-(2.0 * a + b) / (a * (a + b)))
        + at(1, 1) * ((a + b) / (a * b))
        - at(2, 1) * (a / (b * (a + b)))
    )
    a, b, n = step(extent - 3, 1), step(extent - 2, 1), extent - 1
    last = (
        at(n - 2, 1) * (b / (a * (a + b)))
        - at(n - 1, 1) * ((a + b) / (a * b))
        + at(n, 1) * ((2.0 * b + a) / (b * (a + b)))
    )
    return inner, first, last
