"""Elementary functions written in the primitive scalar operations.

Each function takes a handler `h` and operands, and calls methods of `h` named like the primitives
(`h.add`, `h.fma`, `h.select`, `h.bitcast` …). The LLVM emitter gives it vectors, the tests NumPy
arrays. float32 is computed here, without branches or tables; float64 by the functions of the same
names in `double`; other types are widened to float32. Errors are in units in the last place (ulp)
of the result: the largest over a quarter of all float32 inputs, and over all inputs near the worst.

Three habits keep the results the same under every compiler: a product that is added to something
is always an explicit `fma`, a limit is a compare and a select (one instruction, and it lets NaN
pass), and an integer is read from the low bits of a float next to a large constant instead of
being converted. The tables of coefficients, lowest power first, are printed by
`tools/fit_polynomials.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from . import double
from .dtypes import float32, float64, int32, uint64
from .steps import at_least, at_most, constants, polynomial

Definition = Callable[..., Any]

_INF = math.inf
_NAN = math.nan
_LOG2E = 1.4426950408889634
# ln 2 = _LN2 + _LN2_LOW; the first is a float32, and close enough alone where n is small.
_LN2 = 0.693147182464599609375
_LN2_LOW = -1.904654299957767e-9
# Adding one of these to a small float rounds it to an integer n, which is then in the low bits.
# With + 127, those bits shifted left by 23 are the float32 2**n.
_ROUND = 1.5 * 2.0**23
_ROUND_TO_POWER = _ROUND + 127
_ROUND64 = 1.5 * 2.0**52

# exp(r) - 1 = r + r² q(r), from -0.3469 to 0.3469: error 2**-26.1
_EXP = (
    0.49999997,
    0.166665465,
    0.0416674353,
    0.00836627278,
    0.00138707145,
)
# log(1 + f) = f + f² q(f), from -0.3334 to 0.3334: error 2**-25.2
_LOG = (
    -0.499999374,
    0.333332002,
    -0.250077546,
    0.200110734,
    -0.164168507,
    0.139971092,
    -0.153848216,
    0.140208617,
)
# sin(r) = r (1 + u q(u)), u = r², from 0 to 0.64: error 2**-27.7
_SIN = (
    -0.166666538,
    0.00833209511,
    -0.0001950554,
)
# cos(r) = 1 + u q(u), u = r², from 0 to 0.64: error 2**-32.6
_COS = (
    -0.5,
    0.0416666418,
    -0.00138871302,
    2.44120856e-05,
)
# tanh(r) = r (1 + u q(u)), u = r², from 0 to 0.3047: error 2**-24.6
_TANH = (
    -0.33332935,
    0.13320449,
    -0.0526537485,
    0.0164025351,
)
# log2(erfc(a)) = a q(a), from 0 to 3.95: error 2**-27.4
_ERF = (
    -1.62790704,
    -0.918447375,
    -0.148280814,
    0.0276527535,
    0.000176136688,
    -0.00232502026,
    0.000847105985,
    -0.000139017968,
    5.85062253e-06,
    7.44174599e-07,
)
# 1 - 2**r = -r (ln 2) + r² q(r), from -0.5 to 0.5: error 2**-27.1
_ERF_EXP2 = (
    -0.240226418,
    -0.0555036105,
    -0.0096190935,
    -0.00133907225,
    -0.000151870234,
)
# log2(1 + f) = f q(f), from -0.3334 to 0.3334: error 2**-38.5
_POW_LOG2 = (
    1.4426950408925803,
    -0.72134752046917,
    0.48089834379903096,
    -0.3606737518847203,
    0.28853945888274923,
    -0.24044998316071428,
    0.2060753115890174,
    -0.18030243395175868,
    0.16090277938868852,
    -0.14501504354730124,
    0.12346986628969833,
    -0.11171978873720828,
    0.1578222717410174,
    -0.1505995908435062,
)
# 2**r = q(r), from -0.5 to 0.5: error 2**-29.0
_POW_EXP2 = (
    1.0000000005542076,
    0.693147205738871,
    0.24022646890453708,
    0.055503287734667256,
    0.00961848896382789,
    0.0013399932713576467,
    0.00015345814057845177,
)


# atan(r) / r in powers of r², for |r| up to tan(π / 8): relative error below 1e-13.
_ATAN = (
    0.9999999999999745,
    -0.33333333330872766,
    0.19999999613416689,
    -0.14285690821155164,
    0.11110394133562497,
    -0.090785049608994,
    0.07564480699632772,
    -0.058772924879348924,
    0.03070305354013838,
)


def _in_float32(definition: Definition) -> Definition:
    """Compute in float32; of float64 by the function of the same name in `double`."""
    in_float64 = getattr(double, definition.__name__)

    @functools.wraps(definition)
    def dispatch(h: Any, *operands: Any) -> Any:
        dtype = h.dtype(operands[0])
        if dtype is float64:
            return in_float64(h, *operands)
        if dtype is float32:
            return definition(h, *operands)
        wide = [h.cast(operand, float32) for operand in operands]
        return h.cast(definition(h, *wide), dtype)

    return dispatch


def _power_of_two(h: Any, bits: Any) -> Any:
    """2**n as a float32, where the low bits of `bits` are n + 127 and -127 < n < 128."""
    return h.bitcast(h.shl(bits, h.const(23, int32)), float32)


def _native_ldexp(h: Any, r: Any, n: Any) -> Any:
    """e**r · 2**n by the machine's own instruction, where the handler offers one."""
    ldexp = getattr(h, "ldexp", None)
    return None if ldexp is None else ldexp(polynomial(h, r, (1.0, 1.0, *_EXP)), n)


