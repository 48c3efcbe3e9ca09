"""Joining many small pieces of data at the call, instead of recording it.

A batch that a program puts together itself, from a replay memory or a list of samples, is made of
other tensors each time: their number changes, and which of them are the same. Recorded, nearly
every batch would be a program of its own. So pieces that are known, and small or very many, are
copied when they are joined, and the batch is a leaf like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import record
from .config import HOST, config
from .recorder import current
from .storage import Meta
from .tensor import Tensor, adopt

PIECES = 8  # fewer are recorded: a program with a handful of parts comes again
BYTES = 1 << 16  # of all pieces together; more are worth a program's threads
MANY = 32  # pieces of any size: a program for so many inputs takes long to make


def gathered(pieces: Sequence[Tensor], dim: int) -> Tensor | None:
    """The pieces joined along dim, if that is done at the call; None if it is to be recorded."""
    recorder = current.recorder
    if len(pieces) < PIECES or recorder.hold or recorder.attention or config.backend not in HOST:
        return None
    kind: Meta | None = None
    size = 0
    found: list[Any] = []  # arrays, or tensors of which one is still to be made
    for x in pieces:
        if x.__class__ is not Tensor:
            return None
        storage, view = x._storage, x._view
        whole = value = storage.value
        lies = memory = whole.memory
        # Known, of a storage in the usual order, and no derivative is asked for.
        if lies is None or whole.requires_grad or whole.meta.strides:
            return None
        if view is not None:
            value = view.value
            memory = value.memory if view.version == storage.version else None
            if value.requires_grad:
                return None
        meta = value.meta
        if meta is not kind:
            if kind is not None and not _fit(meta, kind, dim):
                return None  # the operator says so in its words, or casts
            kind = meta
        size += meta.size
        if memory is not None:
            data = memory.data
        elif lies.data is None or meta.size != whole.meta.size or not _is_reshaped(x):
            data = None
        else:
            data = lies.data.reshape(meta.shape)
        found.append(x if data is None else data)
    if kind is None or (len(pieces) < MANY and size * kind.dtype.itemsize > BYTES):
        return None
    if not -len(kind.shape) <= dim < len(kind.shape):
        return None
    record.wait()
    arrays = [_contents(each) if each.__class__ is Tensor else each for each in found]
    return adopt(np.concatenate(arrays, dim))


def _fit(a: Meta, b: Meta, dim: int) -> bool:
    """Whether all but the size along dim agrees."""
    if a.dtype is not b.dtype or len(a.shape) != len(b.shape):
        return False
    return all(
        m == n or k in (dim, dim + len(a.shape))
        for k, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))
    )


def _is_reshaped(x: Tensor) -> bool:
    """Whether a view shows what its storage begins with, in order."""
    view = x._view
    if view is None or view.version != x._storage.version or view.origin is None:
        return False
    return view.origin[1] is None and not view.origin[2]


def _contents(x: Tensor) -> np.ndarray:
    whole, view = x._storage.value, x._view
    if view is None:
        return whole.array()
    value = view.value
    if value.memory is not None and view.version == x._storage.version:
        return value.array()
    if _is_reshaped(x):
        return whole.array().reshape(-1)[: value.meta.size].reshape(value.meta.shape)
    return x._array()
