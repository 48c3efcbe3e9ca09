"""Error functions, the normal distribution, and the family of the gamma function.

They are computed in float64 and rounded to the dtype of the operand: a few units in the last place
of float64, and correctly rounded in float32 but for rare ties. Derivatives are those of the
functions, not of the polynomials that they are computed by.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from typing import Any

from .. import errors
from ..ir import build
from ..ir.dtypes import float64
from ..tensor import Tensor
from .activation import sigmoid
from .define import Scalar, function, operator
from .inplace import in_place, into
from .math import floating, some_tensor
from .reduce import logsumexp
from .softmax import log_softmax, softmax
from .special_tables import ERFCX

f = build.functions
_INF, _NAN = numbers.inf, numbers.nan
_PER_ROOT_PI = 2 / numbers.sqrt(numbers.pi)  # the slope of erf at 0


def wide(x: Any) -> Any:
    """x in float64, in which these functions are computed."""
    return build.cast(x, float64)


def narrow(y: Any, x: Any) -> Any:
    """y in the dtype that a function of x has."""
    return build.cast(y, floating(x).dtype)


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """c[0] + c[1] x + c[2] x² + …, by Horner's rule."""
    total = build.const(coefficients[-1], float64)
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def choose(*cases: tuple[Any, Any], otherwise: Any) -> Any:
    """The value of the first case whose condition holds."""
    result = otherwise
    for condition, value in reversed(cases):
        result = build.select(condition, value, result)
    return result


# --- error functions ----------------------------------------------------------------------------


@operator(to=("", "special"), inplace=True)
def erfc(x: Tensor) -> Any:
    """1 - erf(x), accurate where that is small.

    >>> import monograph as mg
    >>> mg.erfc(mg.tensor([0.0])).tolist()
    [1.0]
    """
    return f.erfc(floating(x))


def _erfcx(x: Any) -> Any:
    """exp(x²) erfc(x) in float64."""
    size = f.abs(x)
    place = build.select(f.eq(size, _INF), 1.0, (size - 4.0) / (size + 4.0))
    result = polynomial(place, ERFCX) / (size * 2.0 + 1.0)
    return build.select(x < 0.0, f.exp(x * x) * 2.0 - result, result)


@operator(to="special", method=False)
def erfcx(x: Tensor) -> Any:
    """exp(x²) · erfc(x), which neither vanishes nor overflows for large x.

    >>> import monograph as mg
    >>> mg.special.erfcx(mg.tensor([0.0])).tolist()
    [1.0]
    """
    return narrow(_erfcx(wide(x)), x)


@erfcx.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * (floating(x) * y * 2.0 - _PER_ROOT_PI),)


def _inverse(y: Any, rest: Any) -> Any:
    """The x >= 0 with erf(x) = y and erfc(x) = rest, for y + rest = 1 in float64.

    An approximation by elementary functions is improved by Newton's rule: by erf where y is small,
    by the logarithm of erfc where the rest is.
    """
    a = 0.147
    logarithm = f.log(rest * (y + 1.0))
    middle = logarithm * 0.5 + 2 / (numbers.pi * a)
    start = f.sqrt(f.sqrt(middle * middle - logarithm / a) - middle)
    small = y < 0.5
    x = build.select(y < 1e-3, y / _PER_ROOT_PI, start)
    target = f.log(rest)
    for _ in range(4):
        # Far out, erfc(x) is erfcx(x) exp(-x²).
        scaled = _erfcx(x)
        square = x * x
        slope = f.exp(-square) * _PER_ROOT_PI
        near = (f.erf(x) - y) / slope
        far = (target - f.log(scaled) + square) * scaled / _PER_ROOT_PI
        x = x - build.select(small, near, far)
    return build.select(f.eq(rest, 0.0), _INF, x)


@operator(to=("", "special"), inplace=True)
def erfinv(x: Tensor) -> Any:
    """The inverse of erf.

    >>> import monograph as mg
    >>> mg.erfinv(mg.tensor([0.0, 1.0])).tolist()
    [0.0, inf]
    """
    y = wide(x)
    size = f.abs(y)
    result = f.copysign(_inverse(size, 1.0 - size), y)
    return narrow(choose((size <= 1.0, result), otherwise=_NAN), x)


erfinv.operator.saves = {"x": ("x",)}


@erfinv.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * f.exp(y * y) * (1 / _PER_ROOT_PI),)


# --- the normal distribution --------------------------------------------------------------------

_ROOT_HALF = numbers.sqrt(0.5)


@operator(to="special", method=False)
def ndtr(x: Tensor) -> Any:
    """The probability that a normally distributed number is below x.

    >>> import monograph as mg
    >>> mg.special.ndtr(mg.tensor([0.0])).tolist()
    [0.5]
    """
    return narrow(f.erfc(wide(x) * -_ROOT_HALF) * 0.5, x)


