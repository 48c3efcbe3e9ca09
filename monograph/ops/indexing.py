"""Indexing and assignment: `x[key]` and `x[key] = new`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .. import errors
from ..tensor import Tensor, tensor
from . import index, shape
from .creation import full_like
from .views import expand


def _places(x: Tensor, key: Any) -> tuple[Any, ...]:
    """The key as integers, None and (start, stop, step) triples; … worked out."""
    parts = list(key) if isinstance(key, tuple) else [key]
    for n, part in enumerate(parts):
        if part is Ellipsis:
            used = len([p for p in parts if p is not None and p is not Ellipsis])
            parts[n : n + 1] = [slice(None)] * (x.ndim - used)
            break
    used = len([p for p in parts if p is not None])
    if used > x.ndim:
        raise IndexError(f"too many indices ({used}) for a tensor of {x.ndim} dimensions")
    return tuple([_place(p) for p in parts])


def _place(part: Any) -> Any:
    if part is None:
        return None
    if isinstance(part, slice):
        if part.step is not None and int(part.step) <= 0:
            raise errors.OperandError("a slice's step must be positive")
        ends = [None if v is None else int(v) for v in (part.start, part.stop, part.step)]
        return tuple(ends)
    if isinstance(part, Tensor) and part.ndim:
        raise TypeError("indexing by a tensor together with slices is not supported yet")
    if isinstance(part, bool):
        raise TypeError("indexing by True or False is not supported")
    return operator.index(part)


def getitem(x: Tensor, key: Any) -> Tensor:
    """x[key]."""
    listed = [_as_tensor(part) for part in (key if isinstance(key, tuple) else (key,))]
    if any(isinstance(part, Tensor) and part.ndim for part in listed):
        if not all(isinstance(part, Tensor) for part in listed):
            raise TypeError("indexing mixes tensors and other keys; use integer tensors only")
        return index.take(x, listed)
    return shape.basic_index(x, _places(x, key))


def _as_tensor(part: Any) -> Any:
    return tensor(part) if isinstance(part, (list, np.ndarray)) else part


def setitem(x: Tensor, key: Any, new: Any) -> None:
    """x[key] = new."""
    place = getitem(x, key)
    if place._view is None:
        raise TypeError("assignment needs integers and slices")
    filled = new if isinstance(new, Tensor) else full_like(place, new)
    place._write(expand(filled.to(x.dtype), *place.shape))


Tensor.__getitem__ = getitem  # type: ignore[method-assign,assignment]
Tensor.__setitem__ = setitem  # type: ignore[method-assign,assignment]
