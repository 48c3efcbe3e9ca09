"""Numbers with twice the digits: a float64, and a small one that rounding took from it.

A product whose error is wanted is written as an `fma` with -0, which no compiler may fuse with
the sum that follows.
"""

from __future__ import annotations

from typing import Any

from ..dtypes import float64


def product(h: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a b and its error, exactly."""
    high = h.fma(a, b, h.const(-0.0, float64))
    return high, h.fma(a, b, h.neg(high))


def total(h: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a + b and its error, exactly."""
    high = h.add(a, b)
    other = h.sub(high, a)
    return high, h.add(h.sub(a, h.sub(high, other)), h.sub(b, other))


def ordered_total(h: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """a + b and its error, exactly where |a| >= |b| or a is 0."""
    high = h.add(a, b)
    return high, h.sub(b, h.sub(high, a))


def quotient(h: Any, a: Any, a_low: Any, b: Any, b_low: Any) -> tuple[Any, Any]:
    """(a + a_low) / (b + b_low), by the reciprocal of b; what that misses is the second number."""
    inverse = h.div(h.const(1.0, float64), b)
    high = h.fma(a, inverse, h.const(-0.0, float64))
    minus = h.neg(high)
    rest = h.add(h.fma(minus, b, a), h.fma(minus, b_low, a_low))
    return high, h.mul(rest, inverse)
