"""Functions of shape whose Python signature is freer than a definition's.

`x.reshape(2, -1)` and `x.reshape((2, -1))`, pieces of a tensor, and joining them.
"""

from __future__ import annotations

from typing import Any

from .. import errors
from ..tensor import Tensor
from . import shape
from .define import function


def sizes_of(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Integers given one by one, or as one tuple or list."""
    first = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    return tuple([int(a) for a in first])


@function(method=True)
def reshape(input: Tensor, *shape_: Any) -> Tensor:
    """The same elements in another shape; one extent may be -1."""
    return shape.reshape_to(input, sizes_of(shape_))


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


Tensor.view = reshape  # type: ignore[attr-defined]
Tensor.contiguous = lambda x: x  # type: ignore[attr-defined]
Tensor.T = property(lambda x: permute(x, *reversed(range(x.ndim))))  # type: ignore[attr-defined]
Tensor.mT = property(lambda x: shape.transpose(x, -1, -2))  # type: ignore[attr-defined]
