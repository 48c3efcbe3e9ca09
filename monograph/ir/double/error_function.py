"""erf and erfc in float64: near zero a polynomial, beyond 1/2 the tail by its decay."""

from __future__ import annotations

from typing import Any

from ..dtypes import float64
from ..steps import at_most, constants, polynomial
from .exponential import BIAS, LN2, LN2_LOW, exp_parts, rounded_quotient, scaled
from .tables import ERF, ERFC, ERFC_LOW
from .twofold import ordered_total, product, quotient

_NEAR = 0.5
_MIDDLE = 4.0  # ERFC_MIDDLE of tools/fit_double.py


def _bend(h: Any, x: Any) -> Any:
    """erf(x) - x, for |x| up to 1/2."""
    return h.mul(x, polynomial(h, h.mul(x, x), ERF))


def _tail(h: Any, a: Any) -> Any:
    """erfc(a) for a from 1/2 to 28: exp(-a²) / (1 + 2 a) times a polynomial in (a - 4) / (a + 4).

    Each factor is a sum of two numbers, so that only the last step rounds.
    """
    d = constants(h, float64)
    place = h.div(h.sub(a, d(_MIDDLE)), h.add(a, d(_MIDDLE)))
    shape, shape_low = ordered_total(h, d(ERFC[0]), h.mul(place, polynomial(h, place, ERFC[1:])))
    shape_low = h.add(shape_low, d(ERFC_LOW))

    square, square_low = product(h, a, a)
    rounded, n = rounded_quotient(h, h.neg(square), 2 * BIAS)
    low = h.sub(h.mul(n, d(-LN2_LOW)), square_low)
    r, low = ordered_total(h, h.fma(n, d(-LN2), h.neg(square)), low)
    decay, decay_low = exp_parts(h, r, low)

    both, both_low = product(h, shape, decay)
    both_low = h.fma(shape, decay_low, h.fma(shape_low, decay, both_low))
    double = h.add(a, a)
    slope = h.add(double, d(1.0))
    above = h.gt(double, d(1.0))
    larger, smaller = h.select(above, double, d(1.0)), h.select(above, d(1.0), double)
    slope_low = h.sub(smaller, h.sub(slope, larger))
    result, rest = quotient(h, both, both_low, slope, slope_low)
    return scaled(h, h.add(result, rest), rounded)


def erf(h: Any, x: Any) -> Any:
    """x plus a polynomial; from 1/2 on, 1 - erfc|x| with the sign of x. Beyond 6 it is 1.

    Error: 1.11 ulp.
    """
    d = constants(h, float64)
    a = at_most(h, h.abs(x), 6.0)
    near = h.add(a, _bend(h, a))
    far = h.sub(d(1.0), _tail(h, a))
    return h.copysign(h.select(h.lt(a, d(_NEAR)), near, far), x)


def erfc(h: Any, x: Any) -> Any:
    """1 - erf(x): near 0 by its polynomial, beyond by the tail, which is taken from 2 below 0.

    Error: 1.23 ulp.
    """
    d = constants(h, float64)
    a = at_most(h, h.abs(x), 28.0)
    start, start_low = ordered_total(h, d(1.0), h.neg(x))
    near = h.add(start, h.sub(start_low, _bend(h, x)))
    tail = _tail(h, a)
    far = h.select(h.lt(x, d(0.0)), h.sub(d(2.0), tail), tail)
    return h.select(h.lt(a, d(_NEAR)), near, far)
