"""Angles in float64: sin, cos, tan, and the functions that find an angle."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import float64, uint64
from ..steps import constants, polynomial
from .exponential import ROUND
from .tables import ATAN, COS, SIN
from .twofold import ordered_total, product, quotient, total

_INF = math.inf
_NAN = math.nan
# π / 2 in three parts, to 160 bits
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_PI_LOW = 2 * _HALF_PI[1]
FAR = 1e13  # angles whose size is above are left to the machine's library


def _reduced(h: Any, x: Any, quarters: int) -> tuple[Any, Any, Any]:
    """x = n π / 2 + r: the bits of n + quarters, and r as a sum of two numbers.

    The first product is subtracted exactly. The others are small, but where x is near a multiple
    of π / 2 they are all that is left.
    """
    d = constants(h, float64)
    rounded = h.fma(x, d(2 / math.pi), d(ROUND + quarters))
    n = h.sub(rounded, d(ROUND + quarters))
    first, second, third = (d(-part) for part in _HALF_PI)
    small, small_low = product(h, n, second)
    r, low = total(h, h.fma(n, first, x), small)
    return h.bitcast(rounded, uint64), r, h.add(low, h.fma(n, third, small_low))


def _sine(h: Any, r: Any, low: Any, square: Any) -> Any:
    """sin(r + low) - r."""
    turned = h.fma(h.mul(low, square), h.const(-0.5, float64), low)
    return h.fma(h.mul(r, square), polynomial(h, square, SIN), turned)


def _cosine(h: Any, r: Any, low: Any, square: Any) -> Any:
    """cos(r + low) - 1."""
    return h.fma(square, polynomial(h, square, (-0.5, *COS)), h.neg(h.mul(r, low)))


def _is_odd(h: Any, quadrant: Any) -> Any:
    one = h.const(1, uint64)
    return h.ne(h.and_(quadrant, one), h.const(0, uint64))


def _sine_after(h: Any, x: Any, quarters: int) -> Any:
    """sin(x + quarters π / 2): ±sin(r) or ±cos(r) by the last bits of n."""
    quadrant, r, low = _reduced(h, x, quarters)
    square = h.mul(r, r)
    sine = h.copysign(h.add(r, _sine(h, r, low, square)), r)  # matters for -0 only
    cosine = h.add(h.const(1.0, float64), _cosine(h, r, low, square))
    result = h.bitcast(h.select(_is_odd(h, quadrant), cosine, sine), uint64)
    sign = h.shl(h.and_(quadrant, h.const(2, uint64)), h.const(62, uint64))
    return h.bitcast(h.xor(result, sign), float64)


def sin(h: Any, x: Any) -> Any:
    """By `_sine_after`. Error: 1.14 ulp."""
    return h.beyond("sin", x, _sine_after(h, x, 0), FAR)


def cos(h: Any, x: Any) -> Any:
    """By `_sine_after`. Error: 1.12 ulp."""
    return h.beyond("cos", x, _sine_after(h, x, 1), FAR)


def tan(h: Any, x: Any) -> Any:
    """sin(r) / cos(r), or -cos(r) / sin(r), where x = n π / 2 + r, by the last bit of n.

    Error: 1.34 ulp.
    """
    d = constants(h, float64)
    quadrant, r, low = _reduced(h, x, 0)
    square = h.mul(r, r)
    sine, sine_low = ordered_total(h, r, _sine(h, r, low, square))
    cosine, cosine_low = ordered_total(h, d(1.0), _cosine(h, r, low, square))
    odd = _is_odd(h, quadrant)
    result, rest = quotient(
        h,
        h.select(odd, h.neg(cosine), sine),
        h.select(odd, h.neg(cosine_low), sine_low),
        h.select(odd, sine, cosine),
        h.select(odd, sine_low, cosine_low),
    )
    result = h.select(h.eq(x, d(0.0)), x, h.add(result, rest))
    return h.beyond("tan", x, result, FAR)


def _angle(h: Any, y: Any, x: Any, back: Any = None) -> Any:
    """The angle of the point (x, y), both >= 0 and not both 0, or of (-x, y) where `back`.

    With t the tangent of what is left after turning by 0, π / 4 or π / 2, it is that turn plus
    atan(t), and π less that if the point lies behind.
    """
    d = constants(h, float64)
    limit = d(math.tan(math.pi / 8))
    flat = h.le(y, h.mul(x, limit))
    steep = h.le(x, h.mul(y, limit))
    difference, difference_low = total(h, y, h.neg(x))
    whole, whole_low = total(h, y, x)
    straight = h.or_(flat, steep)
    t, low = quotient(
        h,
        h.select(flat, y, h.select(steep, h.neg(x), difference)),
        h.select(straight, d(0.0), difference_low),
        h.select(flat, x, h.select(steep, y, whole)),
        h.select(straight, d(0.0), whole_low),
    )
    turn = h.select(flat, d(0.0), h.select(steep, d(math.pi / 2), d(math.pi / 4)))
    turn_low = h.select(flat, d(0.0), h.select(steep, d(_PI_LOW / 2), d(_PI_LOW / 4)))
    if back is not None:
        ahead = turn
        turn = h.select(back, h.sub(d(math.pi), ahead), ahead)
        turn_low = h.select(back, h.sub(d(_PI_LOW), turn_low), turn_low)
        t, low = h.select(back, h.neg(t), t), h.select(back, h.neg(low), low)
    square = h.mul(t, t)
    low = h.fma(h.neg(square), low, low)
    curve = h.fma(h.mul(t, square), polynomial(h, square, ATAN), h.add(low, turn_low))
    high, rest = ordered_total(h, turn, t)
    return h.add(high, h.add(rest, curve))


def atan(h: Any, x: Any) -> Any:
    """The angle of (1, |x|), with the sign of x. Error: 0.66 ulp."""
    d = constants(h, float64)
    size = h.abs(x)
    large = h.gt(size, d(2.0**60))
    result = _angle(h, h.select(large, d(2.0**60), size), d(1.0))
    return h.copysign(result, x)


def atan2(h: Any, y: Any, x: Any) -> Any:
    """The angle of the point (x, y); zeros and infinities as in C.

    Huge and tiny points are moved to where neither their sum nor their ratio's rest is lost.
    Error: 1.22 ulp.
    """
    d = constants(h, float64)
    up, across = h.abs(y), h.abs(x)
    back = h.lt(h.copysign(d(1.0), x), d(0.0))  # -0.0 too
    larger = h.select(h.gt(up, across), up, across)
    infinite = h.eq(larger, d(_INF))  # beside it what is finite does not count
    up = h.select(infinite, h.select(h.eq(up, d(_INF)), d(1.0), d(0.0)), up)
    across = h.select(infinite, h.select(h.eq(across, d(_INF)), d(1.0), d(0.0)), across)
    larger = h.select(infinite, d(1.0), larger)
    factor = h.select(h.lt(larger, d(2.0**-900)), d(2.0**200), d(1.0))
    factor = h.select(h.gt(larger, d(2.0**900)), d(2.0**-200), factor)
    across = h.select(h.eq(larger, d(0.0)), d(1.0), across)  # of 0 / 0
    result = _angle(h, h.mul(up, factor), h.mul(across, factor), back)
    result = h.copysign(result, y)
    return h.select(h.or_(h.ne(x, x), h.ne(y, y)), d(_NAN), result)


def _other(h: Any, x: Any) -> Any:
    """sqrt(1 - x²), NaN beyond 1."""
    return h.sqrt(h.fma(h.neg(x), x, h.const(1.0, float64)))


def asin(h: Any, x: Any) -> Any:
    """The angle of (sqrt(1 - x²), |x|), with the sign of x. Error: 1.25 ulp."""
    return h.copysign(_angle(h, h.abs(x), _other(h, x)), x)


def acos(h: Any, x: Any) -> Any:
    """The angle of (x, sqrt(1 - x²)). Error: 1.33 ulp."""
    return _angle(h, _other(h, x), h.abs(x), h.lt(x, h.const(0.0, float64)))


def hypot(h: Any, a: Any, b: Any) -> Any:
    """sqrt(a² + b²), of numbers moved to where no square is lost. Infinity if either is.

    Error: 0.98 ulp.
    """
    d = constants(h, float64)
    a, b = h.abs(a), h.abs(b)
    above = h.gt(a, b)
    larger, smaller = h.select(above, a, b), h.select(above, b, a)
    huge, tiny = h.gt(larger, d(2.0**500)), h.lt(larger, d(2.0**-400))
    factor = h.select(huge, d(2.0**-600), h.select(tiny, d(2.0**600), d(1.0)))
    inverse = h.select(huge, d(2.0**600), h.select(tiny, d(2.0**-600), d(1.0)))
    larger, smaller = h.mul(larger, factor), h.mul(smaller, factor)
    root = h.sqrt(h.fma(larger, larger, h.mul(smaller, smaller)))
    infinite = h.or_(h.eq(a, d(_INF)), h.eq(b, d(_INF)))
    return h.select(infinite, d(_INF), h.mul(root, inverse))
