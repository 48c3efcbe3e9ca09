"""Views in PyTorch's spelling: `x.reshape(2, -1)`, `x.movedim(0, 2)`, `x.T`, pieces of a tensor.

All of them share the storage of what they are taken from; `reshape` and what is made of it copies
where the elements do not lie so that they could.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .. import errors
from ..geometry import geometry_of
from ..ir import build
from ..ir.dtypes import DType, named
from ..record import call_view
from ..tensor import Size, Tensor, from_numpy
from .complex import joined_pairs, parted, read_through
from .define import function
from .shape import (
    axis_of,
    expand_to,
    permute_to,
    reshape_copy,
    reshape_to,
    resolve_shape,
    strided,
    transpose,
    write_view,
)

_RESHAPE = reshape_to.operator  # called as `reshape_to` calls it, without one more call
_reshaped: Callable[..., Tensor] = call_view


def integer(value: Any) -> int:
    """A size, an axis or a place: anything that Python takes for an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"expected an integer, got {type(value).__name__}") from None


def sizes_of(args: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Integers given one by one, as one tuple or list, or by name."""
    if named is not None:
        args = (named,)
    for given in args:
        if given.__class__ is not int:
            break
    else:
        return args
    first = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple([integer(a) for a in first])


def _fits(x: Tensor, sizes: tuple[int, ...]) -> bool:
    """Whether x in that shape can share its storage; also if there is no such shape."""
    if x._is_plain() or x._geometry().is_contiguous:
        return True
    meta, strides, steps = x._origin()
    try:
        step = (reshape_to.operator, (resolve_shape(x._value().meta.size, sizes),))
    except ValueError:
        return True  # the call says what is wrong
    return geometry_of(meta, strides, (*steps, step)) is not None


@function(name="reshape", method=True)
def reshape(input: Tensor, *sizes: Any, shape: Any = None) -> Tensor:
    """The same elements in another shape; one extent may be -1. A view where that is possible.

    >>> import monograph as mg
    >>> mg.arange(6).reshape(2, -1).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    wanted = sizes_of(sizes, shape)
    if input._is_plain() or _fits(input, wanted):
        return _reshaped(_RESHAPE, (input,), (wanted,))
    return reshape_copy(input, wanted)


@function(to=None, method=True)
def view(input: Tensor, *sizes: Any, size: Any = None, dtype: DType | None = None) -> Tensor:
    """The same storage in another shape; refused where only a copy could have it.

    With a dtype, the same memory read as numbers of that dtype.

    >>> import monograph as mg
    >>> mg.arange(6).view(3, 2).tolist()
    [[0, 1], [2, 3], [4, 5]]
    >>> mg.ones(1).view(mg.int32).item() == 0x3F800000
    True
    """
    if dtype is not None or (len(sizes) == 1 and isinstance(sizes[0], (DType, type))):
        given = sizes[0] if dtype is None else dtype
        return _reinterpreted(input, given if isinstance(given, DType) else named(given))
    wanted = sizes_of(sizes, size)
    if not _fits(input, wanted):
        raise errors.OperandError(
            f"view size {list(wanted)} is not compatible with the tensor's size "
            f"{list(input.shape)} and stride {list(input.stride())}: at least one axis spans two "
            "that do not follow each other in memory; use reshape()"
        )
    return _reshaped(_RESHAPE, (input,), (wanted,))


def _reinterpreted(x: Tensor, dtype: DType) -> Tensor:
    """The same memory read as another dtype; the value is computed for it."""
    reads = x._reads()
    if reads:
        what = "conjugate view tensors" if reads == "conj" else "tensors with negative bit set"
        raise errors.OperandError(
            f"view is not supported for {what} when converting to a different dtype"
        )
    if dtype is x.dtype:
        return reshape_to(x, tuple(x.shape))
    try:
        return from_numpy(x.detach().numpy().view(dtype.numpy))
    except ValueError as problem:
        raise errors.OperandError(
            f"view: {x.dtype.name}{list(x.shape)} cannot be seen as {dtype.name}: {problem}"
        ) from None


@function(to=None, method=True)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same storage in the shape of other."""
    return view(input, *other.shape)


@function(to=None, method=True)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """x in the shape of other."""
    return reshape(input, *other.shape)


@function(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The axes start_dim … end_dim as one.

    >>> import monograph as mg
    >>> mg.ones(2, 3, 4).flatten(1).shape
    Size([2, 12])
    """
    if input.ndim == 0:
        axis_of(input, start_dim), axis_of(input, end_dim)
        return reshape(input, 1)
    first, last = axis_of(input, start_dim), axis_of(input, end_dim)
    if first > last:
        raise errors.OperandError("flatten: start_dim comes after end_dim")
    if first == last:
        return input
    sizes = input._sizes
    middle = Size(sizes[first : last + 1]).numel()
    return reshape(input, *sizes[:first], middle, *sizes[last + 1 :])


@function(method=True)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """One axis as several, of which one extent may be -1.

    >>> import monograph as mg
    >>> mg.ones(2, 6).unflatten(1, (-1, 3)).shape
    Size([2, 2, 3])
    """
    wanted = sizes_of((sizes,))
    k = axis_of(input, dim)
    if not wanted:
        raise errors.OperandError("unflatten: sizes must be non-empty")
    if not input.ndim:
        raise errors.OperandError("unflatten: a tensor without axes has none to unflatten")
    try:
        resolved = resolve_shape(input.shape[k], wanted)
    except ValueError:
        raise errors.OperandError(
            f"unflatten: sizes {list(wanted)} don't multiply up to the size of dim {dim} "
            f"({input.shape[k]}) in the input tensor"
        ) from None
    return view(input, *input.shape[:k], *resolved, *input.shape[k + 1 :])


@function(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one axis.

    >>> import monograph as mg
    >>> mg.ravel(mg.tensor([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return reshape(input, -1)


@function(method=True)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """A view on the storage of x, of any size, strides and offset.

    >>> import monograph as mg
    >>> mg.arange(6).as_strided((2, 3), (1, 2)).tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    offset = input.storage_offset() if storage_offset is None else int(storage_offset)
    sizes, strides = sizes_of((size,)), sizes_of((stride,))
    line = storage_line(input)
    if line.requires_grad and not input.requires_grad:
        line = line.detach()  # as x is
    made: Tensor = strided(line, sizes, strides, offset)
    reads = input._reads()
    if input.requires_grad and not line.requires_grad and input._view is not None:
        # A view that is a leaf itself: derivatives go to it, not to what it was taken from.
        assert made._view is not None
        whole = write_view(_base_of(input), input, input._view.chain())
        line = in_line(whole, input.dtype, input._storage.strides)
        made._view.value = strided(line, sizes, strides, offset)._value()
    return read_through(made, reads)


def storage_line(input: Tensor) -> Tensor:
    """The whole storage of x as one axis."""
    base = _base_of(input)
    return in_line(base, input.dtype, input._storage.strides)


def _base_of(input: Tensor) -> Tensor:
    base = object.__new__(Tensor)
    base._storage, base._view = input._storage, None
    return base


def in_line(base: Tensor, dtype: DType, strides: tuple[int, ...] | None = None) -> Tensor:
    """The elements in the order in which strides say that they lie; of complex ones the parts."""
    if strides is not None:
        order = sorted(range(base.ndim), key=lambda k: -strides[k])
        base = permute_to(base, tuple(order))
    line: Tensor = reshape_to(base, (-1,))
    if dtype.is_complex and not base.dtype.is_complex:
        return joined_pairs(reshape_to(line, (-1, 2)))  # type: ignore[no-any-return]
    if base.dtype.is_complex and not dtype.is_complex:
        return reshape_to(parted(line), (-1,))  # type: ignore[no-any-return]
    return line


# --- axes ---------------------------------------------------------------------------------------


@function(method=True)
def permute(input: Tensor, *axes: Any, dims: Any = None) -> Tensor:
    """Axes in another order.

    >>> import monograph as mg
    >>> mg.ones(2, 3, 4).permute(2, 0, 1).shape
    Size([4, 2, 3])
    """
    return permute_to(input, sizes_of(axes, dims))


@function(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two axes exchanged; `transpose` by its other name.

    >>> import monograph as mg
    >>> mg.swapaxes(mg.zeros(2, 3, 4), 0, 2).shape
    Size([4, 3, 2])
    """
    return transpose(input, axis0, axis1)


@function(method=True, aliases=("moveaxis",))
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """The axes `source` moved to `destination`; the others keep their order.

    >>> import monograph as mg
    >>> mg.ones(2, 3, 4).movedim(0, -1).shape
    Size([3, 4, 2])
    """
    origins, targets = sizes_of((source,)), sizes_of((destination,))
    if len(origins) != len(targets):
        raise errors.OperandError("movedim: source and destination name different numbers of axes")
    origins = tuple([axis_of(input, d) for d in origins])
    targets = tuple([axis_of(input, d) for d in targets])
    if len(set(origins)) != len(origins) or len(set(targets)) != len(targets):
        raise errors.OperandError("movedim: an axis is named twice")
    if not input.ndim:
        return permute_to(input, ())
    placed = dict(zip(targets, origins, strict=True))
    rest = iter([k for k in range(input.ndim) if k not in origins])
    return permute_to(
        input, tuple([placed[k] if k in placed else next(rest) for k in range(input.ndim)])
    )


@function(method=True)
def t(input: Tensor) -> Tensor:
    """A matrix with its two axes exchanged; a line stays as it is.

    >>> import monograph as mg
    >>> mg.t(mg.tensor([[1, 2], [3, 4]])).tolist()
    [[1, 3], [2, 4]]
    """
    if input.ndim > 2:
        raise errors.OperandError(f"t() expects a tensor with <= 2 dimensions, got {input.ndim}D")
    return transpose(input, 0, -1)


@function(method=True)
def adjoint(input: Tensor) -> Tensor:
    """The matrices over the last two axes transposed and conjugated.

    >>> import monograph as mg
    >>> mg.adjoint(mg.tensor([[1 + 2j, 3.0]])).shape
    Size([2, 1])
    """
    return input.mH


def _transposed(x: Tensor) -> Tensor:
    """The axes in reverse order."""
    return permute_to(x, tuple(reversed(range(x.ndim))))


def _matrices_transposed(x: Tensor) -> Tensor:
    """The last two axes exchanged."""
    if x.ndim < 2:
        raise errors.OperandError("tensor.mT is only supported on matrices or batches of matrices")
    return transpose(x, -1, -2)


Tensor.T = property(_transposed)  # type: ignore[attr-defined]
Tensor.mT = property(_matrices_transposed)  # type: ignore[attr-defined]


# --- repeated axes ------------------------------------------------------------------------------


@function(to=None, method=True)
def expand(input: Tensor, *sizes: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Axes of size 1 repeated; -1 keeps an extent.

    >>> import monograph as mg
    >>> mg.tensor([[1], [2]]).expand(-1, 2).tolist()
    [[1, 1], [2, 2]]
    """
    return expand_to(input, sizes_of(sizes, size))


@function(to=None, method=True)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """x repeated to the shape of other."""
    return expand_to(input, tuple(other.shape))


@function(method=True)
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """x repeated to that shape.

    >>> import monograph as mg
    >>> mg.broadcast_to(mg.tensor([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return expand_to(input, sizes_of((size,)))


@function
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes have together.

    >>> import monograph as mg
    >>> mg.broadcast_shapes((2, 1), (3,), 1)
    Size([2, 3])
    """
    listed = [sizes_of((s,)) for s in shapes]
    if any(extent < 0 for s in listed for extent in s):
        raise errors.OperandError("broadcast_shapes: sizes must not be negative")
    try:
        return Size(build.broadcast_shapes(*listed))
    except ValueError as problem:
        raise errors.OperandError(f"broadcast_shapes: {problem}") from None


@function
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors, each repeated to their common shape.

    >>> import monograph as mg
    >>> [x.shape for x in mg.broadcast_tensors(mg.ones(2, 1), mg.ones(3))]
    [Size([2, 3]), Size([2, 3])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    common = broadcast_shapes(*[tuple(x.shape) for x in tensors])
    return tuple([expand_to(x, tuple(common)) for x in tensors])


@function(to=None, method=True)
def sum_to_size(input: Tensor, *sizes: Any) -> Tensor:
    """x summed over the axes that broadcasting from `size` would have repeated.

    >>> import monograph as mg
    >>> mg.ones(2, 3).sum_to_size(1, 3).tolist()
    [[2.0, 2.0, 2.0]]
    """
    wanted = sizes_of(sizes)
    lead = input.ndim - len(wanted)
    if lead < 0 or any(
        e not in (1, input.shape[lead + k]) for k, e in enumerate(wanted)
    ):  # fmt: skip
        raise errors.OperandError(
            f"size {list(wanted)} is not expandable to size {list(input.shape)}"
        )
    gone = [k for k in range(input.ndim) if k < lead or wanted[k - lead] != input.shape[k]]
    if not wanted:
        return input.sum()
    summed = input.sum(gone, keepdim=True) if gone else input
    return view(summed, *wanted) if lead else summed
