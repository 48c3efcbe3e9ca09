"""Fit the polynomials of `monograph/ir/elementary.py` and print them as Python tuples.

A polynomial is fitted on a dense grid by Lawson's method: least squares, repeated with more
importance given to the points with a large error, until the largest error is about as small as it
can be. Coefficients are then rounded one at a time, lowest power
first, and the others are fitted again, so that the later ones make up for the rounding of the
earlier ones. Run it as `python tools/fit_polynomials.py` to see every table and its error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath  # type: ignore[import-untyped]
import numpy as np

mp = mpmath.mp.clone()
mp.prec = 160
Function = Callable[[mpmath.mpf], mpmath.mpf]


@dataclass(frozen=True)
class Fit:
    """A polynomial of `degree` near `function` on [low, high], by the weighted absolute error."""

    name: str
    formula: str  # what it is for; q is the polynomial
    function: Function
    weight: Function
    low: float
    high: float
    degree: int
    dtype: type = np.float32


def minimax(x: np.ndarray, y: np.ndarray, weight: np.ndarray, powers: list[int]) -> np.ndarray:
    """The coefficients of `powers` that minimise max |weight * (polynomial - y)| over the grid."""
    scale = np.abs(x).max()
    columns = np.stack([(x / scale) ** power for power in powers], axis=1) * weight[:, None]
    target = y * weight
    size = np.linalg.norm(columns, axis=0)
    importance = np.full(len(x), 1 / len(x))
    best, smallest = np.zeros(len(powers)), np.inf
    for _ in range(250):
        root = np.sqrt(importance)
        solution = np.linalg.lstsq(columns / size * root[:, None], target * root, rcond=1e-15)[0]
        error = np.abs(columns / size @ solution - target)
        if error.max() < smallest:
            best, smallest = solution, error.max()
        importance *= error
        importance /= importance.sum()
    coefficients: np.ndarray = best / size / scale ** np.array(powers, dtype=float)
    return coefficients


def grid(problem: Fit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of the interval, denser at its ends, with the function and the weight there."""
    middle, half = (problem.high + problem.low) / 2, (problem.high - problem.low) / 2
    x = middle - half * np.cos(np.linspace(0, np.pi, 400))
    x = x[x != 0]
    y = np.array([float(problem.function(mp.mpf(v))) for v in x])
    weight = np.array([float(abs(problem.weight(mp.mpf(v)))) for v in x])
    return x, y, weight


def largest_error(problem: Fit, coefficients: Sequence[float]) -> float:
    """The largest weighted error of a polynomial, computed without rounding."""
    x, y, weight = grid(problem)
    return float(np.abs(weight * (np.polynomial.polynomial.polyval(x, coefficients) - y)).max())


def fit(problem: Fit) -> tuple[list[float], float]:
    """The rounded coefficients, lowest power first, and their largest weighted error."""
    x, rest, weight = grid(problem)
    coefficients: list[float] = []
    for power in range(problem.degree + 1):
        powers = list(range(power, problem.degree + 1))
        rounded = float(problem.dtype(minimax(x, rest, weight, powers)[0]))
        coefficients.append(rounded)
        rest = rest - rounded * x**power
    return coefficients, largest_error(problem, coefficients)


LN2 = float(np.log(2.0))


def _erfcx(a: mpmath.mpf) -> mpmath.mpf:
    """erfc without its exponential decay, and without the reciprocal one."""
    return mp.erfc(a) * mp.exp(a**2) * (1 + 2 * a)


