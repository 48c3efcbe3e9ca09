"""Orthogonal polynomials of a degree that is data: Chebyshev's, Hermite's, Laguerre's, Legendre's.

Chebyshev's are waves in the angle whose cosine is x, and have a closed form. The others follow a
recurrence; how many steps it needs is read from the degrees at the call. A degree is a whole
number (a fraction is cut off); below zero the polynomial is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import build
from ..ir.dtypes import float64
from ..tensor import Tensor
from .define import Scalar, function, operator
from .inplace import into
from .math import floating, some_tensor
from .special import choose

f = build.functions
_NAN = float("nan")


def _operands(x: Any, n: Any) -> tuple[Any, Any, Any]:
    """x and the whole degree in float64, and the dtype of the result."""
    some_tensor(x, n)
    dtype = floating(build.const(0, build.common_dtype([x, n]))).dtype
    return build.as_node(x, float64), f.trunc(build.as_node(n, float64)), dtype


# --- Chebyshev ----------------------------------------------------------------------------------


def _waves(x: Any) -> tuple[Any, Any, Any]:
    """Sine and cosine of multiples of the angle of |x|, hyperbolic ones beyond 1, and where."""
    size = f.abs(x)
    beyond = size > 1.0
    angle = build.select(
        beyond, f.acosh(build.select(beyond, size, 1.0)), f.acos(build.select(beyond, 1.0, size))
    )

    def sine(multiple: Any) -> Any:
        return build.select(beyond, f.sinh(angle * multiple), f.sin(angle * multiple))

    def cosine(multiple: Any) -> Any:
        return build.select(beyond, f.cosh(angle * multiple), f.cos(angle * multiple))

    return sine, cosine, f.eq(size, 1.0)


def _first(x: Any, n: Any) -> Any:
    _, cosine, _ = _waves(x)
    return cosine(n)


def _second(x: Any, n: Any) -> Any:
    sine, _, one = _waves(x)
    return build.select(one, n + 1.0, sine(n + 1.0) / build.select(one, 1.0, sine(1.0)))


def _third(x: Any, n: Any) -> Any:
    _, cosine, _ = _waves(x)
    return cosine(n + 0.5) / cosine(0.5)


def _fourth(x: Any, n: Any) -> Any:
    sine, _, one = _waves(x)
    return build.select(one, n * 2.0 + 1.0, sine(n + 0.5) / build.select(one, 1.0, sine(0.5)))


def _chebyshev(x: Any, n: Any, right: Callable[..., Any], left: Callable[..., Any]) -> Any:
    """`right` of |x|; where x is negative, `left` of |x| times (-1)**n."""
    z, degree, dtype = _operands(x, n)
    odd = f.ne(f.remainder(degree, 2.0), 0.0)
    mirrored = left(z, degree)
    mirrored = build.select(odd, -mirrored, mirrored)
    result = build.select(z < 0.0, mirrored, right(z, degree))
    result = choose((degree < 0.0, 0.0), (f.eq(degree, 0.0), 1.0), otherwise=result)
    return build.cast(result, dtype)


_KINDS = {"t": (_first, _first), "u": (_second, _second), "v": (_third, _fourth),
          "w": (_fourth, _third)}  # fmt: skip


@operator(to="special", method=False, smooth=False)
def chebyshev_polynomial_t(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the first kind, cos(n acos(x)).

    >>> import monograph as mg
    >>> mg.special.chebyshev_polynomial_t(mg.tensor([2.0]), 2).tolist()
    [7.0]
    """
    return _chebyshev(x, n, *_KINDS["t"])


