"""Reading and writing at places that integer tensors name."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import Kind, int64
from ..ir.index import Read
from ..ir.node import axis, coordinates
from ..tensor import Tensor
from .define import operator


def _integers(where: Any) -> Any:
    if where.dtype.kind is not Kind.INT:
        raise TypeError(f"an index must be an integer tensor, got {where.dtype.name}")
    return build.cast(where, int64)


@operator(method=False)
def embedding(weight: Tensor, where: Tensor) -> Any:
    """Rows of weight at the indices `where`."""
    where = _integers(where)
    rank = where.ndim
    shape = where.shape + weight.shape[1:]
    row = Read(0, tuple(coordinates(where.shape)), weight.shape[0])
    rest = [axis(rank + k, e) for k, e in enumerate(weight.shape[1:])]
    return build.reindex(weight, shape, (row, *rest), reads=(where,))


@operator
def gather(x: Tensor, dim: int, where: Tensor) -> Any:
    """out[i] = x[i with where[i] along dim]."""
    where = _integers(where)
    k = dim % max(x.ndim, 1)
    place: list[Any] = list(coordinates(where.shape))
    place[k] = Read(0, tuple(coordinates(where.shape)), x.shape[k])
    return build.reindex(x, where.shape, place, reads=(where,))


@operator
def index_select(x: Tensor, dim: int, where: Tensor) -> Any:
    """The slices of x along dim at the indices `where`."""
    where = _integers(where)
    k = dim % max(x.ndim, 1)
    shape = (*x.shape[:k], where.shape[0], *x.shape[k + 1 :])
    place: list[Any] = list(coordinates(shape))
    place[k] = Read(0, (axis(k, shape[k]),), x.shape[k])
    return build.reindex(x, shape, place, reads=(where,))


@operator(method=False)
def one_hot(where: Tensor, num_classes: int) -> Any:
    """1 at the index, 0 elsewhere, along a new last axis."""
    shape = (*where.shape, num_classes)
    index = build.broadcast_to(build.expand_dims(_integers(where), [where.ndim]), shape)
    hit = build.functions.eq(build.coordinate(shape, where.ndim), index)
    return build.cast(hit, int64)
