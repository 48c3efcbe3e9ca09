"""log and its relatives in float64: n ln 2 and a series in s = f / (2 + f)."""

from __future__ import annotations

import math
from typing import Any

from ..dtypes import float64, uint64
from ..steps import at_most, constants, polynomial
from .exponential import LN2, LN2_LOW
from .tables import LOG, LOG2, LOG2_LOW
from .twofold import ordered_total, product, quotient, total

_INF = math.inf
_NAN = math.nan
_ROOT_BITS = 0x3FE6A09E667F3BCD  # of sqrt(1/2)
_TINY = 2.0**-1022  # below are the subnormal numbers
# 2 / ln 2 and log10(2), with what rounding takes of them
_SLOPE, _SLOPE_LOW = 2.8853900817779268, 4.0710547481862066e-17
_LOG10_2, _LOG10_2_LOW = 0.3010299956639812, -2.8037281277851704e-18


def split(h: Any, x: Any) -> tuple[Any, Any, Any]:
    """x = 2**n (1 + f), with sqrt(1/2) <= 1 + f < sqrt(2): n + 2048 as bits, n, and f.

    2048 is added to n, which must not be negative in the shift: it turns the sign of 1 + f.
    """
    d = constants(h, float64)
    bits = h.bitcast(x, uint64)
    offset = h.add(bits, h.const((2048 << 52) - _ROOT_BITS, uint64))
    biased = h.shr(offset, h.const(52, uint64))
    minus = h.bitcast(h.sub(bits, h.shl(biased, h.const(52, uint64))), float64)
    n = h.sub(h.bitcast(h.or_(biased, h.const(0x433 << 52, uint64)), float64), d(2.0**52 + 2048))
    return biased, n, h.sub(d(-1.0), minus)


def _made_normal(h: Any, x: Any) -> tuple[Any, Any]:
    """x, 2**54 times as large where it is subnormal, and the exponent to subtract."""
    d = constants(h, float64)
    subnormal = h.lt(x, d(_TINY))
    normal = h.select(subnormal, h.mul(x, d(2.0**54)), x)
    return normal, h.select(subnormal, d(54.0), d(0.0))


def _poles(h: Any, x: Any, result: Any, pole: float) -> Any:
    """The result, -∞ where x is the pole and NaN below it; ∞ and NaN as they are."""
    d = constants(h, float64)
    result = h.select(h.lt(x, d(_INF)), result, x)
    bad = h.select(h.eq(x, d(pole)), d(-_INF), d(_NAN))
    return h.select(h.le(x, d(pole)), bad, result)


def _log_sum(h: Any, n: Any, f: Any, low: Any = None) -> Any:
    """n ln 2 + log(1 + f + low), by log(1 + f) = f - f² / 2 + s (f² / 2 + s² q(s²))."""
    d = constants(h, float64)
    s = h.div(f, h.add(f, d(2.0)))
    square = h.mul(s, s)
    half = h.mul(h.mul(f, d(0.5)), f)
    rest = h.mul(n, d(LN2_LOW))
    if low is not None:
        rest = h.add(rest, h.fma(h.neg(f), low, low))
    rest = h.fma(s, h.fma(square, polynomial(h, square, LOG), half), rest)
    return h.fma(n, d(LN2), h.sub(f, h.sub(half, rest)))


def log(h: Any, x: Any) -> Any:
    """log(x) = n ln 2 + log(1 + f), x = 2**n (1 + f). Subnormal x are made larger first.

    Error: 0.84 ulp.
    """
    normal, shift = _made_normal(h, x)
    _, n, f = split(h, normal)
    return _poles(h, x, _log_sum(h, h.sub(n, shift), f), 0.0)


def _log_of_sum(h: Any, high: Any, low: Any, more: Any = None) -> Any:
    """log(high + low) + more ln 2, for a normal `high` and a `low` of at most its last digit."""
    d = constants(h, float64)
    biased, n, f = split(h, high)
    # low / 2**n, by a quarter of it and four times the power: 2**-1024 is not normal.
    four = h.bitcast(h.shl(h.sub(h.const(3073, uint64), biased), h.const(52, uint64)), float64)
    f, low = ordered_total(h, f, h.mul(h.mul(low, d(0.25)), four))
    n = n if more is None else h.add(n, more)
    return _log_sum(h, n, f, low)


def log1p(h: Any, x: Any) -> Any:
    """The logarithm of 1 + x and of what rounding takes from it. Tiny x are their own result.

    Error: 0.83 ulp.
    """
    d = constants(h, float64)
    high, low = total(h, d(1.0), x)
    result = _log_of_sum(h, high, low)
    result = h.select(h.lt(h.abs(x), d(2.0**-54)), x, result)
    return _poles(h, x, result, -1.0)


