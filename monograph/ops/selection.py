"""Selecting by truth: where, masked_select, nonzero, masked_scatter.

How many elements are selected only the data shows, so these read it at the call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import build
from ..ir.dtypes import bool_, int64
from ..ir.index import Read
from ..ir.node import coordinates
from ..tensor import Tensor, adopt
from . import math
from .define import function, operator
from .index import index_at
from .inplace import into
from .scan import running_sum
from .views import expand


@function(method=True)
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The places of the elements that are not zero, one row each, or one tensor an axis.

    >>> import monograph as mg
    >>> mg.nonzero(mg.tensor([[0, 1], [2, 0]])).tolist()
    [[0, 1], [1, 0]]
    """
    array = input._array()
    if as_tuple:
        return tuple([adopt(places) for places in np.nonzero(np.atleast_1d(array))])
    if array.ndim == 0:
        rows = np.zeros((int(bool(array)), 0), np.int64)
    else:
        rows = np.ascontiguousarray(np.argwhere(array)).reshape(-1, array.ndim)
    made = adopt(rows)
    return made if out is None else out.resize_(*made.shape).copy_(made)


@function(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The places of the elements that are not zero, one row each.

    >>> import monograph as mg
    >>> mg.argwhere(mg.tensor([0, 3, 4])).tolist()
    [[1], [2]]
    """
    return nonzero(input)


@function
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Any = None) -> Tensor:
    """The first `size` rows of `nonzero`, filled up with a number.

    >>> import monograph as mg
    >>> mg.nonzero_static(mg.tensor([0, 3]), size=2).tolist()
    [[1], [-1]]
    """
    if size < 0:
        raise RuntimeError("nonzero_static: size must not be negative")
    rows = nonzero(input)._array()[:size]
    filled = np.full((size, rows.shape[1]), fill_value, np.int64)
    filled[: len(rows)] = rows
    made = adopt(filled)
    return made if out is None else out.resize_(*made.shape).copy_(made)


Tensor.nonzero_static = nonzero_static  # type: ignore[attr-defined]


@function(name="where", method="where")
def where_(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where the condition holds, else other; alone, the places where it holds.

    >>> import monograph as mg
    >>> mg.where(mg.tensor([True, False]), mg.tensor([1.0, 2.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return math.where(condition, input, other, out=out)


def _where(x: Tensor, condition: Tensor, other: Any = 0.0) -> Tensor:
    """Own elements where the condition holds, those of `other` elsewhere."""
    return math.where(condition, x, other)


Tensor.where = _where  # type: ignore[attr-defined]


@function(method=True)
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """The elements where the mask is true, in one line.

    >>> import monograph as mg
    >>> mg.masked_select(mg.tensor([1, 2, 3]), mg.tensor([True, False, True])).tolist()
    [1, 3]
    """
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_select: the mask must be bool, got {mask.dtype.name}")
    shape = build.broadcast_shapes(tuple(input.shape), tuple(mask.shape)) or (1,)
    places = np.nonzero(np.broadcast_to(mask._array(), shape))
    indices = [adopt(np.ascontiguousarray(p)) for p in places]
    dims, sure = tuple(range(len(shape))), (True,) * len(shape)
    made = index_at(expand(input, *shape), indices, dims, sure)
    return made if out is None else into(out, made, (input, mask), exact=True)


@operator(to=None, method=False, name="masked_scatter")
def scatter_masked(x: Tensor, mask: Tensor, source: Tensor) -> Any:
    """x with the elements of source, one after the other, where the mask is true."""
    line = build.reshape(build.cast(mask, int64), (mask.size,))
    before = build.functions.maximum(running_sum(line) - 1, 0)
    number = build.reshape(before, x.shape)
    read = Read(0, tuple(coordinates(x.shape)), source.size)
    values = build.reindex(build.reshape(source, (source.size,)), x.shape, [read], reads=(number,))
    return build.select(mask, values, x)


@function(method=True, inplace=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the elements of source, one after the other, where the mask is true.

    >>> import monograph as mg
    >>> mask = mg.tensor([True, False, True])
    >>> mg.zeros(3).masked_scatter(mask, mg.tensor([5.0, 6.0])).tolist()
    [5.0, 0.0, 6.0]
    """
    if mask.dtype is not bool_:
        raise RuntimeError(f"masked_scatter: the mask must be bool, got {mask.dtype.name}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"masked_scatter: the source is {source.dtype.name}, the tensor {input.dtype.name}"
        )
    shape = build.broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    if not source.numel():
        if bool(mask.any()):
            raise RuntimeError("masked_scatter: the source has fewer elements than the mask")
        return math.clone(expand(input, *shape))
    return scatter_masked(expand(input, *shape), expand(mask, *shape), source)
