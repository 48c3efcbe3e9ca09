"""Fit the polynomials of `monograph/ir/double` and print the file of their tables.

Each function is interpolated at Chebyshev points with 60 digits, which is within a bit of the best
polynomial of that degree; the degree is the least whose error is small enough. Coefficients are
then rounded to float64. Run it as `python tools/fit_double.py > monograph/ir/double/tables.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath  # type: ignore[import-untyped]

mp = mpmath.mp.clone()
mp.dps = 60
Function = Callable[[mpmath.mpf], mpmath.mpf]
HEADER = '''"""Coefficients of the polynomials of `monograph/ir/double`, lowest power first.

Written by `tools/fit_double.py`. The errors are relative to the function that is computed.
"""

from __future__ import annotations
'''


@dataclass(frozen=True)
class Fit:
    """q near `function` on [low, high]; `weight` makes its error one of the whole formula."""

    name: str
    formula: str
    function: Function
    weight: Function
    low: float
    high: float
    bits: float = 56.0  # the error is at most 2**-bits

    def points(self, count: int) -> list[mpmath.mpf]:
        """Chebyshev points of the interval, none of them 0, where functions are 0 / 0."""
        middle, half = (mp.mpf(self.high) + self.low) / 2, (mp.mpf(self.high) - self.low) / 2
        found = [middle + half * mp.cos(mp.pi * (k + mp.mpf(0.5)) / count) for k in range(count)]
        return [x if abs(x) > 1e-12 else mp.mpf(1e-12) for x in found]


def interpolate(points: Sequence[mpmath.mpf], values: Sequence[mpmath.mpf]) -> list[mpmath.mpf]:
    """The coefficients of the polynomial through the points, by divided differences."""
    table = list(values)
    for order in range(1, len(points)):
        for k in range(len(points) - 1, order - 1, -1):
            table[k] = (table[k] - table[k - 1]) / (points[k] - points[k - order])
    total = [table[-1]]
    for k in range(len(points) - 2, -1, -1):  # total · (x - points[k]) + table[k]
        shifted = [mp.mpf(0), *total]
        total = [high - points[k] * low for high, low in zip(shifted, [*total, mp.mpf(0)])]
        total[0] += table[k]
    return total


def largest_error(problem: Fit, coefficients: Sequence[float], count: int = 97) -> float:
    """The largest weighted error of a polynomial with these rounded coefficients.

    The first coefficient counts as exact: where it matters, what rounding took is kept apart.
    """
    worst = mp.mpf(0)
    for x in problem.points(count):
        value = mp.polyval([mp.mpf(c) for c in reversed(coefficients)], x)
        worst = max(worst, abs(problem.weight(x) * (value - problem.function(x))))
    return float(worst)


def fit(problem: Fit) -> tuple[list[mpmath.mpf], float]:
    """The coefficients of least degree with an error that is small enough, and that error."""
    for degree in range(3, 40):
        points = problem.points(degree + 1)
        found = interpolate(points, [problem.function(x) for x in points])
        error = largest_error(problem, [found[0], *(float(c) for c in found[1:])])
        if error <= 2.0**-problem.bits:
            return found, error
    raise ValueError(f"{problem.name} needs too many terms")


def _root(function: Function) -> Function:
    """A function of r as one of u = r²."""
    return lambda u: function(mp.sqrt(u))


def _scaled_erfc(t: mpmath.mpf) -> mpmath.mpf:
    """erfc without its exponential decay, and without the reciprocal one, at t's place."""
    a = ERFC_MIDDLE * (1 + t) / (1 - t)
    return mp.erfc(a) * mp.exp(a**2) * (1 + 2 * a)


def _place(a: float) -> float:
    return (a - ERFC_MIDDLE) / (a + ERFC_MIDDLE)


LN2 = mp.log(2)
LOG2E = 1 / LN2
HALF_LN2 = 0.34657359 * 1.001
QUARTER_PI = 0.78539816 * 1.001
ERFC_MIDDLE = 4.0