FITS = [
    Fit(
        "EXP",
        "exp(r) - 1 = r + r² q(r)",
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / mp.expm1(r),
        -LN2 / 2 * 1.001,
        LN2 / 2 * 1.001,
        4,
    ),
    Fit(
        "LOG",
        "log(1 + f) = f + f² q(f)",
        lambda f: (mp.log1p(f) - f) / f**2,
        lambda f: f**2 / mp.log1p(f),
        -0.3334,
        0.3334,
        7,
    ),
    Fit(
        "SIN",
        "sin(r) = r (1 + u q(u)), u = r²",
        lambda u: (mp.sin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u,
        lambda u: u / (mp.sin(mp.sqrt(u)) / mp.sqrt(u)),
        0.0,
        0.8**2,
        2,
    ),
    Fit(
        "COS",
        "cos(r) = 1 + u q(u), u = r²",
        lambda u: (mp.cos(mp.sqrt(u)) - 1) / u,
        lambda u: u / mp.cos(mp.sqrt(u)),
        0.0,
        0.8**2,
        3,
    ),
    Fit(
        "TANH",
        "tanh(r) = r (1 + u q(u)), u = r²",
        lambda u: (mp.tanh(mp.sqrt(u)) / mp.sqrt(u) - 1) / u,
        lambda u: u / (mp.tanh(mp.sqrt(u)) / mp.sqrt(u)),
        0.0,
        0.552**2,
        3,
    ),
    Fit(
        "ERF",
        "log2(erfc(a)) = a q(a)",
        lambda a: mp.log(mp.erfc(a), 2) / a,
        lambda a: a * mp.erfc(a) * mp.log(2) / mp.erf(a),
        0.0,
        3.95,
        9,
    ),
    Fit(
        "ERF_EXP2",
        "1 - 2**r = -r (ln 2) + r² q(r)",
        lambda r: (1 - mp.mpf(2) ** r + r * mp.log(2)) / r**2,
        lambda r: r**2 / (1 - 2**r if r < 0 else 2 - 2**r),
        -0.5,
        0.5,
        4,
    ),
    Fit(
        "POW_LOG2",
        "log2(1 + f) = f q(f)",
        lambda f: mp.log1p(f) / mp.log(2) / f,
        lambda f: f * mp.log(2) / mp.log1p(f),
        -0.3334,
        0.3334,
        13,
        np.float64,
    ),
    Fit(
        "POW_EXP2",
        "2**r = q(r)",
        lambda r: mp.mpf(2) ** r,
        lambda r: mp.mpf(2) ** -r,
        -0.5,
        0.5,
        6,
        np.float64,
    ),
    Fit(
        "EXP2",
        "2**r = 1 + r q(r)",
        lambda r: (mp.mpf(2) ** r - 1) / r,
        lambda r: r / mp.mpf(2) ** r,
        -0.5,
        0.5,
        5,
    ),
    Fit(
        "ASIN",
        "asin(r) = r (1 + u q(u)), u = r²",
        lambda u: (mp.asin(mp.sqrt(u)) / mp.sqrt(u) - 1) / u,
        lambda u: u / (mp.asin(mp.sqrt(u)) / mp.sqrt(u)),
        0.0,
        0.25,
        7,
        np.float64,
    ),
    Fit(
        "SINH",
        "sinh(r) = r (1 + u q(u)), u = r²",
        lambda u: (mp.sinh(mp.sqrt(u)) / mp.sqrt(u) - 1) / u,
        lambda u: u / (mp.sinh(mp.sqrt(u)) / mp.sqrt(u)),
        0.0,
        1.0,
        3,
        np.float64,
    ),
    Fit(
        "ERFC",
        "erfc(a) exp(a²) (1 + 2 a) = q(t), t = (a - 4) / (a + 4)",
        lambda t: _erfcx(4 * (1 + t) / (1 - t)),
        lambda t: 1 / _erfcx(4 * (1 + t) / (1 - t)),
        -1.0,
        0.46,
        13,
        np.float64,
    ),
]


def main() -> None:
    for problem in FITS:
        coefficients, error = fit(problem)
        where = f"from {problem.low:.4g} to {problem.high:.4g}"
        print(f"# {problem.formula}, {where}: error 2**{np.log2(error):.1f}")
        print(f"_{problem.name} = (")
        for value in coefficients:
            digits = repr(value) if problem.dtype is np.float64 else f"{value:.9g}"
            print(f"    {digits},")
        print(")")


if __name__ == "__main__":
    main()
