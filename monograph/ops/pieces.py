"""Pieces of a tensor: places and ranges along an axis, or all of it in parts. All are views."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..autograd.births import several
from ..ir.dtypes import Kind, int64
from ..tensor import Tensor
from . import shape
from .define import function
from .shape import axis_of
from .views import integer


@function(name="narrow", method=True)
def narrowed(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """`length` places along dim from `start`, which may count from the end.

    >>> import monograph as mg
    >>> mg.arange(5).narrow(0, 1, 3).tolist()
    [1, 2, 3]
    """
    if isinstance(start, Tensor):
        if start.ndim or start.dtype.kind is not Kind.INT:
            raise errors.OperandError("narrow: start must be an integer tensor without axes")
        start = start.item()
    return shape.narrow(input, dim, integer(start), integer(length))


@function(name="select", method=True)
def selected(input: Tensor, dim: int, index: int) -> Tensor:
    """x at one place along dim, which goes.

    >>> import monograph as mg
    >>> mg.tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
    [1, 3]
    """
    return shape.select(input, dim, integer(index))


@function(name="slice", to=None, method=True)
def sliced(
    input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Every step-th place along dim from start to before end; both may count from the end."""
    return shape.slice_along(input, dim, start, end, step)


def _extent(x: Tensor, dim: int, name: str) -> int:
    if not x.ndim:
        raise errors.OperandError(f"{name} expects at least a 1-dimensional tensor")
    return x.size(axis_of(x, dim))


def _between(x: Tensor, places: list[int], dim: int) -> tuple[Tensor, ...]:
    """The pieces between one place and the next, from the beginning to the end."""
    bounds = zip([None, *places], [*places, None], strict=True)
    return tuple([shape.slice_along(x, dim, start, end, 1) for start, end in bounds])


