"""pow in float64: 2**(b log2|a|), with twice the digits until the end."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import float64
from ..steps import at_least, at_most, constants
from .exponential import BIAS, LN2, LN2_LOW, ROUND, exp_parts, scaled
from .logarithm import log2_parts
from .twofold import ordered_total, product


def pow(h: Any, a: Any, b: Any) -> Any:
    """|a|**b, then the sign and the special cases of C.

    1**b and a**0 are 1 whatever the other is; a negative number to a power that is not an integer
    is NaN, and to an odd integer keeps its sign. What can be represented is exact. Error: 0.80 ulp.
    """
    d = constants(h, float64)
    size = h.abs(a)
    result = _power(h, size, b)
    result = h.select(h.or_(h.eq(size, d(1.0)), h.eq(b, d(0.0))), d(1.0), result)

    integer = h.eq(h.round(b), b)
    half = h.mul(b, d(0.5))
    odd = h.and_(integer, h.ne(h.round(half), half))
    result = h.copysign(result, h.select(odd, a, d(1.0)))
    finite_negative = h.and_(h.lt(a, d(0.0)), h.gt(a, d(-math.inf)))
    return h.select(h.and_(finite_negative, h.not_(integer)), d(math.nan), result)


def _power(h: Any, size: Any, b: Any) -> Any:
    """2**(b log2(size)). Beyond ±1100 the result is 0 or ∞, whatever the low digits are."""
    d = constants(h, float64)
    logarithm, logarithm_low = log2_parts(h, size)
    y, y_low = product(h, b, logarithm)
    y_low = h.fma(b, logarithm_low, y_low)
    y_low = h.select(h.lt(h.abs(y), d(1100.0)), y_low, d(0.0))
    y = at_least(h, at_most(h, y, 1100.0), -1100.0)
    rounded = h.add(y, d(ROUND + 2 * BIAS))
    part = h.sub(y, h.sub(rounded, d(ROUND + 2 * BIAS)))
    r, r_low = product(h, part, d(LN2))
    r_low = h.fma(part, d(LN2_LOW), h.fma(y_low, d(LN2), r_low))
    high, low = exp_parts(h, *ordered_total(h, r, r_low))
    return scaled(h, h.add(high, low), rounded)
