"""Scalar functions of complex numbers by their parts.

Each is written with the functions of real numbers: `f` is the namespace of node constructors, a
complex operand is the pair of its parts, and so is a complex result. What is not in `PARTS` is not
defined for complex numbers, and says so at the call. The NumPy reference does without: NumPy has
complex numbers. `compiler/pairs.py` applies these before anything is fused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Pair = tuple[Any, Any]  # real and imaginary part: nodes


def _and(f: Any, a: Any, b: Any) -> Any:
    return getattr(f, "and")(a, b)


def _or(f: Any, a: Any, b: Any) -> Any:
    return getattr(f, "or")(a, b)


def abs(f: Any, z: Pair) -> Any:
    """√(a² + b²), without overflow on the way."""
    large, ratio = _sizes(f, z)
    size = large * f.sqrt(1.0 + ratio * ratio)
    return f.select(f.eq(large, math.inf), large, size)


def _sizes(f: Any, z: Pair) -> Pair:
    """The larger |part|, and the smaller over the larger."""
    a, b = f.abs(z[0]), f.abs(z[1])
    large, small = f.maximum(a, b), f.minimum(a, b)
    return large, small / f.select(f.eq(large, 0.0), 1.0, large)


def mul(f: Any, a: Pair, b: Pair) -> Pair:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def div(f: Any, a: Pair, b: Pair) -> Pair:
    """By the larger part of the divisor first, so that nothing overflows on the way."""
    steep = f.abs(b[0]) < f.abs(b[1])
    large, small = f.select(steep, b[1], b[0]), f.select(steep, b[0], b[1])
    ratio = small / large
    bottom = large + small * ratio
    first, second = f.select(steep, a[1], a[0]), f.select(steep, a[0], a[1])
    real = (first + second * ratio) / bottom
    imag = (second - first * ratio) / bottom
    return real, f.select(steep, -imag, imag)


def sign(f: Any, z: Pair) -> Pair:
    size = abs(f, z)
    safe = f.select(f.eq(size, 0.0), 1.0, size)
    return z[0] / safe, z[1] / safe


def sqrt(f: Any, z: Pair) -> Pair:
    a, b = z
    large, ratio = _sizes(f, z)
    slope = f.abs(a) / f.select(f.eq(large, 0.0), 1.0, large)
    half = f.sqrt(large) * f.sqrt((f.sqrt(1.0 + ratio * ratio) + slope) * 0.5)
    half = f.select(f.eq(large, math.inf), large, half)
    other = f.abs(b) / f.select(f.eq(half, 0.0), 1.0, half * 2.0)
    real, imag = f.select(a < 0, other, half), f.select(a < 0, half, other)
    imag = f.select(_is_negative(f, b), -imag, imag)
    endless = f.eq(f.abs(b), math.inf)
    return f.select(endless, math.inf, real), f.select(endless, b, imag)


def _is_negative(f: Any, x: Any) -> Any:
    """Whether x has a sign: -0.0 has."""
    return f.select(f.eq(x, 0.0), 1.0 / x, x) < 0


def exp(f: Any, z: Pair) -> Pair:
    size = f.exp(z[0])
    return size * f.cos(z[1]), f.select(f.eq(z[1], 0.0), z[1], size * f.sin(z[1]))


def expm1(f: Any, z: Pair) -> Pair:
    half = f.sin(z[1] * 0.5)
    return f.expm1(z[0]) * f.cos(z[1]) - 2.0 * half * half, f.exp(z[0]) * f.sin(z[1])


def log(f: Any, z: Pair) -> Pair:
    """log|z|, near |z| = 1 from how far |z|² is from 1; and the angle."""
    large, ratio = _sizes(f, z)
    small = large * ratio
    near = _and(f, large > 0.5, large < 2.0)
    square = (large - 1.0) * (large + 1.0) + small * small
    close = 0.5 * f.log1p(f.select(near, square, 0.0))
    return f.select(near, close, f.log(abs(f, z))), f.atan2(z[1], z[0])


def log1p(f: Any, z: Pair) -> Pair:
    a, b = z
    real, angle = log(f, (a + 1.0, b))
    near = _and(f, f.abs(a) < 0.5, f.abs(b) < 0.5)
    close = 0.5 * f.log1p(f.select(near, a * (a + 2.0) + b * b, 0.0))
    return f.select(near, close, real), angle


def _hyperbolic(f: Any, x: Any) -> Pair:
    """(sinh x, cosh x)."""
    up, down = f.exp(x), f.exp(-x)
    rest = f.expm1(x)
    near = f.abs(x) < 1.0
    safe = f.select(near, rest, 0.0)
    close = (safe + safe / (safe + 1.0)) * 0.5
    return f.select(near, close, (up - down) * 0.5), (up + down) * 0.5


def sin(f: Any, z: Pair) -> Pair:
    sinh, cosh = _hyperbolic(f, z[1])
    return f.sin(z[0]) * cosh, f.cos(z[0]) * sinh


def cos(f: Any, z: Pair) -> Pair:
    sinh, cosh = _hyperbolic(f, z[1])
    return f.cos(z[0]) * cosh, -(f.sin(z[0]) * sinh)


def tanh(f: Any, z: Pair) -> Pair:
    """sinh a · cosh a and sin b · cos b, over sinh² a + cos² b; far out it is ±1."""
    a, b = z
    far = f.abs(a) > 20.0
    inner = f.select(far, 0.0, a)
    sinh, cosh = _hyperbolic(f, inner)
    sin, cos = f.sin(b), f.cos(b)
    bottom = sinh * sinh + cos * cos
    limit = 4.0 * sin * cos * f.exp(-2.0 * f.abs(a))
    real = f.select(far, f.sign(a), sinh * cosh / bottom)
    return real, f.select(far, limit, sin * cos / bottom)


def pow(f: Any, a: Pair, b: Pair) -> Pair:
    """exp(b · log a); 0 to the power of 0 is 1, and to one with a positive real part 0."""
    origin = _and(f, f.eq(a[0], 0.0), f.eq(a[1], 0.0))
    base = f.select(origin, 1.0, a[0]), a[1]
    real, imag = exp(f, mul(f, b, log(f, base)))
    nothing = _and(f, f.eq(b[0], 0.0), f.eq(b[1], 0.0))
    at_zero = f.select(b[0] > 0, 0.0, math.nan)
    real = f.select(origin, f.select(nothing, 1.0, at_zero), real)
    return real, f.select(origin, f.select(nothing, 0.0, at_zero), imag)


def _each(function: str) -> Callable[..., Pair]:
    """A function that treats both parts alike."""

    def apply(f: Any, *operands: Pair) -> Pair:
        call = getattr(f, function)
        return call(*[z[0] for z in operands]), call(*[z[1] for z in operands])

    return apply


PARTS: dict[str, Callable[..., Any]] = {
    "real": lambda f, z: z[0],
    "imag": lambda f, z: z[1],
    "complex": lambda f, a, b: (a, b),
    "conj": lambda f, z: (z[0], -z[1]),
    "mark": lambda f, z: z,
    "detach": lambda f, z: z,
    "eq": lambda f, a, b: _and(f, f.eq(a[0], b[0]), f.eq(a[1], b[1])),
    "ne": lambda f, a, b: _or(f, f.ne(a[0], b[0]), f.ne(a[1], b[1])),
    "select": lambda f, c, a, b: (f.select(c, a[0], b[0]), f.select(c, a[1], b[1])),
    "add": _each("add"),
    "sub": _each("sub"),
    "neg": _each("neg"),
    "mul": mul,
    "div": div,
    "abs": abs,
    "sign": sign,
    "sqrt": sqrt,
    "exp": exp,
    "expm1": expm1,
    "log": log,
    "log1p": log1p,
    "sin": sin,
    "cos": cos,
    "tanh": tanh,
    "pow": pow,
}