@_in_float32
def exp(h: Any, x: Any) -> Any:
    """e**x = 2**n e**r, with n = round(x / ln 2) and |r| <= ln 2 / 2.

    2**n is taken in two factors, so that results below the normal range round once and those above
    it become infinite. Error: 0.92 ulp.
    """
    f = constants(h, float32)
    x = at_least(h, at_most(h, x, 89.0), -104.0)
    rounded = h.fma(x, f(_LOG2E), f(_ROUND + 2 * 127))
    n = h.sub(rounded, f(_ROUND + 2 * 127))
    r = h.fma(n, f(-_LN2), x)  # exact
    r = h.fma(n, f(-_LN2_LOW), r)
    scaled = _native_ldexp(h, r, n)
    if scaled is not None:
        return scaled
    bits = h.bitcast(rounded, int32)
    half = h.shr(bits, h.const(1, int32))
    result = h.mul(polynomial(h, r, (1.0, 1.0, *_EXP)), _power_of_two(h, half))
    return h.mul(result, _power_of_two(h, h.sub(bits, half)))


@_in_float32
def expm1(h: Any, x: Any) -> Any:
    """e**x - 1 = 2**n (e**r - 1) + (2**n - 1), with n = round(x / ln 2) and |r| <= ln 2 / 2.

    All is halved until the last step, because 2**128 is no float32. The part of r that was rounded
    away is added to the small terms. Tiny x are their own result. Error: 1.23 ulp.
    """
    f = constants(h, float32)
    clamped = at_least(h, at_most(h, x, 89.0), -18.0)
    rounded = h.fma(clamped, f(_LOG2E), f(_ROUND_TO_POWER - 1))
    n = h.sub(rounded, f(_ROUND_TO_POWER - 1))
    high = h.fma(n, f(-_LN2), clamped)  # exact
    low = h.mul(n, f(-_LN2_LOW))
    r = h.fma(n, f(-_LN2_LOW), high)
    half = _power_of_two(h, h.bitcast(rounded, int32))  # 2**n / 2
    curve = h.fma(h.mul(r, r), polynomial(h, r, _EXP), low)  # e**r - 1 - high
    line = h.fma(half, high, h.sub(half, f(0.5)))
    result = h.mul(h.fma(half, curve, line), f(2.0))
    return h.select(h.lt(h.abs(x), f(2.0**-25)), x, result)