@operator(to="special", method=False)
def log_ndtr(x: Tensor) -> Any:
    """log(ndtr(x)), also where ndtr(x) is tiny.

    >>> import monograph as mg
    >>> mg.special.log_ndtr(mg.tensor([-100.0])).item()
    -5005.5244140625
    """
    z = wide(x) * _ROOT_HALF
    low = f.log(_erfcx(-z) * 0.5) - z * z
    high = f.log1p(f.erfc(z) * -0.5)
    return narrow(build.select(z < -_ROOT_HALF, low, high), x)


@log_ndtr.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g / erfcx(floating(x) * -_ROOT_HALF) * numbers.sqrt(2 / numbers.pi),)


@operator(to="special", method=False)
def ndtri(x: Tensor) -> Any:
    """The inverse of ndtr.

    >>> import monograph as mg
    >>> mg.special.ndtri(mg.tensor([0.5])).tolist()
    [0.0]
    """
    p = wide(x)
    upper = p >= 0.5
    rest = build.select(upper, 1.0 - p, p) * 2.0
    size = _inverse(1.0 - rest, rest) * numbers.sqrt(2)
    result = build.select(upper, size, -size)
    inside = getattr(f, "and")(p >= 0.0, p <= 1.0)
    return narrow(choose((inside, result), otherwise=_NAN), x)


@ndtri.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * f.exp(y * y * 0.5) * numbers.sqrt(2 * numbers.pi),)


@operator(to="special", method=False)
def entr(x: Tensor) -> Any:
    """-x · log(x), 0 at 0, and minus infinity below.

    >>> import monograph as mg
    >>> mg.special.entr(mg.tensor([0.0, 1.0])).tolist()
    [0.0, -0.0]
    """
    x = floating(x)
    inside = -(x * f.log(x))
    return choose((f.eq(x, 0.0), 0.0), (x < 0.0, -_INF), otherwise=inside)


@entr.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * (-1.0 - f.log(floating(x))),)


# --- gamma --------------------------------------------------------------------------------------


@operator(to=("", "special"), inplace=True)
def lgamma(x: Tensor) -> Any:
    """log |Γ(x)|.

    >>> import monograph as mg
    >>> mg.lgamma(mg.tensor([1.0, 2.0])).tolist()
    [0.0, 0.0]
    """
    return f.lgamma(floating(x))


@lgamma.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * digamma(x),)


# B₂ₙ / (2 n) of Bernoulli's numbers.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_DIGAMMA = tuple([b / (2 * n) for n, b in enumerate(_BERNOULLI, 1)])
_SHIFT = 10


@operator(to=("", "special"), inplace=True)
def digamma(x: Tensor) -> Any:
    """The derivative of lgamma.

    >>> import monograph as mg
    >>> round(mg.digamma(mg.tensor([1.0])).item(), 4)
    -0.5772
    """
    given = wide(x)
    below = given < 0.5
    z = build.select(below, 1.0 - given, given)
    # ψ(z) = ψ(z + 10) - Σ 1 / (z + k), and from 10 on by the asymptotic series.
    far = z + float(_SHIFT)
    result = f.log(far) - 0.5 / far
    square = 1.0 / (far * far)
    result = result - square * polynomial(square, _DIGAMMA)
    for k in reversed(range(_SHIFT)):
        result = result - 1.0 / (z + float(k))
    # ψ(x) = ψ(1 - x) - π / tan(π x), with an exact rest instead of x.
    mirrored = result - numbers.pi / f.tan((given - f.round(given)) * numbers.pi)
    result = build.select(below, mirrored, result)
    pole = getattr(f, "and")(given < 0.0, f.eq(f.floor(given), given))
    return narrow(
        choose((f.eq(given, 0.0), f.copysign(_INF, -given)), (pole, _NAN), otherwise=result), x
    )


@digamma.derivative
def _(g: Any, y: Any, x: Any) -> Any:
    return (g * _polygamma_of(floating(x), 1),)


# (2 k)! / B₂ₖ, by which the terms of Euler and Maclaurin's sum are divided.
_EULER_MACLAURIN = tuple([
    numbers.factorial(2 * n) / b
    for n, b in enumerate((*_BERNOULLI, 43867 / 798, -174611 / 330, 854513 / 138), 1)
])  # fmt: skip


def hurwitz(s: Any, q: Any) -> Any:
    """Σ (q + k)**-s over k >= 0 in float64: ten terms, and the rest by Euler and Maclaurin."""
    total = f.pow(q, -s)
    for k in range(1, _SHIFT):
        total = total + f.pow(q + float(k), -s)
    end = q + float(_SHIFT)
    last = f.pow(end, -s)
    total = total + last * end / (s - 1.0) + last * 0.5
    factor, power = s, last / end
    for k, divisor in enumerate(_EULER_MACLAURIN):
        total = total + factor * power / divisor
        factor = factor * (s + float(2 * k + 1)) * (s + float(2 * k + 2))
        power = power / (end * end)
    return total