def log2_parts(h: Any, x: Any) -> tuple[Any, Any]:
    """log2(x) for x >= 0 as a sum of two numbers, ∞ and -∞ too. Relative error: 2**-65.

    With x = 2**n (1 + f) and s = f / (2 + f): n + s (2 / ln 2 + s² q(s²)), with twice the digits
    but in the terms of q after the first.
    """
    d = constants(h, float64)
    normal, shift = _made_normal(h, x)
    _, n, f = split(h, normal)
    denominator, denominator_low = ordered_total(h, d(2.0), f)
    s, s_low = quotient(h, f, d(0.0), denominator, denominator_low)
    z, z_low = product(h, s, s)
    z_low = h.fma(h.add(s, s), s_low, z_low)
    q, q_low = ordered_total(h, d(LOG2[0]), h.mul(z, polynomial(h, z, LOG2[1:])))
    q_low = h.add(q_low, d(LOG2_LOW))
    w, w_low = product(h, z, q)
    w_low = h.fma(z, q_low, h.fma(z_low, q, w_low))
    v, v_low = ordered_total(h, d(_SLOPE), w)
    v_low = h.add(v_low, h.add(w_low, d(_SLOPE_LOW)))
    y, y_low = product(h, s, v)
    y_low = h.fma(s, v_low, h.fma(s_low, v, y_low))
    high, low = ordered_total(h, h.sub(n, shift), y)
    high, low = ordered_total(h, high, h.add(low, y_low))
    high = h.select(h.eq(x, d(0.0)), d(-_INF), high)
    return h.select(h.lt(x, d(_INF)), high, x), low


def log2(h: Any, x: Any) -> Any:
    """Exact of powers of two. Error: 0.51 ulp."""
    high, _ = log2_parts(h, x)
    return h.select(h.lt(x, h.const(0.0, float64)), h.const(_NAN, float64), high)


def log10(h: Any, x: Any) -> Any:
    """log2(x) log10(2), with twice the digits until the end: exact of powers of ten.

    Error: 0.51 ulp.
    """
    d = constants(h, float64)
    high, low = log2_parts(h, x)
    result, rest = product(h, high, d(_LOG10_2))
    rest = h.fma(high, d(_LOG10_2_LOW), h.fma(low, d(_LOG10_2), rest))
    return _poles(h, x, h.add(result, rest), 0.0)


_LARGE = 2.0**28  # its square is so large that 1 does not count


def _log_or_large(h: Any, size: Any, w: Any, w_low: Any) -> Any:
    """log(1 + w + w_low), but log(2 size) of large sizes; tiny ones, ∞ and NaN stay."""
    d = constants(h, float64)
    large = h.gt(size, d(_LARGE))
    high, low = total(h, d(1.0), w)
    high = h.select(large, size, high)
    low = h.select(large, d(0.0), h.add(low, w_low))
    result = _log_of_sum(h, high, low, h.select(large, d(1.0), d(0.0)))
    itself = h.or_(h.lt(size, d(2.0**-28)), h.not_(h.lt(size, d(_INF))))
    return h.select(itself, size, result)


def asinh(h: Any, x: Any) -> Any:
    """log(1 + w), w = |x| + x² / (1 + sqrt(1 + x²)); of large x, log(2 |x|). Error: 1.23 ulp."""
    d = constants(h, float64)
    size = h.abs(x)
    a = at_most(h, size, _LARGE)
    square = h.mul(a, a)
    root = h.sqrt(h.add(square, d(1.0)))
    w, w_low = ordered_total(h, a, h.div(square, h.add(root, d(1.0))))
    return h.copysign(_log_or_large(h, size, w, w_low), x)


def acosh(h: Any, x: Any) -> Any:
    """log(1 + w), w = t + sqrt(2 t + t²), t = x - 1; of large x, log(2 x). NaN below 1.

    Error: 1.67 ulp.
    """
    d = constants(h, float64)
    t = h.sub(at_most(h, x, _LARGE), d(1.0))
    w, w_low = total(h, h.sqrt(h.fma(t, t, h.add(t, t))), t)
    return h.select(h.lt(x, d(1.0)), d(_NAN), _log_or_large(h, x, w, w_low))


def atanh(h: Any, x: Any) -> Any:
    """log(1 + w) / 2, w = 2 |x| / (1 - |x|). Tiny x are their own result; NaN beyond 1.

    Error: 0.86 ulp.
    """
    d = constants(h, float64)
    size = h.abs(x)
    rest, rest_low = ordered_total(h, d(1.0), h.neg(size))
    w, w_low = quotient(h, h.add(size, size), d(0.0), rest, rest_low)
    high, low = total(h, d(1.0), w)
    result = h.mul(_log_of_sum(h, high, h.add(low, w_low)), d(0.5))
    result = h.select(h.lt(size, d(2.0**-28)), size, result)
    result = h.select(h.eq(size, d(1.0)), d(_INF), result)
    return h.copysign(h.select(h.gt(size, d(1.0)), d(_NAN), result), x)