@operator(to="special", method=False, smooth=False)
def chebyshev_polynomial_u(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the second kind.

    >>> import monograph as mg
    >>> mg.special.chebyshev_polynomial_u(mg.tensor([1.0]), 2).tolist()
    [3.0]
    """
    return _chebyshev(x, n, *_KINDS["u"])


@operator(to="special", method=False, smooth=False)
def chebyshev_polynomial_v(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the third kind.

    >>> import monograph as mg
    >>> mg.special.chebyshev_polynomial_v(mg.tensor([1.0]), 2).tolist()
    [1.0]
    """
    return _chebyshev(x, n, *_KINDS["v"])


@operator(to="special", method=False, smooth=False)
def chebyshev_polynomial_w(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the fourth kind.

    >>> import monograph as mg
    >>> mg.special.chebyshev_polynomial_w(mg.tensor([1.0]), 2).tolist()
    [5.0]
    """
    return _chebyshev(x, n, *_KINDS["w"])


def _shifted(x: Any, n: Any, kind: str) -> Any:
    z, degree, dtype = _operands(x, n)
    return build.cast(_chebyshev(z * 2.0 - 1.0, degree, *_KINDS[kind]), dtype)


@operator(to="special", method=False, smooth=False)
def shifted_chebyshev_polynomial_t(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the first kind, of 2 x - 1.

    >>> import monograph as mg
    >>> mg.special.shifted_chebyshev_polynomial_t(mg.tensor([1.0]), 2).tolist()
    [1.0]
    """
    return _shifted(x, n, "t")


@operator(to="special", method=False, smooth=False)
def shifted_chebyshev_polynomial_u(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the second kind, of 2 x - 1.

    >>> import monograph as mg
    >>> mg.special.shifted_chebyshev_polynomial_u(mg.tensor([1.0]), 2).tolist()
    [3.0]
    """
    return _shifted(x, n, "u")


@operator(to="special", method=False, smooth=False)
def shifted_chebyshev_polynomial_v(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the third kind, of 2 x - 1.

    >>> import monograph as mg
    >>> mg.special.shifted_chebyshev_polynomial_v(mg.tensor([1.0]), 2).tolist()
    [1.0]
    """
    return _shifted(x, n, "v")


@operator(to="special", method=False, smooth=False)
def shifted_chebyshev_polynomial_w(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
    """Chebyshev's polynomial of the fourth kind, of 2 x - 1.

    >>> import monograph as mg
    >>> mg.special.shifted_chebyshev_polynomial_w(mg.tensor([1.0]), 2).tolist()
    [5.0]
    """
    return _shifted(x, n, "w")


# --- recurrences --------------------------------------------------------------------------------

# (p(k - 1), p(k), x, k) -> p(k + 1)
_STEPS: dict[str, Callable[..., Any]] = {
    "hermite_h": lambda before, here, x, k: here * x * 2.0 - before * float(2 * k),
    "hermite_he": lambda before, here, x, k: here * x - before * float(k),
    "laguerre": lambda before, here, x, k: (
        (here * (float(2 * k + 1) - x) - before * float(k)) / float(k + 1)
    ),
    "legendre": lambda before, here, x, k: (
        (here * x * float(2 * k + 1) - before * float(k)) / float(k + 1)
    ),
}
_LINEAR: dict[str, Callable[..., Any]] = {
    "hermite_h": lambda x: x * 2.0, "hermite_he": lambda x: x, "laguerre": lambda x: 1.0 - x,
    "legendre": lambda x: x,
}  # fmt: skip
# From here on PyTorch gives NaN for Hermite's: numbers would not fit.
_LARGEST = {"hermite_h": 512, "hermite_he": 512}


@operator(to=None, method=False, smooth=False)
def recurrence(x: Tensor | Scalar, n: Tensor | Scalar, kind: str, steps: int) -> Any:
    """The polynomial of degree n, all of which are at most `steps`."""
    z, degree, dtype = _operands(x, n)
    limit = _LARGEST.get(kind, steps)
    if kind in _LARGEST and dtype is not float64:
        limit = 128
    before, here = build.const(1.0, float64), _LINEAR[kind](z)
    result = build.select(f.eq(degree, 0.0), before, here)
    for k in range(1, min(steps, limit)):
        before, here = here, _STEPS[kind](before, here, z, k)
        result = build.select(f.eq(degree, float(k + 1)), here, result)
    result = choose((degree < 0.0, 0.0), (degree > float(limit), _NAN), otherwise=result)
    return build.cast(result, dtype)


def _by_recurrence(kind: str, input: Any, n: Any, out: Any) -> Tensor:
    highest = n
    if isinstance(n, Tensor):
        highest = n.max().item() if n.numel() else 0
    made: Tensor = recurrence(input, n, kind, max(int(highest), 1))
    return made if out is None else into(out, made)


@function(to="special")
def hermite_polynomial_h(input: Any, n: Any, *, out: Any = None) -> Tensor:
    """Hermite's polynomial, as physicists define it.

    >>> import monograph as mg
    >>> mg.special.hermite_polynomial_h(mg.tensor([1.0]), 2).tolist()
    [2.0]
    """
    return _by_recurrence("hermite_h", input, n, out)


@function(to="special")
def hermite_polynomial_he(input: Any, n: Any, *, out: Any = None) -> Tensor:
    """Hermite's polynomial, as in probability.

    >>> import monograph as mg
    >>> mg.special.hermite_polynomial_he(mg.tensor([2.0]), 2).tolist()
    [3.0]
    """
    return _by_recurrence("hermite_he", input, n, out)


@function(to="special")
def laguerre_polynomial_l(input: Any, n: Any, *, out: Any = None) -> Tensor:
    """Laguerre's polynomial.

    >>> import monograph as mg
    >>> mg.special.laguerre_polynomial_l(mg.tensor([2.0]), 2).tolist()
    [-1.0]
    """
    return _by_recurrence("laguerre", input, n, out)


@function(to="special")
def legendre_polynomial_p(input: Any, n: Any, *, out: Any = None) -> Tensor:
    """Legendre's polynomial.

    >>> import monograph as mg
    >>> mg.special.legendre_polynomial_p(mg.tensor([1.0]), 3).tolist()
    [1.0]
    """
    return _by_recurrence("legendre", input, n, out)
