"""Steps that the definitions of elementary functions are made of.

Each takes a handler `h`, as the definitions do (see `elementary.py`), and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .dtypes import DType


def constants(h: Any, dtype: DType) -> Callable[[float], Any]:
    """What makes numbers of this dtype."""
    return lambda value: h.const(value, dtype)


def polynomial(h: Any, x: Any, coefficients: tuple[float, ...]) -> Any:
    """c[0] + c[1] x + c[2] x² + …, by Horner's rule: one fma for each power."""
    dtype = h.dtype(x)
    total = h.const(coefficients[-1], dtype)
    for coefficient in reversed(coefficients[:-1]):
        total = h.fma(total, x, h.const(coefficient, dtype))
    return total


def at_most(h: Any, x: Any, limit: float) -> Any:
    """x, or the limit where x is above it; NaN passes."""
    bound = h.const(limit, h.dtype(x))
    return h.select(h.gt(x, bound), bound, x)


def at_least(h: Any, x: Any, limit: float) -> Any:
    """x, or the limit where x is below it; NaN passes."""
    bound = h.const(limit, h.dtype(x))
    return h.select(h.lt(x, bound), bound, x)