@operator(to="special", method=False)
def zeta(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """The Hurwitz zeta function, Σ (other + k)**-x over all k from 0 on.

    >>> import monograph as mg
    >>> round(mg.special.zeta(mg.tensor([2.0]), 1.0).item(), 4)
    1.6449
    """
    some_tensor(x, other)
    common = build.common_dtype([x, other])
    common = floating(build.const(0, common)).dtype
    s, q = [build.as_node(part, float64) for part in (x, other)]
    # Below zero, for whole x, the sum is finite between the poles; eight terms more are enough.
    start = build.select(q < 0.0, q, 0.0)
    steps = -f.floor(start)
    total = hurwitz(s, q + steps)
    for k in range(_BELOW):
        term = build.select(steps > float(k), f.pow(q + float(k), -s), 0.0)
        total = total + term
    whole = f.eq(f.floor(q), q)
    pole = choose((whole, _INF), (f.ne(f.floor(s), s), _NAN), otherwise=total)
    result = choose((f.eq(s, 1.0), _INF), (s < 1.0, _NAN), (q <= 0.0, pole), otherwise=total)
    return build.cast(result, common)


_BELOW = 16


def _cotangent_powers(n: int) -> list[float]:
    """dⁿ/dzⁿ cot(z) as a polynomial in cot(z), lowest power first."""
    powers = [0.0, 1.0]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(powers)][1:]
        powers = [0.0] * (len(slope) + 2)
        for k, c in enumerate(slope):
            powers[k] -= c
            powers[k + 2] -= c
    return powers


def _polygamma_of(x: Any, n: int) -> Any:
    if n == 0:
        return digamma(x)
    return polygamma_operator(x, n)


@operator(to=None, method=False, name="polygamma")
def polygamma_operator(x: Tensor, n: int) -> Any:
    """The n-th derivative of digamma, n > 0."""
    given = wide(x)
    below = given < 0.5
    z = build.select(below, 1.0 - given, given)
    sign = 1.0 if n % 2 else -1.0
    order = build.const(n + 1, float64)
    result = hurwitz(order, z) * (sign * numbers.factorial(n))
    # By the n-th derivative of ψ(1 - x) - ψ(x) = π cot(π x).
    cotangent = 1.0 / f.tan((given - f.round(given)) * numbers.pi)
    turn = polynomial(cotangent, _cotangent_powers(n)) * numbers.pi ** (n + 1)
    result = build.select(below, result * -sign - turn, result)
    pole = getattr(f, "and")(given <= 0.0, f.eq(f.floor(given), given))
    return narrow(choose((pole, sign * _INF), otherwise=result), x)


@polygamma_operator.derivative
def _(g: Any, y: Any, x: Any, n: int) -> Any:
    return (g * polygamma_operator(floating(x), n + 1),)


@function(to=("", "special"))
def polygamma(n: int, input: Tensor, *, out: Any = None) -> Tensor:
    """The n-th derivative of digamma.

    >>> import monograph as mg
    >>> round(mg.polygamma(1, mg.tensor([1.0])).item(), 4)
    1.6449
    """
    if isinstance(n, Tensor) or not isinstance(input, Tensor):
        raise TypeError("polygamma takes a number and a Tensor")
    if n < 0:
        raise errors.OperandError(f"polygamma: n must not be negative, got {n}")
    made: Tensor = _polygamma_of(input, n)
    return made if out is None else into(out, made)


@operator(inplace=True)
def mvlgamma(x: Tensor, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p.

    >>> import monograph as mg
    >>> mg.mvlgamma(mg.tensor([1.0]), 1).tolist()
    [0.0]
    """
    if p < 1:
        raise ValueError(f"p must be at least 1, got {p}")
    x = floating(x)
    total = build.const(p * (p - 1) / 4 * numbers.log(numbers.pi), x.dtype)
    for k in range(p):
        total = total + lgamma(x - k / 2)
    return total


def _polygamma(x: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma, of each element."""
    return polygamma(n, x)


def _attach() -> None:
    """Names that PyTorch has in `special` only, and methods whose arguments are turned round."""
    for name, made in (
        ("expit", sigmoid), ("psi", digamma), ("gammaln", lgamma), ("multigammaln", mvlgamma),
        ("logsumexp", logsumexp), ("softmax", softmax), ("log_softmax", log_softmax),
    ):  # fmt: skip
        function(made, name=name, to="special")
    Tensor.polygamma = _polygamma  # type: ignore[attr-defined]
    Tensor.polygamma_ = in_place(_polygamma, "polygamma")  # type: ignore[attr-defined]


_attach()
