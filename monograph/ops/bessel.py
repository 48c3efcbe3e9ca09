"""Bessel functions of orders 0 and 1, and the Airy function.

Near zero they are power series; far out their growth, decay or oscillation is taken apart and what
is left is a polynomial in 1 / x (`tools/fit_special.py`). All is computed in float64.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from typing import Any

from ..ir import build
from ..tensor import Tensor
from .define import operator
from .math import floating
from .special import choose, narrow, polynomial, wide
from .special_tables import (
    AIRY_F,
    AIRY_FAR,
    AIRY_G,
    I0E,
    I1E,
    K0E,
    K1E,
    P0,
    P1,
    Q0,
    Q1,
)

f = build.functions
_INF, _NAN = numbers.inf, numbers.nan
_TERMS = 30
_GAMMA = 0.5772156649015329  # Euler's constant
_LN2 = 0.6931471805599453


def _factors(order: int, sign: int = 1) -> list[float]:
    """Of the power series in (x / 2)²: (±1)ᵏ / (k! (k + order)!)."""
    return [sign**k / (numbers.factorial(k) * numbers.factorial(k + order)) for k in range(_TERMS)]


def _harmonic(k: int) -> float:
    return sum([1 / n for n in range(1, k + 1)])


def _far(size: Any, start: float) -> Any:
    """2 start / x - 1, for x from `start` on."""
    return 2 * start / build.select(size > start, size, start) - 1.0


# --- modified Bessel functions of the first kind ------------------------------------------------


def _scaled_i(x: Any, order: int) -> Any:
    """exp(-|x|) I(x) in float64."""
    size = f.abs(x)
    near = build.select(size > 8.0, 8.0, size)
    square = near * near * 0.25
    series = polynomial(square, _factors(order)) * f.exp(-near)
    if order:
        series = series * near * 0.5
    tail = polynomial(_far(size, 8.0), (I0E, I1E)[order])
    tail = tail / f.sqrt(build.select(size > 8.0, size, 8.0))
    result = build.select(size > 8.0, tail, series)
    result = build.select(f.ne(x, x), x, result)
    return build.select(x < 0.0, -result, result) if order else result


def _grown(scaled: Any, x: Any) -> Any:
    """What was scaled by exp(-|x|), in two halves: the first overflows later."""
    half = f.exp(f.abs(x) * 0.5)
    return scaled * half * half


@operator(to=("", "special"), inplace=True)
def i0(x: Tensor) -> Any:
    """The modified Bessel function of the first kind of order 0.

    >>> import monograph as mg
    >>> mg.i0(mg.tensor([0.0])).tolist()
    [1.0]
    """
    z = wide(x)
    return narrow(_grown(_scaled_i(z, 0), z), x)


@i0.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * i1(x),)


@operator(to="special", method=False)
def i0e(x: Tensor) -> Any:
    """exp(-|x|) · i0(x).

    >>> import monograph as mg
    >>> mg.special.i0e(mg.tensor([0.0])).tolist()
    [1.0]
    """
    return narrow(_scaled_i(wide(x), 0), x)


@i0e.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * (i1e(x) - f.sign(floating(x)) * y),)


@operator(to="special", method=False)
def i1(x: Tensor) -> Any:
    """The modified Bessel function of the first kind of order 1.

    >>> import monograph as mg
    >>> mg.special.i1(mg.tensor([0.0])).tolist()
    [0.0]
    """
    z = wide(x)
    return narrow(_grown(_scaled_i(z, 1), z), x)


@i1.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    z = floating(x)
    zero = f.eq(z, 0.0)
    return (g * build.select(zero, 0.5, i0(z) - y / build.select(zero, 1.0, z)),)


@operator(to="special", method=False)
def i1e(x: Tensor) -> Any:
    """exp(-|x|) · i1(x).

    >>> import monograph as mg
    >>> mg.special.i1e(mg.tensor([0.0])).tolist()
    [0.0]
    """
    return narrow(_scaled_i(wide(x), 1), x)


@i1e.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    z = floating(x)
    zero = f.eq(z, 0.0)
    slope = i0e(z) - y * (f.sign(z) + 1.0 / build.select(zero, 1.0, z))
    return (g * build.select(zero, 0.5, slope),)


# --- modified Bessel functions of the second kind -----------------------------------------------


def _scaled_k(x: Any, order: int) -> Any:
    """exp(x) K(x) in float64, for x > 0."""
    near = build.select(x > 2.0, 2.0, x)
    square = near * near * 0.25
    log = f.log(near) - _LN2 + _GAMMA  # half of the smallest number would be 0
    if order:
        weights = [c * (_harmonic(k) + _harmonic(k + 1)) / 2 for k, c in enumerate(_factors(1))]
        curve = log * polynomial(square, _factors(1)) - polynomial(square, weights)
        series = 1.0 / near + curve * near * 0.5
    else:
        weights = [c * _harmonic(k) for k, c in enumerate(_factors(0))]
        series = polynomial(square, weights) - log * polynomial(square, _factors(0))
    tail = polynomial(_far(x, 2.0), (K0E, K1E)[order]) / f.sqrt(x)
    result = build.select(x > 2.0, tail, series * f.exp(near))
    return choose((f.eq(x, 0.0), _INF), (x > 0.0, result), otherwise=_NAN)


def _k(z: Any, order: int) -> Any:
    return _scaled_k(z, order) * f.exp(-z)


# --- Bessel functions of the first and second kind ----------------------------------------------


def _wave(size: Any, order: int, second: bool) -> Any:
    """J, or Y, of x >= 8: a cosine, or sine, of slowly changing size and phase."""
    x = build.select(size > 8.0, size, 8.0)
    inverse = 1.0 / x
    place = inverse * inverse * 128.0 - 1.0
    in_phase = polynomial(place, (P0, P1)[order])
    behind = polynomial(place, (Q0, Q1)[order]) * inverse
    angle = x - (numbers.pi / 4 + order * numbers.pi / 2)
    cosine, sine = f.cos(angle), f.sin(angle)
    mixed = in_phase * sine + behind * cosine if second else in_phase * cosine - behind * sine
    return mixed * f.sqrt(inverse * (2 / numbers.pi))


def _j(x: Any, order: int) -> Any:
    size = f.abs(x)
    near = build.select(size > 8.0, 8.0, size)
    series = polynomial(near * near * 0.25, _factors(order, -1))
    if order:
        series = series * near * 0.5
    result = build.select(size > 8.0, _wave(size, order, second=False), series)
    result = choose((f.eq(size, _INF), 0.0), (f.ne(x, x), x), otherwise=result)
    if not order:
        return result
    return choose((x < 0.0, -result), (f.eq(x, 0.0), x), otherwise=result)


def _y(x: Any, order: int) -> Any:
    near = build.select(x > 8.0, 8.0, x)
    square = near * near * 0.25
    factors = _factors(order, -1)
    log = f.log(near) - _LN2 + _GAMMA  # half of the smallest number would be 0
    if order:
        weights = [c * (_harmonic(k) + _harmonic(k + 1)) / 2 for k, c in enumerate(factors)]
        curve = log * polynomial(square, factors) - polynomial(square, weights)
        series = (curve * near * 0.5 - 1.0 / near) * (2 / numbers.pi)
    else:
        weights = [c * _harmonic(k) for k, c in enumerate(factors)]
        curve = log * polynomial(square, factors) - polynomial(square, weights)
        series = curve * (2 / numbers.pi)
    result = build.select(x > 8.0, _wave(x, order, second=True), series)
    return choose(
        (f.eq(x, 0.0), -_INF), (f.eq(x, _INF), 0.0), (x > 0.0, result), otherwise=_NAN
    )  # fmt: skip


def _i(z: Any, order: int) -> Any:
    return _grown(_scaled_i(z, order), z)


# --- those without derivatives, of order 0 and 1 ------------------------------------------------

_FIRST, _SECOND = "function of the first kind", "function of the second kind"
_FAMILIES: dict[str, tuple[str, Callable[..., Any], tuple[float, float]]] = {
    "bessel_j": (f"The Bessel {_FIRST}", _j, (1.0, 0.0)),
    "bessel_y": (f"The Bessel {_SECOND}", _y, (-_INF, -_INF)),
    "modified_bessel_i": (f"The modified Bessel {_FIRST}", _i, (1.0, 0.0)),
    "modified_bessel_k": (f"The modified Bessel {_SECOND}", _k, (_INF, _INF)),
    "scaled_modified_bessel_k": (
        f"exp(x) times the modified Bessel {_SECOND}", _scaled_k, (_INF, _INF)),
}  # fmt: skip


def _publish(family: str, order: int) -> Any:
    """Declare the function of one order, with its value at 0 as the example."""
    words, formula, at_0 = _FAMILIES[family]

    def bessel(x: Tensor) -> Any:
        return narrow(formula(wide(x), order), x)

    bessel.__name__ = f"{family}{order}"
    bessel.__doc__ = f"""{words} of order {order}.

    >>> import monograph as mg
    >>> mg.special.{family}{order}(mg.tensor([0.0])).tolist()
    [{at_0[order]}]
    """
    return operator(bessel, to="special", method=False, smooth=False)


bessel_j0, bessel_j1 = (_publish("bessel_j", order) for order in (0, 1))
bessel_y0, bessel_y1 = (_publish("bessel_y", order) for order in (0, 1))
modified_bessel_i0, modified_bessel_i1 = (_publish("modified_bessel_i", order) for order in (0, 1))
modified_bessel_k0, modified_bessel_k1 = (_publish("modified_bessel_k", order) for order in (0, 1))
scaled_modified_bessel_k0, scaled_modified_bessel_k1 = (
    _publish("scaled_modified_bessel_k", order) for order in (0, 1)
)

_SPHERICAL = [(-1) ** k / numbers.factorial(2 * k + 1) for k in range(8)]


@operator(to="special", method=False, smooth=False)
def spherical_bessel_j0(x: Tensor) -> Any:
    """sin(x) / x, and 1 at 0.

    >>> import monograph as mg
    >>> mg.special.spherical_bessel_j0(mg.tensor([0.0])).tolist()
    [1.0]
    """
    z = wide(x)
    small = f.abs(z) < 0.5
    divisor = build.select(small, 1.0, z)
    near = polynomial(z * z, _SPHERICAL)
    result = build.select(small, near, f.sin(divisor) / divisor)
    return narrow(build.select(f.eq(f.abs(z), _INF), 0.0, result), x)


# --- the Airy function --------------------------------------------------------------------------

_AI_0, _AI_SLOPE = 0.3550280538878172, -0.2588194037928068  # Ai(0), Ai'(0)


def _airy_series(first: int) -> list[float]:
    """Of the solution of y'' = x y that begins with x**first, the factors of powers of x³."""
    factors, k = [1.0], first
    while len(factors) < 32:
        k += 3
        factors.append(factors[-1] / (k * (k - 1)))
    return factors


@operator(to="special", method=False, smooth=False)
def airy_ai(x: Tensor) -> Any:
    """The Airy function Ai, a solution of y'' = x y that vanishes at infinity.

    >>> import monograph as mg
    >>> round(mg.special.airy_ai(mg.tensor([0.0])).item(), 4)
    0.355
    """
    z = wide(x)
    near = choose((z > 3.0, 3.0), (z < -5.0, -5.0), otherwise=z)
    cube = near * near * near
    series = polynomial(cube, _airy_series(0)) * _AI_0
    series = series + polynomial(cube, _airy_series(1)) * near * _AI_SLOPE
    size = f.abs(z)
    far = build.select(size > 3.0, size, 3.0)
    zeta = far * f.sqrt(far) * (2 / 3)
    root = f.sqrt(f.sqrt(far))
    tail = polynomial(2 * _zeta(3.0) / zeta - 1.0, AIRY_FAR) * f.exp(-zeta) / root
    wave = build.select(size > 5.0, zeta, _zeta(5.0))
    place = 2 * _zeta(5.0) ** 2 / (wave * wave) - 1.0
    angle = wave + numbers.pi / 4
    behind = polynomial(place, AIRY_G) / wave
    waves = (polynomial(place, AIRY_F) * f.sin(angle) - behind * f.cos(angle)) / root
    result = choose((z > 3.0, tail), (z < -5.0, waves), otherwise=series)
    return narrow(choose((f.eq(size, _INF), 0.0), (f.ne(z, z), z), otherwise=result), x)


def _zeta(x: float) -> float:
    return 2 / 3 * x**1.5
