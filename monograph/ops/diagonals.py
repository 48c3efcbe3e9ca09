"""Diagonals and triangles of matrices, and writing a part of a tensor into a copy of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..ir import build, dtypes, index
from ..ir.dtypes import DType
from ..ir.index import Condition
from ..ir.node import axis
from ..tensor import Tensor, adopt
from . import math, shape
from .define import ANYWHERE, Scalar, function, operator
from .inplace import over, with_out
from .shape import axis_of, diagonal, write_view
from .views import integer, sizes_of

# --- triangles ----------------------------------------------------------------------------------


def _check_matrix(x: Any) -> None:
    if x.ndim < 2:
        raise ValueError(f"expected at least two axes, got {list(x.shape)}")


@operator(inplace=ANYWHERE)
def tril(x: Tensor, diagonal: int = 0) -> Any:
    """x with zeros above the diagonal.

    >>> import monograph as mg
    >>> mg.tril(mg.ones(2, 2)).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    _check_matrix(x)
    rows, columns = build.coordinate(x.shape, x.ndim - 2), build.coordinate(x.shape, x.ndim - 1)
    return build.select(columns - rows <= diagonal, x, build.const(0, x.dtype))


@operator(inplace=ANYWHERE)
def triu(x: Tensor, diagonal: int = 0) -> Any:
    """x with zeros below the diagonal.

    >>> import monograph as mg
    >>> mg.triu(mg.ones(2, 2)).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    _check_matrix(x)
    rows, columns = build.coordinate(x.shape, x.ndim - 2), build.coordinate(x.shape, x.ndim - 1)
    return build.select(columns - rows >= diagonal, x, build.const(0, x.dtype))


def _triangle(upper: bool, row: int, col: int, offset: int, dtype: DType | None) -> Tensor:
    if row < 0 or col < 0:
        raise errors.OperandError("row and col must be non-negative")
    inside = np.tri(row, col, offset - 1 if upper else offset, bool)
    places = np.stack(np.nonzero(~inside if upper else inside))
    chosen = dtype or dtypes.int64
    if chosen not in (dtypes.int32, dtypes.int64):
        raise errors.OperandError(f"indices are int32 or int64, not {chosen.name}")
    return adopt(places.astype(chosen.numpy))


@function
def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The places on and below a diagonal of a matrix: a row of rows and a row of columns.

    >>> import monograph as mg
    >>> mg.tril_indices(2, 2).tolist()
    [[0, 1, 1], [0, 0, 1]]
    """
    return _triangle(False, row, col, offset, dtype)


@function
def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: DType | None = None, device: Any = None,
    layout: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The places on and above a diagonal of a matrix: a row of rows and a row of columns.

    >>> import monograph as mg
    >>> mg.triu_indices(2, 2).tolist()
    [[0, 0, 1], [0, 1, 1]]
    """
    return _triangle(True, row, col, offset, dtype)


# --- diagonals ----------------------------------------------------------------------------------


@operator
def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices with the last axis of x on a diagonal and zeros elsewhere.

    >>> import monograph as mg
    >>> mg.diag_embed(mg.tensor([1, 2])).tolist()
    [[1, 0], [0, 2]]
    """
    rank = x.ndim + 1
    rows, columns = axis_of(x, dim1, 1), axis_of(x, dim2, 1)
    if rank < 2:
        raise IndexError("diag_embed needs a tensor with at least one axis")
    if rows == columns:
        raise ValueError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = x.shape[-1] + abs(offset)
    kept = iter(x.shape[:-1])
    out = tuple([side if k in (rows, columns) else next(kept) for k in range(rank)])
    where: list[Any] = [axis(k, out[k]) for k in range(rank) if k not in (rows, columns)]
    place = axis(columns, side) - max(offset, 0)
    on_it = Condition(axis(columns, side) - axis(rows, side) - offset, True)
    return build.reindex(x, out, [*where, place], (on_it, *index.within(place, x.shape[-1])))


@function(method=True)
@with_out
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix; of a line, the matrix that has it as its diagonal.

    >>> import monograph as mg
    >>> mg.diag(mg.tensor([[1, 2], [3, 4]]), 1).tolist()
    [2]
    """
    if input.ndim not in (1, 2):
        raise errors.OperandError(f"diag(): expected a 1D or 2D tensor, got {input.ndim}D")
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    return math.clone(shape.diagonal(input, diagonal))


@function(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements of x on a diagonal.

    >>> import monograph as mg
    >>> mg.diagflat(mg.tensor([[1, 2]])).tolist()
    [[1, 0], [0, 2]]
    """
    return diag_embed(input.reshape(-1), offset)


