"""More elementary functions written in primitives: bases 2 and 10, angles, hyperbolas, erfc.

As in `elementary.py`, float64 is computed by `double`, all but `lgamma`, and other types are
widened to float32. Here float32 is computed in float64 and rounded once: that takes half the lanes,
but no care is needed where terms cancel, and errors stay near half a unit in the last place (ulp).
"""

from __future__ import annotations

import math
from typing import Any

from .dtypes import float32, float64, int32, uint64
from .elementary import (
    _ATAN,
    _COS,
    _HALF_PI,
    _HALF_PI_LOW,
    _INF,
    _LOG2E,
    _NAN,
    _ROUND,
    _ROUND64,
    _SIN,
    FAR,
    _exp2_in_float64,
    _in_float32,
    _log2_in_float64,
    _power_of_two,
)
from .steps import at_least, at_most, constants, polynomial

# 2**r = 1 + r q(r), from -0.5 to 0.5: error 2**-28.3
_EXP2 = (
    0.693147182,
    0.240226477,
    0.0555035993,
    0.00961850584,
    0.00133908074,
    0.000153264569,
)
# asin(r) = r (1 + u q(u)), u = r², from 0 to 0.25: error 2**-39.9
_ASIN = (
    0.16666666627478535,
    0.07500004965473887,
    0.04464071405731686,
    0.030426412684917276,
    0.02186675628946258,
    0.020641046917029962,
    0.001993226872122831,
    0.03289661891227914,
)
# sinh(r) = r (1 + u q(u)), u = r², from 0 to 1: error 2**-34.2
_SINH = (
    0.1666666649755493,
    0.00833335005860861,
    0.00019836159689965422,
    2.816951751041791e-06,
)
# erfc(a) exp(a²) (1 + 2 a) = q(t), t = (a - 4) / (a + 4), from -1 to 0.46: error 2**-35.5
_ERFC = (
    1.2329951186136168,
    -0.13962111729879925,
    0.015379654582247356,
    0.06809708820978236,
    -0.10103912948931891,
    0.09373208817275652,
    -0.06633017120866481,
    0.03717437892132824,
    -0.016192516917203293,
    0.005006031143820739,
    -0.000800216036770266,
    -0.00018106084340190572,
    0.0002379709221024256,
    4.330214012458583e-05,
)

# --- bases 2 and 10 -----------------------------------------------------------------------------


@_in_float32
def exp2(h: Any, x: Any) -> Any:
    """2**x = 2**n 2**r, with n = round(x): as `exp`, but r is exact.

    Where the machine has an instruction for r, nothing is limited: r of infinity is 0. Error: 0.80
    ulp, and 0.88 of results below the normal range.
    """
    rest = getattr(h, "rest", None)
    r = None if rest is None else rest(x)
    if r is not None:
        return h.ldexp(polynomial(h, r, (1.0, *_EXP2)), h.sub(x, r))
    f = constants(h, float32)
    x = at_least(h, at_most(h, x, 129.0), -151.0)
    rounded = h.add(x, f(_ROUND + 2 * 127))
    r = h.sub(x, h.sub(rounded, f(_ROUND + 2 * 127)))
    bits = h.bitcast(rounded, int32)
    half = h.shr(bits, h.const(1, int32))
    result = h.mul(polynomial(h, r, (1.0, *_EXP2)), _power_of_two(h, half))
    return h.mul(result, _power_of_two(h, h.sub(bits, half)))


def _log_in_float64(h: Any, x: Any, factor: float) -> Any:
    """log2(x) times a factor, NaN below 0."""
    d = constants(h, float64)
    result = h.mul(_log2_in_float64(h, x), d(factor))
    return h.select(h.lt(x, d(0.0)), d(_NAN), result)


@_in_float32
def log2(h: Any, x: Any) -> Any:
    """In float64, rounded once. Error: 0.51 ulp."""
    return h.cast(_log_in_float64(h, h.cast(x, float64), 1.0), float32)


@_in_float32
def log10(h: Any, x: Any) -> Any:
    """log2(x) / log2(10) in float64, rounded once. Error: 0.51 ulp."""
    return h.cast(_log_in_float64(h, h.cast(x, float64), math.log10(2)), float32)


# --- angles -------------------------------------------------------------------------------------


