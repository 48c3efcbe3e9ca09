"""Writes into tensors whose elements share places: rows that `expand` repeats, windows of `unfold`.

PyTorch refuses most operators there, since each element would be written several times. It allows
those that write chosen elements with values of their own (`masked_fill_`, `index_put_`, …). They
are as if done one element after the other: what is written last stays, and sums are added up.
"""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from . import math, shape
from .complex import read_through
from .creation import arange
from .views import storage_line


def overlaps(x: Tensor) -> bool:
    """Whether two elements of x may be one place of its storage."""
    return x._view is not None and x._geometry().overlaps


def write(x: Tensor, new: Tensor, add: bool = False) -> Tensor:
    """Write the elements of `new` that differ from x, or with `add` add up all differences.

    >>> import monograph as mg
    >>> row = mg.zeros(2)
    >>> _ = row.expand(3, 2).masked_fill_(mg.eye(3, 2) > 0, 7)
    >>> row.tolist()
    [7.0, 7.0]
    """
    seen = x._geometry()
    if seen.reads:
        write(read_through(x, seen.reads), read_through(new, seen.reads), add)
        return x
    line: Any = storage_line(x)
    count = line.numel()
    places = shape.strided(arange(count), seen.shape, seen.strides, seen.offset).reshape(-1)
    if add:
        changed = line.index_put((places,), (new - x).reshape(-1), accumulate=True)
    else:
        here: Any = x
        same = (new == here) | ((new != new) & (here != here))
        places = math.where(same.reshape(-1), count, places)  # nothing is written behind the end
        longer = shape.cat([line, shape.full_of((1,), 0, x.dtype)], 0)
        changed = longer.index_put((places,), new.reshape(-1))[:count]
    line._write(changed)
    return x