@operator
def trace(x: Tensor) -> Any:
    """The sum of the diagonal of a matrix.

    >>> import monograph as mg
    >>> mg.trace(mg.tensor([[1, 2], [3, 4]])).item()
    5
    """
    if x.ndim != 2:
        raise ValueError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    target = x.dtype if x.dtype.is_smooth else dtypes.int64
    return build.reduce("add", build.cast(diagonal(x), target), (0,))


# --- a part written into a copy -----------------------------------------------------------------


def written(input: Tensor, src: Tensor, steps: tuple[Any, ...], part: Tensor, name: str) -> Tensor:
    """A copy of x with `src` in the place of a part, which view operators lead to."""
    if tuple(src.shape) != tuple(part.shape):
        raise errors.OperandError(
            f"{name}: expected src to have a size equal to the part of self, src size = "
            f"{list(src.shape)}, part size = {list(part.shape)}"
        )
    made: Tensor = write_view(input, src, steps)
    return made


@function(method=True)
def diagonal_scatter(
    input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Tensor:
    """A copy of x with src on a diagonal.

    >>> import monograph as mg
    >>> mg.zeros(2, 2).diagonal_scatter(mg.ones(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    steps = ((diagonal.operator, (offset, dim1, dim2)),)
    return written(input, src, steps, diagonal(input, offset, dim1, dim2), "diagonal_scatter")


@function(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of x with src at one place along dim.

    >>> import monograph as mg
    >>> mg.zeros(2, 2).select_scatter(mg.ones(2), 1, 0).tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    place = integer(index)
    steps = ((shape.select.operator, (dim, place)),)
    return written(input, src, steps, shape.select(input, dim, place), "select_scatter")


@function(method=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Tensor:  # fmt: skip
    """A copy of x with src at every step-th place along dim from start to before end.

    >>> import monograph as mg
    >>> mg.zeros(4).slice_scatter(mg.ones(2), start=1, step=2).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    span = (dim, start, end, step)
    part = shape.slice_along(input, *span)
    steps = ((shape.slice_along.operator, span),)
    return written(input, src, steps, part, "slice_scatter")


@function(method=True)
def as_strided_scatter(
    input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None
) -> Tensor:
    """A copy of x with src at the places that `as_strided` would show.

    >>> import monograph as mg
    >>> mg.zeros(4).as_strided_scatter(mg.ones(2), (2,), (2,)).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """
    sizes, strides = sizes_of((size,)), sizes_of((stride,))
    span = (sizes, strides, 0 if storage_offset is None else integer(storage_offset))
    part = shape.strided(input.reshape(-1), *span)
    steps = ((shape.reshape_to.operator, ((-1,),)), (shape.strided.operator, span))
    return written(input, src, steps, part, "as_strided_scatter")


@operator(to=None, method=False, name="fill_diagonal")
def with_diagonal(x: Tensor, fill_value: Scalar, wrap: bool) -> Any:
    """x with one number where all coordinates are equal; with `wrap` again below a tall matrix."""
    first = build.coordinate(x.shape, 0)
    if wrap and x.ndim == 2:
        first = build.functions.remainder(first, x.shape[1] + 1)
    inside: Any = None
    for k in range(1, x.ndim):
        same = build.functions.eq(first, build.coordinate(x.shape, k))
        inside = same if inside is None else build.elementwise("and", inside, same)
    return build.select(inside, build.as_node(fill_value, x.dtype), x)


def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one number on the diagonal; with `wrap` again below the square of a tall matrix.

    >>> import monograph as mg
    >>> mg.zeros(2, 2).fill_diagonal_(3).tolist()
    [[3.0, 0.0], [0.0, 3.0]]
    """
    if x.ndim < 2:
        raise errors.OperandError("fill_diagonal_: dimensions must larger than 1")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise errors.OperandError(
            f"fill_diagonal_: all dimensions of input must be of equal length, got {list(x.shape)}"
        )
    return over(x, with_diagonal(x, fill_value, bool(wrap)), "fill_diagonal", True)


Tensor.fill_diagonal_ = fill_diagonal_  # type: ignore[attr-defined]