@_in_float32
def tan(h: Any, x: Any) -> Any:
    """sin(r) / cos(r), or -cos(r) / sin(r), where x = n π / 2 + r, by the last bit of n.

    As for `sin`, angles beyond 1e13 are left to the machine's library. Error: 0.62 ulp.
    """
    d = constants(h, float64)
    wide = h.cast(x, float64)
    rounded = h.fma(wide, d(2 / math.pi), d(_ROUND64))
    n = h.sub(rounded, d(_ROUND64))
    r = h.fma(n, d(-_HALF_PI_LOW), h.fma(n, d(-_HALF_PI), wide))
    r = at_least(h, at_most(h, r, 0.8), -0.8)
    square = h.mul(r, r)
    sine = h.mul(r, polynomial(h, square, (1.0, *_SIN)))
    cosine = polynomial(h, square, (1.0, *_COS))
    odd = h.ne(h.and_(h.bitcast(rounded, uint64), h.const(1, uint64)), h.const(0, uint64))
    result = h.div(h.select(odd, h.neg(cosine), sine), h.select(odd, sine, cosine))
    return h.beyond("tan", x, h.cast(result, float32), FAR)


def _small_asin(h: Any, r: Any) -> Any:
    """asin(r) for 0 <= r <= 1/2, in float64."""
    return h.mul(r, polynomial(h, h.mul(r, r), (1.0, *_ASIN)))


def _asin_parts(h: Any, x: Any) -> tuple[Any, Any, Any]:
    """|x| in float64, whether it is above 1/2, and asin(|x|) or there asin(sqrt((1 - |x|) / 2))."""
    d = constants(h, float64)
    size = h.cast(h.abs(x), float64)
    far = h.gt(size, d(0.5))
    root = h.sqrt(h.mul(h.sub(d(1.0), size), d(0.5)))  # NaN beyond 1
    return size, far, _small_asin(h, h.select(far, root, size))


@_in_float32
def asin(h: Any, x: Any) -> Any:
    """Above 1/2 by asin(x) = π / 2 - 2 asin(sqrt((1 - x) / 2)). Error: 0.51 ulp."""
    d = constants(h, float64)
    _, far, angle = _asin_parts(h, x)
    result = h.select(far, h.fma(angle, d(-2.0), d(math.pi / 2)), angle)
    return h.copysign(h.cast(result, float32), x)


@_in_float32
def acos(h: Any, x: Any) -> Any:
    """π / 2 - asin(x); of x near 1, 2 asin(sqrt((1 - x) / 2)). Error: 0.51 ulp."""
    d = constants(h, float64)
    _, far, angle = _asin_parts(h, x)
    below = h.lt(x, h.const(0.0, float32))
    signed = h.select(below, h.neg(angle), angle)
    start = h.select(below, d(math.pi), d(0.0))
    result = h.select(far, h.fma(signed, d(2.0), start), h.sub(d(math.pi / 2), signed))
    return h.cast(result, float32)


@_in_float32
def atan(h: Any, x: Any) -> Any:
    """Of |x| above 1 the angle of 1 / |x|, turned; of what is above tan(π / 8), turned by π / 4.

    Error: 0.51 ulp.
    """
    d = constants(h, float64)
    size = h.cast(h.abs(x), float64)
    steep = h.gt(size, d(1.0))
    ratio = h.select(steep, h.div(d(1.0), size), size)
    turned = h.gt(ratio, d(math.tan(math.pi / 8)))
    r = h.select(turned, h.div(h.sub(ratio, d(1.0)), h.add(ratio, d(1.0))), ratio)
    angle = h.mul(r, polynomial(h, h.mul(r, r), _ATAN))
    angle = h.select(turned, h.add(angle, d(math.pi / 4)), angle)
    angle = h.select(steep, h.sub(d(math.pi / 2), angle), angle)
    return h.copysign(h.cast(angle, float32), x)


@_in_float32
def hypot(h: Any, a: Any, b: Any) -> Any:
    """sqrt(a² + b²): in float64 nothing overflows. Infinity if either is. Error: 0.51 ulp."""
    f = constants(h, float32)
    wide_a, wide_b = h.cast(a, float64), h.cast(b, float64)
    square = h.fma(wide_a, wide_a, h.mul(wide_b, wide_b))
    result = h.cast(h.sqrt(square), float32)
    infinite = h.or_(h.eq(h.abs(a), f(_INF)), h.eq(h.abs(b), f(_INF)))
    return h.select(infinite, f(_INF), result)


