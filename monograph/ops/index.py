"""Reading and writing at places that integer tensors name."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import Kind, int64
from ..ir.index import Read
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from .define import Tensors, operator


def _integers(where: Any) -> Any:
    if where.dtype.kind is not Kind.INT:
        raise TypeError(f"an index must be an integer tensor, got {where.dtype.name}")
    return build.cast(where, int64)


@operator(to=None, method=False)
def embedding(weight: Tensor, where: Tensor) -> Any:
    """Rows of weight at the indices `where`."""
    where = _integers(where)
    rank = where.ndim
    shape = where.shape + weight.shape[1:]
    row = Read(0, tuple(coordinates(where.shape)), weight.shape[0])
    rest = [axis(rank + k, e) for k, e in enumerate(weight.shape[1:])]
    return build.reindex(weight, shape, (row, *rest), reads=(where,))


def _along(x: Any, dim: int) -> int:
    rank = max(x.ndim, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"dimension {dim} is out of range for a tensor of {x.ndim} dimensions")
    return dim % rank


@operator
def gather(x: Tensor, dim: int, where: Tensor) -> Any:
    """out[i] = x[i with where[i] along dim]."""
    where = _integers(where)
    k = _along(x, dim)
    if x.ndim == 0 and where.ndim == 0:
        return x
    if where.ndim != x.ndim:
        raise ValueError(
            f"the index {list(where.shape)} needs as many axes as the tensor {list(x.shape)}"
        )
    if any(where.shape[n] > x.shape[n] for n in range(x.ndim) if n != k):
        raise ValueError(
            f"the index {list(where.shape)} exceeds the tensor {list(x.shape)} beside dim {dim}"
        )
    place: list[Any] = list(coordinates(where.shape))
    place[k] = Read(0, tuple(coordinates(where.shape)), x.shape[k])
    return build.reindex(x, where.shape, place, reads=(where,))


@operator
def index_select(x: Tensor, dim: int, where: Tensor) -> Any:
    """The slices of x along dim at the indices `where`."""
    where = _integers(where)
    k = _along(x, dim)
    if where.ndim != 1:
        raise ValueError(f"the index must have one axis, got {list(where.shape)}")
    shape = (*x.shape[:k], where.shape[0], *x.shape[k + 1 :])
    place: list[Any] = list(coordinates(shape))
    place[k] = Read(0, (axis(k, shape[k]),), x.shape[k])
    return build.reindex(x, shape, place, reads=(where,))


@operator(to=None, method=False)
def take(x: Tensor, where: Tensors) -> Any:
    """x[i, j, …] for integer tensors over the leading axes; negative ones count from the end."""
    parts = [_integers(w) for w in where]
    if len(parts) > x.ndim:
        raise IndexError(f"too many indices ({len(parts)}) for a tensor of {x.ndim} dimensions")
    common = build.broadcast_shapes(*[p.shape for p in parts])
    reads = []
    for k, part in enumerate(parts):
        part = build.broadcast_to(part, common)
        reads.append(build.select(part < 0, part + x.shape[k], part))
    rest = x.shape[len(parts) :]
    place = [Read(n, tuple(coordinates(common)), x.shape[n]) for n in range(len(parts))]
    left = [axis(len(common) + k, e) for k, e in enumerate(rest)]
    return build.reindex(x, common + rest, (*place, *left), reads=reads)


@operator(to="nn.functional", method=False)
def one_hot(where: Tensor, num_classes: int) -> Any:
    """1 at the index, 0 elsewhere, along a new last axis."""
    shape = (*where.shape, num_classes)
    index = build.broadcast_to(build.expand_dims(_integers(where), [where.ndim]), shape)
    hit = build.functions.eq(build.coordinate(shape, where.ndim), index)
    return build.cast(hit, int64)
