"""Joining many small pieces of data at the call, instead of recording it.

A batch that a program puts together itself, from a replay memory or a list of samples, is made of
other tensors each time: their number changes, and which of them are the same. Recorded, nearly
every batch would be a program of its own. So pieces that are known, and small or very many, are
copied when they are joined, and the batch is a leaf like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import record
from .config import config
from .recorder import current
from .tensor import Tensor, adopt

PIECES = 8  # fewer are recorded: a program with a handful of parts comes again
BYTES = 1 << 16  # of all pieces together; more are worth a program's threads
MANY = 32  # pieces of any size: a program for so many inputs takes long to make


def gathered(pieces: Sequence[Tensor], dim: int) -> Tensor | None:
    """The pieces joined along dim, if that is done at the call; None if it is to be recorded."""
    recorder = current.recorder
    if len(pieces) < PIECES or recorder.hold or recorder.attention or config.backend != "cpu":
        return None
    first = pieces[0]
    rank, dtype, size = first.ndim, first.dtype, 0
    if not -rank <= dim < rank:
        return None
    for x in pieces:
        if x.__class__ is not Tensor or not _is_data(x) or x.dtype is not dtype:
            return None
        size += x.numel()
    if len(pieces) < MANY and size * dtype.itemsize > BYTES:
        return None
    if not _fit([tuple(x.shape) for x in pieces], dim % rank):
        return None
    record.wait()
    return adopt(np.concatenate([_contents(x) for x in pieces], dim))


def _is_data(x: Tensor) -> bool:
    """Whether the contents are known, and no derivative is asked of them."""
    whole, view = x._storage.value, x._view
    if not whole.ready or whole.requires_grad or whole.meta.strides is not None:
        return False
    return view is None or not view.value.requires_grad


def _fit(shapes: Sequence[tuple[int, ...]], k: int) -> bool:
    """Whether all sizes but that of axis k agree; if not, the operator says so in its words."""
    beside = {(*shape[:k], *shape[k + 1 :]) for shape in shapes}
    return len(beside) == 1 and len({len(shape) for shape in shapes}) == 1


def _contents(x: Tensor) -> np.ndarray:
    view = x._view
    if view is None:
        return x._storage.value.array()
    if view.value.ready and view.version == x._storage.version:
        return view.value.array()
    return x._array()