# --- hyperbolas ---------------------------------------------------------------------------------


def _exp_in_float64(h: Any, x: Any) -> Any:
    return _exp2_in_float64(h, h.mul(x, h.const(_LOG2E, float64)))


@_in_float32
def sinh(h: Any, x: Any) -> Any:
    """(e**x - e**-x) / 2 in float64; up to 1 a polynomial. Error: 0.54 ulp."""
    d = constants(h, float64)
    size = at_most(h, h.cast(h.abs(x), float64), 100.0)
    power = _exp_in_float64(h, size)
    far = h.mul(h.sub(power, h.div(d(1.0), power)), d(0.5))
    near = h.mul(size, polynomial(h, h.mul(size, size), (1.0, *_SINH)))
    result = h.select(h.gt(size, d(1.0)), far, near)
    return h.copysign(h.cast(result, float32), x)


@_in_float32
def cosh(h: Any, x: Any) -> Any:
    """(e**x + e**-x) / 2 in float64. Error: 0.54 ulp."""
    d = constants(h, float64)
    power = _exp_in_float64(h, at_most(h, h.cast(h.abs(x), float64), 100.0))
    return h.cast(h.mul(h.add(power, h.div(d(1.0), power)), d(0.5)), float32)


@_in_float32
def asinh(h: Any, x: Any) -> Any:
    """log(|x| + sqrt(x² + 1)) in float64; of small x, x - x³ / 6. Error: 0.51 ulp."""
    d = constants(h, float64)
    size = h.cast(h.abs(x), float64)
    square = h.mul(size, size)
    far = _log_in_float64(h, h.add(size, h.sqrt(h.add(square, d(1.0)))), math.log(2))
    near = h.fma(h.mul(size, square), d(-1 / 6), size)
    result = h.select(h.lt(size, d(1e-3)), near, far)
    return h.copysign(h.cast(result, float32), x)


@_in_float32
def acosh(h: Any, x: Any) -> Any:
    """log(x + sqrt(x² - 1)) in float64, NaN below 1. Error: 0.51 ulp."""
    d = constants(h, float64)
    wide = h.cast(x, float64)
    root = h.sqrt(h.sub(h.mul(wide, wide), d(1.0)))
    result = _log_in_float64(h, h.add(wide, root), math.log(2))
    return h.cast(h.select(h.lt(wide, d(1.0)), d(_NAN), result), float32)


@_in_float32
def atanh(h: Any, x: Any) -> Any:
    """log((1 + |x|) / (1 - |x|)) / 2 in float64; of small x, x + x³ / 3. Error: 0.51 ulp."""
    d = constants(h, float64)
    size = h.cast(h.abs(x), float64)
    ratio = h.div(h.add(d(1.0), size), h.sub(d(1.0), size))
    far = _log_in_float64(h, ratio, math.log(2) / 2)
    near = h.fma(h.mul(size, h.mul(size, size)), d(1 / 3), size)
    result = h.select(h.lt(size, d(1e-3)), near, far)
    result = h.select(h.gt(size, d(1.0)), d(_NAN), result)  # -1 / 0 would be -0.0's logarithm
    return h.copysign(h.cast(result, float32), x)


# --- erfc and lgamma ----------------------------------------------------------------------------


@_in_float32
def erfc(h: Any, x: Any) -> Any:
    """1 - erf(x), as exp(-x²) / (1 + 2 |x|) times a polynomial in (|x| - 4) / (|x| + 4).

    Below zero it is 2 less the value of -x. Beyond 10.1 the result is 0. Error: 0.53 ulp.
    """
    d = constants(h, float64)
    size = at_most(h, h.cast(h.abs(x), float64), 10.8)
    place = h.div(h.sub(size, d(4.0)), h.add(size, d(4.0)))
    decay = _exp_in_float64(h, h.neg(h.mul(size, size)))
    tail = h.div(h.mul(polynomial(h, place, _ERFC), decay), h.fma(size, d(2.0), d(1.0)))
    result = h.select(h.lt(x, h.const(0.0, float32)), h.sub(d(2.0), tail), tail)
    return h.cast(result, float32)


def lgamma(h: Any, x: Any) -> Any:
    """log |Γ(x)|, by the machine's library in float64."""
    dtype = h.dtype(x)
    if dtype is float64:
        return h.native("lgamma", x)
    return h.cast(h.native("lgamma", h.cast(x, float64)), dtype)