def _split(h: Any, x: Any) -> tuple[Any, Any]:
    """x = 2**n m, with 2/3 <= m < 4/3: the bits n << 23, and the bits of m."""
    bits = h.bitcast(x, int32)
    offset = h.sub(bits, h.const(0x3F2AAAAB, int32))  # the bits of 2/3
    exponent = h.and_(offset, h.const(-0x00800000, int32))
    return exponent, h.sub(bits, exponent)


def _log_sum(h: Any, n: Any, f: Any) -> Any:
    """n ln 2 + log(1 + f), where n is given as n << 23."""
    curve = h.fma(h.mul(f, f), polynomial(h, f, _LOG), f)
    return h.fma(h.cast(n, float32), h.const(_LN2 * 2.0**-23, float32), curve)


@_in_float32
def log(h: Any, x: Any) -> Any:
    """log(x) = n ln 2 + log(m), x = 2**n m, a polynomial in m - 1.

    Subnormal x are multiplied by 2**23 first. Error: 1.06 ulp.
    """
    f = constants(h, float32)
    subnormal = h.lt(x, f(2.0**-126))
    normal = h.select(subnormal, h.mul(x, f(2.0**23)), x)
    exponent, bits = _split(h, normal)
    shift = h.select(subnormal, h.const(23 << 23, int32), h.const(0, int32))
    exponent = h.sub(exponent, shift)
    result = _log_sum(h, exponent, h.sub(h.bitcast(bits, float32), f(1.0)))
    result = h.select(h.lt(x, f(_INF)), result, x)
    pole = h.select(h.eq(x, f(0.0)), f(-_INF), f(_NAN))
    return h.select(h.le(x, f(0.0)), pole, result)


@_in_float32
def log1p(h: Any, x: Any) -> Any:
    """log(1 + x) = n ln 2 + log(1 + g), with n from the rounded 1 + x and g from x itself.

    g = 2**-n (1 + x) - 1 = 2**-n x + (2**-n - 1), rounded once. The powers are four times as large
    until then, because 2**-128 is not a normal float32. Tiny x are their own result. Error:
    1.81 ulp.
    """
    f = constants(h, float32)
    exponent, _ = _split(h, h.add(x, f(1.0)))
    four = h.bitcast(h.sub(h.const(0x40800000, int32), exponent), float32)  # 4 * 2**-n
    g = h.fma(h.mul(x, f(0.25)), four, h.fma(four, f(0.25), f(-1.0)))
    result = _log_sum(h, exponent, g)
    itself = h.or_(h.lt(h.abs(x), f(2.0**-25)), h.not_(h.lt(x, f(_INF))))
    result = h.select(itself, x, result)
    pole = h.select(h.eq(x, f(-1.0)), f(-_INF), f(_NAN))
    return h.select(h.le(x, f(-1.0)), pole, result)


# π / 2 = _HALF_PI + _HALF_PI_LOW to 107 bits.
_HALF_PI = 1.5707963267948966
_HALF_PI_LOW = 6.123233995736766e-17


def _sine_after(h: Any, x: Any, quarters: int) -> Any:
    """sin(x + quarters π / 2): with x = n π / 2 + r, ±sin(r) or ±cos(r) by the last bits of n.

    The reduction is done in float64 for every x, which costs less than a choice between two ways.
    From about 1e14 on even float64 has too few digits, and n may be wrong: such angles, which
    nobody uses, are left to the machine's library by `beyond`.
    """
    d = constants(h, float64)
    wide = h.cast(x, float64)
    rounded = h.fma(wide, d(2 / math.pi), d(_ROUND64 + quarters))
    n = h.sub(rounded, d(_ROUND64 + quarters))
    wide = h.fma(n, d(-_HALF_PI_LOW), h.fma(n, d(-_HALF_PI), wide))
    r = at_least(h, at_most(h, h.cast(wide, float32), 0.8), -0.8)

    square = h.mul(r, r)
    sine = h.fma(h.mul(r, square), polynomial(h, square, _SIN), r)
    sine = h.copysign(sine, r)  # matters for -0 only
    cosine = polynomial(h, square, (1.0, *_COS))
    quadrant = h.cast(h.bitcast(rounded, uint64), int32)
    one, two = h.const(1, int32), h.const(2, int32)
    even = h.eq(h.and_(quadrant, one), h.const(0, int32))
    result = h.bitcast(h.select(even, sine, cosine), int32)
    sign = h.shl(h.and_(quadrant, two), h.const(30, int32))
    return h.bitcast(h.xor(result, sign), float32)


