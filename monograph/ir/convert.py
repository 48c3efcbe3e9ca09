"""What a cast means: a NumPy array in another dtype.

Nothing traps. Floats become integers by dropping the fraction; what is out of range saturates and
NaN becomes 0. Integers wrap. A complex number becomes its real part; as a bool it is whether it is
not zero. Numbers too large for a float become infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import DType, Kind, accumulator, from_numpy

Array = np.ndarray[Any, Any]


def convert(given: Any, dtype: DType) -> Array:
    """An array or number in another dtype.

    >>> from monograph.ir import dtypes
    >>> convert(np.array([1.9, 300.0, np.nan]), dtypes.int8)
    array([  1, 127,   0], dtype=int8)
    """
    x: Array = np.asarray(given)
    if from_numpy(x.dtype) is dtype:
        return x
    with np.errstate(all="ignore"):
        return converted(x, dtype)


def converted(given: Any, dtype: DType) -> Array:
    """The same where NumPy's warnings are off already."""
    x: Array = np.asarray(given)
    source = from_numpy(x.dtype)
    if source is dtype:
        return x
    if dtype.kind is Kind.BOOL:
        return np.asarray(x != 0)
    if source.is_complex and not dtype.is_complex:
        x, source = x.real, source.to_real()
    if source.is_floating_point and dtype.kind is Kind.INT:
        return _saturate(widened(x), np.iinfo(dtype.numpy))
    made: Array = x.astype(dtype.numpy)
    return made


def widened(x: Array) -> Array:
    """x in the dtype that its elements are computed with: float32 for the 16-bit floats."""
    dtype = from_numpy(x.dtype)
    return x.astype(accumulator(dtype).numpy, copy=False) if dtype.is_half else x


def _saturate(x: Array, info: np.iinfo[Any]) -> Array:
    above = float(int(info.max) + 1)
    inside = (x >= float(info.min)) & (x < above)
    exact = np.where(inside, x, 0).astype(info.dtype)
    limits = np.where(x >= above, info.max, info.min).astype(info.dtype)
    return np.where(inside, exact, np.where(np.isnan(x), np.zeros_like(exact), limits))