@function(method=True)
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Consecutive pieces along dim: of one size, or of the sizes listed.

    As a method's, the size is called `split_size` in PyTorch.

    >>> import monograph as mg
    >>> [x.tolist() for x in mg.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """
    given = split_size_or_sections if split_size is None else split_size
    if given is None:
        raise TypeError("split() missing 1 required argument: 'split_size'")
    if isinstance(given, (tuple, list)):
        return split_with_sizes(tensor, given, dim)
    return several("Split", unsafe_split(tensor, given, dim))


@function(method=True)
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split`, whose pieces may be written to while derivatives are recorded."""
    size, extent = integer(split_size), _extent(tensor, dim, "split")
    if size < 0 or (size == 0 and extent):
        raise errors.OperandError(f"split: split_size must be positive, got {size}")
    sizes = [min(size, extent - start) for start in range(0, extent, size or 1)] or [0]
    return _of_sizes(tensor, sizes, dim)


@function(method=True)
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces along dim, of the sizes listed.

    >>> import monograph as mg
    >>> [part.tolist() for part in mg.split_with_sizes(mg.arange(4), [1, 3])]
    [[0], [1, 2, 3]]
    """
    return several("SplitWithSizes", unsafe_split_with_sizes(input, split_sizes, dim))


@function(method=True)
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """`split_with_sizes`, whose pieces may be written to while derivatives are recorded."""
    sizes, extent = [integer(s) for s in split_sizes], _extent(input, dim, "split")
    if min(sizes, default=0) < 0 or sum(sizes) != extent:
        raise errors.OperandError(f"split: sizes {sizes} do not add up to {extent}")
    return _of_sizes(input, sizes, dim)


def _of_sizes(x: Tensor, sizes: list[int], dim: int) -> tuple[Tensor, ...]:
    pieces, start = [], 0
    for size in sizes:
        pieces.append(shape.narrow(x, dim, start, size))
        start += size
    return tuple(pieces)


@function(method=True)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces along dim, of equal size but for the last.

    >>> import monograph as mg
    >>> [x.tolist() for x in mg.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """
    return several("Split", unsafe_chunk(input, chunks, dim))


@function(method=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`, whose pieces may be written to while derivatives are recorded."""
    extent = _extent(input, dim, "chunk")
    if chunks <= 0:
        raise errors.OperandError(f"chunk: chunks must be greater than 0, got {chunks}")
    if not extent:
        return _of_sizes(input, [0] * chunks, dim)
    return unsafe_split(input, -(-extent // chunks), dim)


@function(method=True)
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, sections: Any = None,
    indices: Any = None, tensor_indices_or_sections: Any = None,
) -> tuple[Tensor, ...]:  # fmt: skip
    """Pieces along dim: so many of nearly equal size, or between the places listed.

    >>> import monograph as mg
    >>> [x.tolist() for x in mg.arange(5).tensor_split((1, 3))]
    [[0], [1, 2], [3, 4]]
    """
    for named in (sections, indices, tensor_indices_or_sections):
        indices_or_sections = named if named is not None else indices_or_sections
    extent, given = _extent(input, dim, "tensor_split"), indices_or_sections
    if isinstance(given, Tensor):
        if given.dtype is not int64 or given.ndim > 1:
            raise errors.OperandError(
                "tensor_split: a tensor of places must be int64 of at most one axis"
            )
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        return _between(input, [integer(place) for place in given], dim)
    count = integer(given)
    if count <= 0:
        raise errors.OperandError(f"tensor_split: sections must be larger than 0, got {count}")
    least, more = divmod(extent, count)
    return _of_sizes(input, [least + (n < more) for n in range(count)], dim)


def _even_split(x: Tensor, given: Any, dim: int, name: str) -> tuple[Tensor, ...]:
    if isinstance(given, (tuple, list)):
        return tensor_split(x, given, dim)
    if given <= 0 or x.shape[dim] % given:
        raise errors.OperandError(
            f"{name}: the size {x.shape[dim]} of dim {dim} is not divisible by the {given} sections"
        )
    return tensor_split(x, given, dim)


def _sections(given: Any, sections: Any, indices: Any) -> Any:
    return next(v for v in (given, sections, indices) if v is not None)


@function(method=True)
def hsplit(
    input: Tensor, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None
) -> tuple[Tensor, ...]:
    """Equal pieces side by side, or those between the places listed.

    >>> import monograph as mg
    >>> [part.tolist() for part in mg.hsplit(mg.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    if not input.ndim:
        raise errors.OperandError("hsplit requires a tensor with at least 1 dimension")
    given = _sections(indices_or_sections, sections, indices)
    return _even_split(input, given, 0 if input.ndim == 1 else 1, "hsplit")


@function(method=True)
def vsplit(
    input: Tensor, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None
) -> tuple[Tensor, ...]:
    """Equal pieces one below the other, or those between the places listed.

    >>> import monograph as mg
    >>> [part.tolist() for part in mg.vsplit(mg.tensor([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    if input.ndim < 2:
        raise errors.OperandError("vsplit requires a tensor with at least 2 dimensions")
    return _even_split(input, _sections(indices_or_sections, sections, indices), 0, "vsplit")


@function(method=True)
def dsplit(
    input: Tensor, indices_or_sections: Any = None, *, sections: Any = None, indices: Any = None
) -> tuple[Tensor, ...]:
    """Equal pieces one behind the other, or those between the places listed.

    >>> import monograph as mg
    >>> [part.shape for part in mg.dsplit(mg.zeros(2, 3, 4), 2)]
    [Size([2, 3, 2]), Size([2, 3, 2])]
    """
    if input.ndim < 3:
        raise errors.OperandError("dsplit requires a tensor with at least 3 dimensions")
    return _even_split(input, _sections(indices_or_sections, sections, indices), 2, "dsplit")


@function(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along dim.

    >>> import monograph as mg
    >>> [x.tolist() for x in mg.tensor([[1, 2], [3, 4]]).unbind(1)]
    [[1, 3], [2, 4]]
    """
    if not input.ndim:
        raise errors.IndexOutOfRange("unbind: a tensor without axes has no slices")
    places = range(input.shape[axis_of(input, dim)])
    return several("Unbind", [shape.select(input, dim, n) for n in places])
