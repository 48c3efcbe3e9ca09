"""Reading and writing at places that integer tensors name: the core of all indexing.

A *region* is what is read or written: each of its elements has a place in x, an index expression
per axis of x. Reading is a Reindex, so its derivative adds up at the places. Writing without adding
finds for each place the last element of the region that goes there, and reads that one; so equal
places mean the last one wins, and derivatives follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir import build
from ..ir.check import check_index
from ..ir.dtypes import Kind, int64
from ..ir.index import Read, contiguous_strides
from ..ir.node import axis, coordinates

f = build.functions


@dataclass
class Region:
    """The shape of a region, and the place in x of each of its elements."""

    shape: tuple[int, ...]
    place: list[Any]
    reads: tuple[Any, ...] = ()

    def read(self, x: Any) -> Any:
        """The elements of x at the places."""
        return build.reindex(x, self.shape, self.place, reads=self.reads)

    def combine(self, how: str, values: Any, shape: tuple[int, ...]) -> Any:
        """An array of that shape with the values combined at their places."""
        if 0 in self.shape or 0 in shape:
            return build.full(shape, build.IDENTITY[how](values.dtype), values.dtype)
        return build.scatter(how, values, shape, self.place, (), self.reads)

    def hit(self, shape: tuple[int, ...]) -> Any:
        """How many elements go to each place."""
        return self.combine("add", build.full(self.shape, 1, int64), shape)

    def write(self, x: Any, values: Any) -> Any:
        """x with the values at their places; of several at one place, the last."""
        values = build.broadcast_to(build.cast(values, x.dtype), self.shape)
        if values.size == 0 or x.size == 0:
            return x
        strides = contiguous_strides(self.shape)
        number: Any = build.full(self.shape, 0, int64)
        for k, stride in enumerate(strides):
            number = number + build.coordinate(self.shape, k) * stride
        last = self.combine("max", number, x.shape)
        written = last >= 0
        line = build.reshape(values, (values.size,))
        source = build.select(written, last, build.const(0, int64))
        read = Read(0, tuple(coordinates(x.shape)), values.size)
        return build.select(written, build.reindex(line, x.shape, [read], reads=(source,)), x)


def integers(where: Any, what: str = "index") -> Any:
    """An index tensor as int64; IndexError for others."""
    if where.dtype.kind is not Kind.INT:
        raise IndexError(
            f"tensors used as indices must be integers or booleans, {what} is {where.dtype.name}"
        )
    return build.cast(where, int64)


def counted(where: Any, extent: int, k: int, negative: bool = True) -> Any:
    """Places along axis k, negative ones counted from the end; those outside are reported."""
    check_index(where, extent, k, negative=negative)
    if not negative:
        return where
    return build.select(where < 0, where + extent, where)


def along(x: Any, k: int, where: Any, negative: bool = False) -> Region:
    """The region of `gather` and `scatter`: as large as `where`, which names places on axis k."""
    place: list[Any] = [axis(n, e) for n, e in enumerate(where.shape)]
    places = counted(where, x.shape[k] if x.ndim else 1, k, negative)
    if not x.ndim:
        return Region(where.shape, [], ())
    place[k] = Read(0, tuple(coordinates(where.shape)), x.shape[k])
    return Region(where.shape, place, (places,))


def slices(x: Any, k: int, where: Any, negative: bool = False) -> Region:
    """The region of `index_select`: whole slices of x at the places `where` on axis k."""
    if where.ndim > 1:
        raise IndexError(f"the index must have one axis, got {list(where.shape)}")
    where = build.reshape(where, (where.size,))
    if not x.ndim:
        return Region((), [], ())
    shape = (*x.shape[:k], where.shape[0], *x.shape[k + 1 :])
    place: list[Any] = list(coordinates(shape))
    place[k] = Read(0, (axis(k, shape[k]),), x.shape[k])
    return Region(shape, place, (counted(where, x.shape[k], k, negative),))


def crossed(x: Any, where: list[Any], dims: tuple[int, ...], sure: tuple[bool, ...] = ()) -> Region:
    """The region of `x[i, j]`: index tensors on some axes, broadcast together.

    The common axes stand where the indexed ones stood if those are neighbours, else in front. Those
    that are `sure` name places that exist, counted from 0.
    """
    try:
        common = build.broadcast_shapes(*[w.shape for w in where])
    except ValueError:
        shapes = ", ".join([str(list(w.shape)) for w in where])
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    kept = [k for k in range(x.ndim) if k not in dims]
    joined = list(dims) == list(range(dims[0], dims[0] + len(dims)))
    lead = dims[0] if joined else 0
    before, after = kept[:lead], kept[lead:]
    shape = (*[x.shape[k] for k in before], *common, *[x.shape[k] for k in after])
    at = tuple([axis(lead + n, e) for n, e in enumerate(common)])
    place: list[Any] = [None] * x.ndim
    reads = []
    for n, (k, part) in enumerate(zip(dims, where, strict=True)):
        places = part if sure and sure[n] else counted(part, x.shape[k], k)
        reads.append(build.broadcast_to(places, common))
        place[k] = Read(n, at, x.shape[k])
    for n, k in enumerate(before):
        place[k] = axis(n, x.shape[k])
    for n, k in enumerate(after):
        place[k] = axis(lead + len(common) + n, x.shape[k])
    return Region(shape, place, tuple(reads))
