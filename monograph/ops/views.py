"""Functions of shape whose Python signature is freer than a definition's.

`x.reshape(2, -1)` and `x.reshape((2, -1))`, pieces of a tensor, and joining them.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..geometry import geometry_of
from ..ir.dtypes import DType
from ..tensor import Tensor
from . import math, shape
from .define import function


def sizes_of(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Integers given one by one, or as one tuple or list."""
    first = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple([int(a) for a in first])


def _fits(x: Tensor, sizes: tuple[int, ...]) -> bool:
    """Whether x in that shape can share its storage."""
    if not isinstance(x, Tensor):
        return True  # a node: it has no storage
    storage = x._storage
    if (x._view is None and storage.strides is None) or x._geometry().is_contiguous:
        return True
    meta, strides, steps = x._origin()
    step = (shape.reshape_to.operator, (shape.resolve_shape(x.numel(), sizes),))
    return geometry_of(meta, strides, (*steps, step)) is not None


@function(method=True)
def reshape(input: Tensor, *shape_: Any) -> Tensor:
    """The same elements in another shape; one extent may be -1. A view where that is possible.

    >>> import monograph as mg
    >>> mg.arange(6).reshape(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    sizes = sizes_of(shape_)
    try:
        fits = _fits(input, sizes)
    except ValueError:
        fits = True  # the call says what is wrong
    return shape.reshape_to(input, sizes) if fits else shape.reshape_copy(input, sizes)


@function(to=None, method=True)
def view(input: Tensor, *shape_: Any) -> Tensor:
    """The same storage in another shape; refused where only a copy could have it."""
    if len(shape_) == 1 and isinstance(shape_[0], DType):
        return shape.view_dtype(input, shape_[0])
    sizes = sizes_of(shape_)
    try:
        fits = _fits(input, sizes)
    except ValueError:
        fits = True
    if not fits:
        raise errors.OperandError(
            f"view size {list(sizes)} is not compatible with the tensor's size "
            f"{list(input.shape)} and stride {list(input.stride())}: at least one axis spans two "
            "that do not follow each other in memory; use reshape()"
        )
    return shape.reshape_to(input, sizes)


@function(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes start_dim … end_dim as one."""
    rank = input.ndim
    if rank == 0:
        return reshape(input, 1)
    first, last = shape.axis_of(input, start_dim), shape.axis_of(input, end_dim)
    if first > last:
        raise errors.OperandError("flatten: start_dim comes after end_dim")
    middle = 1
    for extent in input.shape[first : last + 1]:
        middle *= extent
    return reshape(input, *input.shape[:first], middle, *input.shape[last + 1 :])


@function(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one axis."""
    return reshape(input, -1)


@function(to=None, name="contiguous", method=True)
def contiguous_tensor(input: Tensor, memory_format: Any = None) -> Tensor:
    """x itself if its elements follow each other in memory, else a copy where they do."""
    if input.is_contiguous(memory_format):
        return input
    return math.clone(input)


@function(method=True)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view on the storage of x, of any size, strides and offset.

    >>> import monograph as mg
    >>> mg.arange(6).as_strided((2, 3), (1, 2)).tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    storage = input._storage
    base = object.__new__(Tensor)
    base._storage = storage
    if storage.strides is not None:
        order = sorted(range(base.ndim), key=lambda k: -storage.strides[k])
        base = shape.permute_to(base, tuple(order))
    line = shape.reshape_to(base, (-1,))
    offset = input.storage_offset() if storage_offset is None else int(storage_offset)
    return shape.strided(line, sizes_of((size,)), sizes_of((stride,)), offset)


@function(method=True)
def permute(input: Tensor, *dims: Any) -> Tensor:
    """Axes in another order."""
    return shape.permute_to(input, sizes_of(dims))


@function(to=None, method=True)
def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Axes of size 1 repeated; -1 keeps an extent."""
    return shape.expand_to(input, sizes_of(sizes))


@function(method=True)
def flip(input: Tensor, *dims: Any) -> Tensor:
    """The order of elements along dims reversed."""
    return shape.flip_axes(input, sizes_of(dims))


@function(method=True)
def split(
    tensor: Tensor, split_size_or_sections: int | list[int], dim: int = 0
) -> tuple[Tensor, ...]:
    """Consecutive pieces along dim: of one size, or of the sizes listed."""
    extent, size = tensor.shape[dim], split_size_or_sections
    if isinstance(size, int):
        sizes = [min(size, extent - start) for start in range(0, extent, size)] or [0]
    else:
        sizes = list(size)
        if sum(sizes) != extent:
            raise errors.OperandError(f"split: sizes {sizes} do not add up to {extent}")
    starts = [sum(sizes[:n]) for n in range(len(sizes))]
    return tuple([shape.narrow(tensor, dim, s, n) for s, n in zip(starts, sizes, strict=True)])


@function(method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces along dim, of equal size but for the last."""
    return split(input, max(-(-input.shape[dim] // chunks), 1), dim)


@function(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along dim."""
    pieces = split(input, 1, dim) if input.shape[dim] else ()
    return tuple([shape.squeeze(piece, dim) for piece in pieces])


@function
def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors joined along a new axis."""
    return shape.cat([shape.unsqueeze(t, dim) for t in tensors], dim)


@function(to="nn.functional")
def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """x with `value` around it; pad has (before, after) pairs from the last axis on."""
    if mode != "constant":
        raise errors.OperandError(f"pad: only mode 'constant' is supported, got {mode!r}")
    return shape.pad_constant(input, tuple(pad), float(value or 0.0))


@function(to=None, method=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """x in the shape of other."""
    return reshape(input, *other.shape)


@function(to=None, method=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """x repeated to the shape of other."""
    return expand(input, *other.shape)


@function(method=True)
def t(input: Tensor) -> Tensor:
    """A matrix with its two axes exchanged."""
    return shape.transpose(input, 0, -1)


Tensor.T = property(lambda x: permute(x, *reversed(range(x.ndim))))  # type: ignore[attr-defined]
Tensor.mT = property(lambda x: shape.transpose(x, -1, -2))  # type: ignore[attr-defined]
