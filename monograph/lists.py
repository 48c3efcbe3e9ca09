"""Numbers in nested lists: the array of them, or what keeps them from being one.

NumPy says that an array is inhomogeneous, or makes one of objects. Users are told which part it is.
"""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from .errors import DataError
from .ir.dtypes import DType

NESTS = frozenset({list, tuple})


def array_of(data: Any) -> np.ndarray:
    """The array of a number, or of nested lists of them.

    >>> array_of([1, "2"])
    Traceback (most recent call last):
    monograph.errors.DataError: data[1] is no number but '2' (str): it cannot be in a tensor
    """
    try:
        array = np.asarray(data)
    except ValueError:  # the lists have different lengths
        _require_numbers(data, "data")
        raise
    if array.dtype.kind not in "biufc":
        _require_numbers(data, "data")
    return array


def _require_numbers(data: Any, name: str) -> None:
    """Raise for the part of nested lists that is no number, or of another shape than the first."""
    if data.__class__ not in NESTS:
        if isinstance(data, int) and not -(2**63) <= data < 2**64:
            raise DataError(f"{name} is {data}, which 64 bits do not hold")
        if not isinstance(data, (bool, int, float, complex, np.ndarray, np.generic)):
            shown = f"{reprlib.repr(data)} ({type(data).__name__})"
            raise DataError(f"{name} is no number but {shown}: it cannot be in a tensor")
        return
    for n, part in enumerate(data):
        _require_numbers(part, f"{name}[{n}]")
    first, *others = [list(np.shape(part)) for part in data] or [[]]
    for n, shape in enumerate(others, 1):
        if shape != first:
            raise ValueError(
                f"lists of unequal sizes are no tensor: {name}[0] has shape {first}, "
                f"{name}[{n}] has {shape}"
            )


def require_room(array: np.ndarray, dtype: DType) -> None:
    """Numbers must fit an integer dtype. Negative ones may wrap around in an unsigned one."""
    limits = np.iinfo(dtype.numpy)
    low = limits.min or -limits.max
    outside = array[~((array >= low) & (array <= limits.max))]
    if outside.size:
        raise DataError(
            f"{outside[0]} cannot be converted to {dtype.name} without overflow: it holds "
            f"{limits.min} to {limits.max}"
        )
