"""exp and its relatives in float64: 2**n times a polynomial."""

from __future__ import annotations

from typing import Any

from ..dtypes import float64, uint64
from ..steps import at_least, at_most, constants, polynomial
from .tables import COSH, EXP, EXP2, SINH, TANH
from .twofold import ordered_total

LOG2E = 1.4426950408889634
# ln 2 = LN2 + LN2_LOW to 107 bits. n LN2 is subtracted by an fma, which is exact.
LN2 = 0.6931471805599453
LN2_LOW = 2.3190468138462996e-17
# Adding this to a small float64 rounds it to an integer, which is then in the low bits.
ROUND = 1.5 * 2.0**52
BIAS = 1023


def power_of_two(h: Any, bits: Any) -> Any:
    """2**n, where the low bits of `bits` are n + 1023 and -1023 < n < 1024."""
    return h.bitcast(h.shl(bits, h.const(52, uint64)), float64)


def scaled(h: Any, x: Any, rounded: Any) -> Any:
    """2**n x, where the low bits of `rounded` are n + 2 · 1023.

    2**n is taken in two factors, so that results below the normal range round once and those above
    it become infinite.
    """
    bits = h.bitcast(rounded, uint64)
    half = h.shr(bits, h.const(1, uint64))
    return h.mul(h.mul(x, power_of_two(h, half)), power_of_two(h, h.sub(bits, half)))


def rounded_quotient(h: Any, x: Any, bias: int) -> tuple[Any, Any]:
    """n = round(x / ln 2), first with n + bias in its low bits, then as a number."""
    start = h.const(ROUND + bias, float64)
    rounded = h.fma(x, h.const(LOG2E, float64), start)
    return rounded, h.sub(rounded, start)


def exp_parts(h: Any, r: Any, low: Any) -> tuple[Any, Any]:
    """e**(r + low) as a sum of two numbers, for |r| <= ln 2 / 2. Relative error: 2**-57."""
    curve = h.fma(h.mul(r, r), polynomial(h, r, EXP), low)
    high, rest = ordered_total(h, h.const(1.0, float64), r)
    return high, h.add(rest, curve)


def exp(h: Any, x: Any) -> Any:
    """e**x = 2**n e**r, with n = round(x / ln 2) and |r| <= ln 2 / 2. Error: 0.89 ulp."""
    d = constants(h, float64)
    x = at_least(h, at_most(h, x, 710.0), -746.0)
    rounded, n = rounded_quotient(h, x, 2 * BIAS)
    r = h.fma(n, d(-LN2_LOW), h.fma(n, d(-LN2), x))
    return scaled(h, polynomial(h, r, (1.0, 1.0, *EXP)), rounded)


def exp2(h: Any, x: Any) -> Any:
    """2**x = 2**n 2**r, with n = round(x): as `exp`, but r is exact. Error: 0.89 ulp."""
    d = constants(h, float64)
    x = at_least(h, at_most(h, x, 1025.0), -1076.0)
    rounded = h.add(x, d(ROUND + 2 * BIAS))
    r = h.sub(x, h.sub(rounded, d(ROUND + 2 * BIAS)))
    return scaled(h, polynomial(h, r, (1.0, *EXP2)), rounded)


def expm1(h: Any, x: Any) -> Any:
    """e**x - 1 = 2**n (e**r - 1) + (2**n - 1), with n = round(x / ln 2) and |r| <= ln 2 / 2.

    All is halved until the last step, because 2**1024 is no float64. The part of r that was rounded
    away is added to the small terms. Tiny x are their own result. Error: 1.21 ulp.
    """
    d = constants(h, float64)
    clamped = at_least(h, at_most(h, x, 710.0), -40.0)
    rounded, n = rounded_quotient(h, clamped, BIAS - 1)
    high = h.fma(n, d(-LN2), clamped)  # exact
    low = h.mul(n, d(-LN2_LOW))
    r = h.add(high, low)
    half = power_of_two(h, h.bitcast(rounded, uint64))  # 2**n / 2
    curve = h.fma(h.mul(r, r), polynomial(h, r, EXP), low)  # e**r - 1 - high
    line = h.fma(half, high, h.sub(half, d(0.5)))
    result = h.mul(h.fma(half, curve, line), d(2.0))
    return h.select(h.lt(h.abs(x), d(2.0**-54)), x, result)


