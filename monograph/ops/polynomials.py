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


def _chebyshev(z: Any, degree: Any, right: Callable[..., Any], left: Callable[..., Any]) -> Any:
    """`right` of |z|; where z is negative, `left` of |z| times (-1)**degree."""
    odd = f.ne(f.remainder(degree, 2.0), 0.0)
    mirrored = left(z, degree)
    mirrored = build.select(odd, -mirrored, mirrored)
    result = build.select(z < 0.0, mirrored, right(z, degree))
    return choose((degree < 0.0, 0.0), (f.eq(degree, 0.0), 1.0), otherwise=result)


# By PyTorch's letter: which kind it is, its formulas for positive and negative x, and its value for
# degree 2 at 1.
_KINDS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any], float]] = {
    "t": ("first", _first, _first, 1.0),
    "u": ("second", _second, _second, 3.0),
    "v": ("third", _third, _fourth, 1.0),
    "w": ("fourth", _fourth, _third, 5.0),
}


def _publish_chebyshev(letter: str, shifted: bool) -> Any:
    """Declare the polynomial of one kind: of x, or of 2 x - 1."""
    kind, right, left, at_1 = _KINDS[letter]
    name = f"{'shifted_' if shifted else ''}chebyshev_polynomial_{letter}"

    def polynomial(x: Tensor | Scalar, n: Tensor | Scalar) -> Any:
        z, degree, dtype = _operands(x, n)
        return build.cast(_chebyshev(z * 2.0 - 1.0 if shifted else z, degree, right, left), dtype)

    polynomial.__name__ = name
    polynomial.__doc__ = f"""Chebyshev's polynomial of the {kind} kind{", of 2 x - 1" * shifted}.

    >>> import monograph as mg
    >>> mg.special.{name}(mg.tensor([1.0]), 2).tolist()
    [{at_1}]
    """
    return operator(polynomial, to="special", method=False, smooth=False)


(
    chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w,
) = (_publish_chebyshev(letter, shifted=False) for letter in _KINDS)  # fmt: skip
(
    shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
) = (_publish_chebyshev(letter, shifted=True) for letter in _KINDS)  # fmt: skip


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


# By its recurrence: its name, a word for it, and its value for degree 2 at 2.
_NAMES = {
    "hermite_h": ("hermite_polynomial_h", "Hermite's polynomial, as physicists define it", 14.0),
    "hermite_he": ("hermite_polynomial_he", "Hermite's polynomial, as in probability", 3.0),
    "laguerre": ("laguerre_polynomial_l", "Laguerre's polynomial", -1.0),
    "legendre": ("legendre_polynomial_p", "Legendre's polynomial", 5.5),
}


def _publish_recurrence(kind: str) -> Any:
    """Declare the polynomial of one recurrence."""
    name, words, at_2 = _NAMES[kind]

    def polynomial(input: Any, n: Any, *, out: Any = None) -> Tensor:
        return _by_recurrence(kind, input, n, out)

    polynomial.__name__ = polynomial.__qualname__ = name
    polynomial.__doc__ = f"""{words}.

    >>> import monograph as mg
    >>> mg.special.{name}(mg.tensor([2.0]), 2).tolist()
    [{at_2}]
    """
    return function(polynomial, to="special")


(
    hermite_polynomial_h, hermite_polynomial_he, laguerre_polynomial_l, legendre_polynomial_p,
) = (_publish_recurrence(kind) for kind in _NAMES)  # fmt: skip