FAR = 1e13  # angles whose size is above need another way


@_in_float32
def sin(h: Any, x: Any) -> Any:
    """By `_sine_after`. Error: 1.55 ulp."""
    return h.beyond("sin", x, _sine_after(h, x, 0), FAR)


@_in_float32
def cos(h: Any, x: Any) -> Any:
    """By `_sine_after`. Error: 1.55 ulp."""
    return h.beyond("cos", x, _sine_after(h, x, 1), FAR)


@_in_float32
def tanh(h: Any, x: Any) -> Any:
    """tanh|x|, with |x| = k ln 2 + r, by t = tanh(r) and p = 4**k / 2; then the sign of x.

    By the addition theorem it is ((p - 1/2) + (p + 1/2) t) / ((p + 1/2) + (p - 1/2) t), which is t
    where k is 0. The denominator is the numerator plus 1 - t: written so, an error of the
    numerator hardly matters where the result is near 1. k is 0 up to a result of 1/2, because just
    below it that fraction is not accurate enough. Beyond 9.1 the result is 1. Error: 1.54 ulp.
    """
    f = constants(h, float32)
    a = at_most(h, h.abs(x), 9.1)
    rounded = h.fma(h.sub(a, f(0.205)), f(_LOG2E), f(_ROUND + 63))
    k = h.sub(rounded, f(_ROUND + 63))
    r = h.fma(k, f(-_LN2), a)
    square = h.mul(r, r)
    t = h.fma(h.mul(r, square), polynomial(h, square, _TANH), r)
    bits = h.shl(h.bitcast(rounded, int32), h.const(24, int32))  # of 2**(2k - 1)
    power = h.bitcast(bits, float32)
    numerator = h.fma(h.add(power, f(0.5)), t, h.sub(power, f(0.5)))
    denominator = h.add(numerator, h.sub(f(1.0), t))
    return h.copysign(h.div(numerator, denominator), x)


@_in_float32
def erf(h: Any, x: Any) -> Any:
    """erf|x| = 1 - 2**w, with w = log2(erfc|x|) a polynomial, and the sign of x.

    With w = n + r this is (1 - 2**n) + 2**n (1 - 2**r), which stays accurate near zero. Beyond 4
    the result is 1. Error: 1.94 ulp.
    """
    f = constants(h, float32)
    a = at_most(h, h.abs(x), 4.0)
    slope = polynomial(h, a, _ERF)  # w / a
    rounded = h.fma(a, slope, f(_ROUND_TO_POWER))
    r = h.fma(a, slope, h.sub(f(_ROUND_TO_POWER), rounded))
    power = _power_of_two(h, h.bitcast(rounded, int32))
    small = h.fma(r, f(-_LN2), h.mul(h.mul(r, r), polynomial(h, r, _ERF_EXP2)))  # 1 - 2**r
    return h.copysign(h.fma(power, small, h.sub(f(1.0), power)), x)