def tanh(h: Any, x: Any) -> Any:
    """tanh|x|, with |x| = k ln 2 + r, by t = tanh(r) and p = 4**k / 2; then the sign of x.

    As in float32: ((p - 1/2) + (p + 1/2) t) / ((p + 1/2) + (p - 1/2) t), where the denominator is
    the numerator plus 1 - t. k is 0 up to a result of 1/2. Beyond 20 the result is 1.
    Error: 1.50 ulp.
    """
    d = constants(h, float64)
    a = at_most(h, h.abs(x), 20.0)
    rounded, k = rounded_quotient(h, h.sub(a, d(0.205)), 511)
    r = h.fma(k, d(-LN2_LOW), h.fma(k, d(-LN2), a))
    square = h.mul(r, r)
    t = h.fma(h.mul(r, square), polynomial(h, square, TANH), r)
    bits = h.shl(h.bitcast(rounded, uint64), h.const(53, uint64))  # of 2**(2k - 1)
    power = h.bitcast(bits, float64)
    numerator = h.fma(h.add(power, d(0.5)), t, h.sub(power, d(0.5)))
    denominator = h.add(numerator, h.sub(d(1.0), t))
    return h.copysign(h.div(numerator, denominator), x)


def _hyperbola(h: Any, x: Any) -> tuple[Any, ...]:
    """What sinh and cosh of |x| = n ln 2 + r are made of.

    The sum and the difference of 2**n and 2**-n, each over 4; r, what is missing in r and in
    sinh(r) after r, and cosh(r) - 1. A quarter, because 2**1025 is needed and is no float64.
    """
    d = constants(h, float64)
    a = at_most(h, h.abs(x), 710.5)
    rounded, n = rounded_quotient(h, a, BIAS - 2)
    exact = h.fma(n, d(-LN2), a)
    r, low = ordered_total(h, exact, h.mul(n, d(-LN2_LOW)))
    square = h.mul(r, r)
    sine = h.fma(h.mul(r, square), polynomial(h, square, SINH), low)
    cosine = h.fma(r, low, h.mul(square, polynomial(h, square, COSH)))
    bits = h.bitcast(rounded, uint64)
    up = power_of_two(h, bits)
    down = power_of_two(h, h.sub(h.const(2 * (BIAS - 2), uint64), bits))
    down = h.select(h.gt(a, d(40.0)), d(0.0), down)  # 2**-n / 4 is too small to count, or to hold
    return h.add(up, down), h.sub(up, down), r, sine, cosine


def sinh(h: Any, x: Any) -> Any:
    """(2**n - 2**-n) / 2 cosh(r) + (2**n + 2**-n) / 2 sinh(r), where |x| = n ln 2 + r.

    Error: 1.52 ulp.
    """
    d = constants(h, float64)
    plus, minus, r, sine, cosine = _hyperbola(h, x)
    rest = h.fma(plus, sine, h.mul(minus, cosine))
    result = h.mul(h.add(minus, h.fma(plus, r, rest)), d(2.0))
    result = h.copysign(result, x)
    return h.select(h.lt(h.abs(x), d(2.0**-28)), x, result)


def cosh(h: Any, x: Any) -> Any:
    """(2**n + 2**-n) / 2 cosh(r) + (2**n - 2**-n) / 2 sinh(r), where |x| = n ln 2 + r.

    Error: 1.44 ulp.
    """
    plus, minus, r, sine, cosine = _hyperbola(h, x)
    rest = h.fma(minus, sine, h.mul(plus, cosine))
    return h.mul(h.add(plus, h.fma(minus, r, rest)), h.const(2.0, float64))