FITS = [
    Fit(
        "EXP",
        "exp(r) = 1 + r + r² q(r)",
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / mp.exp(r),
        -HALF_LN2,
        HALF_LN2,
    ),
    Fit(
        "EXP2",
        "2**r = 1 + r q(r)",
        lambda r: (mp.mpf(2) ** r - 1) / r,
        lambda r: r / mp.mpf(2) ** r,
        -0.5,
        0.5,
    ),
    Fit(
        "LOG",
        "log((1 + s) / (1 - s)) = 2 s + s³ q(s²)",
        _root(lambda s: (2 * mp.atanh(s) - 2 * s) / s**3),
        _root(lambda s: s**3 / (2 * mp.atanh(s))),
        0.0,
        0.17158**2,
    ),
    Fit(
        "LOG2",
        "log2((1 + s) / (1 - s)) = s (2 / ln 2 + s² q(s²))",
        _root(lambda s: (2 * mp.atanh(s) / s - 2) / s**2 * LOG2E),
        _root(lambda s: s**3 / (2 * mp.atanh(s) * LOG2E)),
        0.0,
        0.17158**2,
        64.5,
    ),
    Fit(
        "SIN",
        "sin(r) = r + r³ q(r²)",
        _root(lambda r: (mp.sin(r) - r) / r**3),
        _root(lambda r: r**3 / mp.sin(r)),
        0.0,
        QUARTER_PI**2,
    ),
    Fit(
        "COS",
        "cos(r) = 1 - r² / 2 + r⁴ q(r²)",
        _root(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4),
        _root(lambda r: r**4 / mp.cos(r)),
        0.0,
        QUARTER_PI**2,
    ),
    Fit(
        "ATAN",
        "atan(t) = t + t³ q(t²)",
        _root(lambda t: (mp.atan(t) - t) / t**3),
        _root(lambda t: t**3 / mp.atan(t)),
        0.0,
        0.4143**2,
    ),
    Fit(
        "TANH",
        "tanh(r) = r + r³ q(r²)",
        _root(lambda r: (mp.tanh(r) - r) / r**3),
        _root(lambda r: r**3 / mp.tanh(r)),
        0.0,
        0.552**2,
    ),
    Fit(
        "SINH",
        "sinh(r) = r + r³ q(r²)",
        _root(lambda r: (mp.sinh(r) - r) / r**3),
        _root(lambda r: r**3 / mp.sinh(r)),
        0.0,
        HALF_LN2**2,
    ),
    Fit(
        "COSH",
        "cosh(r) = 1 + r² q(r²)",
        _root(lambda r: (mp.cosh(r) - 1) / r**2),
        _root(lambda r: r**2 / mp.cosh(r)),
        0.0,
        HALF_LN2**2,
    ),
    Fit(
        "ERF",
        "erf(x) = x + x q(x²)",
        _root(lambda x: mp.erf(x) / x - 1),
        _root(lambda x: x / mp.erf(x)),
        0.0,
        0.2501,
    ),
    Fit(
        "ERFC",
        f"erfc(a) exp(a²) (1 + 2 a) = q(t), t = (a - {ERFC_MIDDLE:g}) / (a + {ERFC_MIDDLE:g})",
        _scaled_erfc,
        lambda t: 1 / _scaled_erfc(t),
        _place(0.5),
        _place(27.3),
    ),
]


KEPT = ("LOG2", "ERFC")  # those of which the first coefficient has twice the digits


def main() -> None:
    print(HEADER)
    for problem in FITS:
        coefficients, error = fit(problem)
        where = f"from {problem.low:.4g} to {problem.high:.4g}"
        print(f"# {problem.formula}, {where}: error 2**{float(mp.log(error, 2)):.1f}")
        print(f"{problem.name} = (")
        for value in coefficients:
            print(f"    {float(value)!r},")
        print(")")
        if problem.name in KEPT:
            rest = coefficients[0] - float(coefficients[0])
            print(f"{problem.name}_LOW = {float(rest)!r}  # to be added to the first")


if __name__ == "__main__":
    main()
