"""Memory that the user's NumPy arrays share with tensors.

A value is *exposed* once an array of the user's may lie on its memory: after `from_numpy`,
`.numpy()` or DLPack. Whoever holds such an array may change it at any time, so what is recorded
must not read it later: small uses are copied at the call, large ones are computed at the call. The
exposure ends when the last such array is gone, which its reference count tells.
"""

from __future__ import annotations

import mmap
import sys
from typing import Any

import numpy as np

from .storage import Value, concrete

SMALL = 1 << 22  # bytes up to which a use is copied; larger ones are computed at once


def is_shared(value: Value) -> bool:
    """Whether the user still holds an array on this memory."""
    if not value.exposed:
        return False
    root = value.data
    if root is None:
        return True
    own = value.block is not None or root.base is None  # else on an array that others may know
    # Held by the value and by the name `root`; `getrefcount` adds its own.
    if own and sys.getrefcount(root) <= 3:
        value.expose(False)
    return value.exposed


def snapshot(array: np.ndarray, value: Value) -> Value:
    """The contents as they are now, as a value of its own that shows the other."""
    made = concrete(np.array(array, order="C", copy=True), value.meta)
    made.viewed = value  # a write to that one is one to what a derivative has saved
    return made


def move(value: Value, old: Value) -> None:
    """Let a known value lie in the memory of the one that it replaces, where arrays see it."""
    if value.memory is not old.memory:
        np.copyto(old.array(), value.array())
        value.memory = old.memory


def in_shared_memory(array: np.ndarray) -> np.ndarray:
    """A copy in memory that processes forked from here on share with this one."""
    memory = mmap.mmap(-1, max(array.nbytes, 1))
    made: np.ndarray = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
    made[...] = array
    return made


def lies_in_shared_memory(array: np.ndarray) -> bool:
    """Whether it is such a copy."""
    base: Any = array
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, mmap.mmap)


def flat_of(array: np.ndarray) -> tuple[np.ndarray, tuple[int, ...], int]:
    """The memory of an array as one line of elements, its strides in elements, and its offset.

    Only for arrays whose strides are not negative, which tensors cannot have.
    """
    size = array.itemsize
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "at least one stride of the array is negative, and tensors with negative strides are "
            "not supported; pass array.copy()"
        )
    if any(step % size for step in array.strides):
        raise ValueError("the strides of the array are no multiples of its elements' size")
    strides = tuple([step // size for step in array.strides])
    reach = sum([s * (n - 1) for s, n in zip(strides, array.shape, strict=True)]) + 1
    line: Any = np.lib.stride_tricks.as_strided(array, (reach if array.size else 0,), (size,))
    return line, strides, 0