def _log2_in_float64(h: Any, x: Any) -> Any:
    """log2(x) = n + log2(m), x = 2**n m, for a float64 x >= 0, with 2**-38 relative error."""
    d = constants(h, float64)
    bits = h.bitcast(x, uint64)
    # 2048 is added to n, which must not be negative in the shift: it turns the sign of m.
    offset = h.add(bits, h.const((2048 << 52) - 0x3FE5555555555555, uint64))  # the bits of 2/3
    biased = h.shr(offset, h.const(52, uint64))
    minus_m = h.bitcast(h.sub(bits, h.shl(biased, h.const(52, uint64))), float64)
    n = h.sub(h.bitcast(h.or_(biased, h.const(0x433 << 52, uint64)), float64), d(2.0**52 + 2048))
    f = h.sub(d(-1.0), minus_m)
    result = h.fma(f, polynomial(h, f, _POW_LOG2), n)
    result = h.select(h.eq(x, d(0.0)), d(-_INF), result)
    return h.select(h.lt(x, d(_INF)), result, x)


def _exp2_in_float64(h: Any, x: Any) -> Any:
    """2**x for -1000 < x < 1000, with the accuracy of float32."""
    d = constants(h, float64)
    rounded = h.add(x, d(_ROUND64 + 1023))
    r = h.sub(x, h.sub(rounded, d(_ROUND64 + 1023)))
    power = h.bitcast(h.shl(h.bitcast(rounded, uint64), h.const(52, uint64)), float64)
    return h.mul(polynomial(h, r, _POW_EXP2), power)


@_in_float32
def pow(h: Any, a: Any, b: Any) -> Any:
    """|a|**b = 2**(b log2|a|) in float64, rounded once; then the sign and the special cases of C.

    1**b and a**0 are 1 whatever the other is; a negative number to a power that is not an integer
    is NaN, and to an odd integer keeps its sign. Error: 0.54 ulp (samples).
    """
    f = constants(h, float32)
    size = h.abs(a)
    exponent = h.mul(h.cast(b, float64), _log2_in_float64(h, h.cast(size, float64)))
    exponent = at_least(h, at_most(h, exponent, 200.0), -200.0)
    result = h.cast(_exp2_in_float64(h, exponent), float32)
    result = h.select(h.or_(h.eq(size, f(1.0)), h.eq(b, f(0.0))), f(1.0), result)

    integer = h.eq(h.round(b), b)
    half = h.mul(b, f(0.5))
    odd = h.and_(integer, h.ne(h.round(half), half))
    result = h.copysign(result, h.select(odd, a, f(1.0)))
    finite_negative = h.and_(h.lt(a, f(0.0)), h.gt(a, f(-_INF)))
    return h.select(h.and_(finite_negative, h.not_(integer)), f(_NAN), result)


@_in_float32
def atan2(h: Any, y: Any, x: Any) -> Any:
    """The angle of the point (x, y), in float64, rounded once; zeros and infinities as in C.

    The smaller coordinate over the larger is an angle up to π/4, which is turned by π/8 where it is
    above that. Error: 0.51 ulp (samples).
    """
    f = constants(h, float64)
    wide_y, wide_x = h.cast(h.abs(y), float64), h.cast(h.abs(x), float64)
    steep = h.gt(wide_y, wide_x)
    small, large = h.select(steep, wide_x, wide_y), h.select(steep, wide_y, wide_x)
    ratio = h.div(small, h.select(h.eq(large, f(0.0)), f(1.0), large))
    ratio = h.select(h.eq(small, f(_INF)), f(1.0), ratio)
    turned = h.gt(ratio, f(math.tan(math.pi / 8)))
    r = h.select(turned, h.div(h.sub(ratio, f(1.0)), h.add(ratio, f(1.0))), ratio)
    angle = h.mul(r, polynomial(h, h.mul(r, r), _ATAN))
    angle = h.select(turned, h.add(angle, f(math.pi / 4)), angle)
    angle = h.select(steep, h.sub(f(math.pi / 2), angle), angle)
    back = h.lt(h.copysign(h.const(1.0, float32), x), h.const(0.0, float32))  # -0.0 too
    angle = h.select(back, h.sub(f(math.pi), angle), angle)
    result = h.copysign(h.cast(angle, float32), y)
    return h.select(h.or_(h.ne(x, x), h.ne(y, y)), h.const(_NAN, float32), result)
