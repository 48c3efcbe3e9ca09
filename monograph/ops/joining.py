"""Joining tensors, and repeating, rolling and turning one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import errors
from ..gathering import gathered
from ..ir import build
from ..ir.dtypes import int32, int64
from ..ir.node import axis, coordinates
from ..tensor import Tensor, adopt
from . import shape
from .define import function, operator
from .inplace import into, with_out
from .shape import axis_of
from .views import integer, reshape, sizes_of


def _listed(tensors: Any, name: str) -> list[Tensor]:
    """The sequence that joining functions take."""
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}() takes a tuple or list of tensors, not a tensor")
    listed = list(tensors)
    for x in listed:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}() takes tensors, but got {type(x).__name__}")
    if not listed:
        raise errors.OperandError(f"{name} expects a non-empty list of tensors")
    return listed


@function(name="cat", aliases=("concat", "concatenate"))
def joined(tensors: Any, dim: int = 0, *, axis: int | None = None, out: Any = None) -> Tensor:
    """Tensors one after the other along dim.

    >>> import monograph as mg
    >>> mg.cat([mg.tensor([1, 2]), mg.tensor([3])]).tolist()
    [1, 2, 3]
    """
    listed = _listed(tensors, "cat")
    made = _beside(listed, integer(dim if axis is None else axis))
    return made if out is None else into(out, made, listed)


@function
@with_out
def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors of one shape, joined along a new axis.

    >>> import monograph as mg
    >>> mg.stack([mg.tensor([1, 2]), mg.tensor([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    listed = _listed(tensors, "stack")
    if any(x._sizes != listed[0]._sizes for x in listed):
        shapes = ", ".join(str(list(x.shape)) for x in listed)
        raise errors.OperandError(f"stack expects each tensor to be equal size, got {shapes}")
    return _beside([shape.unsqueeze(x, dim) for x in listed], dim)


def _beside(listed: list[Tensor], dim: int) -> Tensor:
    made = gathered(listed, dim)
    return shape.cat(listed, dim) if made is None else made  # type: ignore[no-any-return]


# --- at least so many axes ----------------------------------------------------------------------


def _each(tensors: tuple[Any, ...], change: Any) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple([change(x) for x in tensors[0]])
    return change(tensors[0]) if len(tensors) == 1 else tuple([change(x) for x in tensors])


def _flat(x: Tensor) -> Tensor:
    return x if x.ndim else reshape(x, 1)


def _matrix(x: Tensor) -> Tensor:
    return x if x.ndim > 1 else shape.unsqueeze(_flat(x), 0)


def _block(x: Tensor) -> Tensor:
    return x if x.ndim > 2 else shape.unsqueeze(_matrix(x), -1)


@function
def atleast_1d(*tensors: Any) -> Any:
    """Tensors without axes get one.

    >>> import monograph as mg
    >>> mg.atleast_1d(mg.tensor(2)).tolist()
    [2]
    """
    return _each(tensors, _flat)


@function
def atleast_2d(*tensors: Any) -> Any:
    """Tensors with fewer than two axes get leading ones.

    >>> import monograph as mg
    >>> mg.atleast_2d(mg.tensor([1, 2])).tolist()
    [[1, 2]]
    """
    return _each(tensors, _matrix)


@function
def atleast_3d(*tensors: Any) -> Any:
    """Tensors with fewer than three axes get more: a matrix becomes m × n × 1.

    >>> import monograph as mg
    >>> mg.atleast_3d(mg.tensor([1, 2])).shape
    Size([1, 2, 1])
    """
    return _each(tensors, _block)


@function
@with_out
def hstack(tensors: Any) -> Tensor:
    """Tensors side by side: joined along axis 1, or the only one.

    >>> import monograph as mg
    >>> mg.hstack([mg.tensor([1, 2]), mg.tensor([3])]).tolist()
    [1, 2, 3]
    """
    listed = [_flat(x) for x in _listed(tensors, "hstack")]
    return shape.cat(listed, 0 if listed[0].ndim == 1 else 1)


@function(aliases=("row_stack",))
@with_out
def vstack(tensors: Any) -> Tensor:
    """Tensors one below the other; lines are rows.

    >>> import monograph as mg
    >>> mg.vstack((mg.tensor([1, 2]), mg.tensor([3, 4]))).tolist()
    [[1, 2], [3, 4]]
    """
    return shape.cat([_matrix(x) for x in _listed(tensors, "vstack")], 0)


@function
@with_out
def dstack(tensors: Any) -> Tensor:
    """Tensors one behind the other, along axis 2.

    >>> import monograph as mg
    >>> mg.dstack([mg.tensor([1, 2]), mg.tensor([3, 4])]).tolist()
    [[[1, 3], [2, 4]]]
    """
    return shape.cat([_block(x) for x in _listed(tensors, "dstack")], 2)


@function
@with_out
def column_stack(tensors: Any) -> Tensor:
    """Tensors side by side; lines are columns.

    >>> import monograph as mg
    >>> mg.column_stack((mg.tensor([1, 2]), mg.tensor([3, 4]))).tolist()
    [[1, 3], [2, 4]]
    """
    listed = _listed(tensors, "column_stack")
    return shape.cat([x if x.ndim > 1 else reshape(x, x.numel(), 1) for x in listed], 1)


# --- repeating ----------------------------------------------------------------------------------


@operator(to=None, name="repeat", method=False)
def repeat_along(x: Tensor, repeats: tuple[int, ...]) -> Any:
    """x laid beside itself so many times along each axis."""
    lead = len(repeats) - x.ndim
    if lead < 0:
        raise ValueError(
            f"there are fewer repeats ({len(repeats)}) than the tensor has axes ({x.ndim})"
        )
    if min(repeats, default=0) < 0:
        raise ValueError(f"repeats {list(repeats)} must not be negative")
    own = (1,) * lead + tuple(x.shape)
    out = tuple([r * e for r, e in zip(repeats, own, strict=True)])
    if 0 in out:
        return build.full(out, 0, x.dtype)
    places = [axis(lead + k, out[lead + k]) % e for k, e in enumerate(x.shape)]
    return build.reindex(x, out, places)


repeat_along.operator.lies = "contiguous"


@function(to=None, method=True)
def repeat(input: Tensor, *sizes: Any, repeats: Any = None) -> Tensor:
    """x laid beside itself so many times along each axis.

    >>> import monograph as mg
    >>> mg.tensor([1, 2]).repeat(2, 2).tolist()
    [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    return repeat_along(input, sizes_of(sizes, repeats))


@function(method=True)
def tile(input: Tensor, *sizes: Any, dims: Any = None) -> Tensor:
    """`repeat`, where missing leading numbers are 1.

    >>> import monograph as mg
    >>> mg.tile(mg.tensor([[1], [2]]), (2,)).tolist()
    [[1, 1], [2, 2]]
    """
    wanted = sizes_of(sizes, dims)
    return repeat_along(input, (1,) * (input.ndim - len(wanted)) + wanted)


@operator(to=None, name="repeat_interleave", method=False)
def repeat_each(x: Tensor, times: int, dim: int) -> Any:
    """Each place along dim `times` times in a row."""
    k = axis_of(x, dim)
    out = (*x.shape[:k], x.shape[k] * times, *x.shape[k + 1 :])
    if 0 in out:
        return build.full(out, 0, x.dtype)
    where: list[Any] = list(coordinates(out))
    where[k] = where[k] // times
    return build.reindex(x, out, where)


repeat_each.operator.lies = "contiguous"


@function(method=True)
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each place along dim repeated in a row: equally often, or as often as a tensor says.

    A tensor of repeats is read. Alone, its places are what is repeated.

    >>> import monograph as mg
    >>> mg.repeat_interleave(mg.tensor([1, 2]), mg.tensor([1, 3])).tolist()
    [1, 2, 2, 2]
    """
    if repeats is None:
        return adopt(_repeated_places(input, input.shape[0] if input.ndim == 1 else -1))
    x = reshape(input, -1) if dim is None else input
    k = 0 if dim is None else axis_of(x, dim)
    if not x.ndim:
        x = reshape(x, 1)
    if not isinstance(repeats, (Tensor, list, tuple)):
        times = integer(repeats)
        if times < 0:
            raise errors.OperandError("repeat_interleave: repeats can not be negative")
        return repeat_each(x, times, k)
    counts = repeats if isinstance(repeats, Tensor) else adopt(np.asarray(repeats, np.int64))
    places = _repeated_places(counts, x.shape[k])
    if output_size is not None and output_size != len(places):
        raise errors.OperandError("repeat_interleave: the repeats do not add up to output_size")
    return x.index_select(k, adopt(places))


def _repeated_places(counts: Tensor, extent: int) -> np.ndarray:
    if counts.dtype not in (int32, int64):
        raise errors.OperandError("repeat_interleave: repeats has to be int32 or int64")
    if counts.ndim > 1 or (counts.numel() not in (1, extent)) or (extent < 0):
        raise errors.OperandError(
            "repeat_interleave: repeats must be one number, or one for each place along dim"
        )
    times = np.broadcast_to(counts._array().reshape(-1), (extent,))
    if (times < 0).any():
        raise errors.OperandError("repeat_interleave: repeats can not be negative")
    return np.repeat(np.arange(extent, dtype=np.int64), times)


# --- order --------------------------------------------------------------------------------------


@function(method=True)
def flip(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """The order of elements along dims reversed.

    >>> import monograph as mg
    >>> mg.flip(mg.tensor([1, 2, 3]), (0,)).tolist()
    [3, 2, 1]
    """
    return shape.flip_axes(input, sizes_of(axes, dims))


@function(method=True)
def fliplr(input: Tensor) -> Tensor:
    """The columns in the opposite order.

    >>> import monograph as mg
    >>> mg.fliplr(mg.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 1], [4, 3]]
    """
    if input.ndim < 2:
        raise errors.OperandError("fliplr: input must be >= 2-d")
    return shape.flip_axes(input, (1,))


@function(method=True)
def flipud(input: Tensor) -> Tensor:
    """The rows in the opposite order.

    >>> import monograph as mg
    >>> mg.flipud(mg.tensor([[1, 2], [3, 4]])).tolist()
    [[3, 4], [1, 2]]
    """
    if input.ndim < 1:
        raise errors.OperandError("flipud: input must be >= 1-d")
    return shape.flip_axes(input, (0,))


@operator(to=None, name="roll", method=False)
def roll_axes(x: Tensor, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Elements moved along axes; what leaves at the end comes in at the beginning."""
    where: list[Any] = list(coordinates(x.shape))
    for shift, d in zip(shifts, dims, strict=True):
        k = axis_of(x, d)
        if not x.ndim:
            raise IndexError(f"dimension specified as {d} but tensor has no dimensions")
        if x.ndim and x.shape[k]:
            where[k] = (where[k] + (-shift % x.shape[k])) % x.shape[k]
    return build.reindex(x, x.shape, where)


