"""Host steps of a plan: NumPy arrays laid over the operands, and the reference interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...compiler.plan import HostStep, Layout
from ...ir import reference
from ...ir.dtypes import BY_NAME
from ...ir.encode import decode
from ...runtime.host import HostFunction

Laid = Callable[[int], np.ndarray[Any, Any]]


def host_function(step: HostStep) -> HostFunction:
    """The step as a function of addresses."""
    outputs = decode(step.graph)
    *operands, result = [_laid(layout) for layout in step.arrays]

    def work(addresses: Sequence[int]) -> None:
        arrays = [lay(addresses[n]) for n, lay in enumerate(operands)]
        (found,) = reference.run(outputs, arrays)
        np.copyto(result(addresses[-1]), found, casting="no")

    return HostFunction(work, len(step.arrays), step.label)


def _laid(layout: Layout) -> Laid:
    """A function from an address to the array of that layout there."""
    dtype = BY_NAME[layout.dtype].numpy
    strides = tuple([stride * dtype.itemsize for stride in layout.strides])
    window = ctypes.c_char * max(prod(layout.shape) * dtype.itemsize, 1)

    def lay(address: int) -> np.ndarray[Any, Any]:
        memory: Any = window.from_address(address)
        return np.ndarray(layout.shape, dtype, memory, 0, strides)

    return lay