roll_axes.operator.lies = "contiguous"


@function(method=True)
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements moved along dims, and around; without dims, in the flattened tensor.

    >>> import monograph as mg
    >>> mg.roll(mg.tensor([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    steps = sizes_of((shifts,))
    axes = () if dims is None else sizes_of((dims,))
    if not steps:
        raise errors.OperandError("roll: `shifts` required")
    if not axes:
        if len(steps) > 1:
            raise errors.OperandError("roll: shifts and dimensions must align")
        return reshape(roll_axes(reshape(input, -1), steps, (0,)), *input.shape)
    if len(steps) != len(axes):
        raise errors.OperandError(
            f"roll: shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}"
        )
    return roll_axes(input, steps, axes)


@function(method=True)
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """x turned by 90 degrees k times, from the first towards the second of dims.

    >>> import monograph as mg
    >>> mg.rot90(mg.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """
    axes = sizes_of((dims,))
    if len(axes) != 2:
        raise errors.OperandError(f"rot90 expects two rotation dims, got {len(axes)}")
    if input.ndim < 2:
        raise errors.OperandError("rot90 expects a tensor of at least two axes")
    a, b = axis_of(input, axes[0]), axis_of(input, axes[1])
    if a == b:
        raise errors.OperandError(f"rot90: the rotation dims {list(axes)} must differ")
    if k % 4 == 1:
        return shape.transpose(shape.flip_axes(input, (b,)), a, b).clone()
    if k % 4 == 2:
        return shape.flip_axes(input, (a, b))
    if k % 4 == 3:
        return shape.transpose(shape.flip_axes(input, (a,)), a, b).clone()
    return input.clone()
