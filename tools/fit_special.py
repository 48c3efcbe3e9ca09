"""Fit the polynomials of `monograph/ops/special_tables.py` and print that file.

The functions are smooth over a whole range once their growth, decay and oscillation are divided
out. They are interpolated at Chebyshev points with many digits, and the interpolating polynomial is
cut where its last terms no longer count in float64. Run it as `python tools/fit_special.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath  # type: ignore[import-untyped]

mp = mpmath.mp.clone()
mp.dps = 60
Function = Callable[[mpmath.mpf], mpmath.mpf]
POINTS = 64


@dataclass(frozen=True)
class Fit:
    """q(t) near `function` on [-1, 1]."""

    name: str
    formula: str
    function: Function


def chebyshev(function: Function) -> list[mpmath.mpf]:
    """The coefficients of the interpolation at POINTS Chebyshev points."""
    angles = [mp.pi * (mp.mpf(k) + 0.5) / POINTS for k in range(POINTS)]
    values = [function(mp.cos(angle)) for angle in angles]
    found = []
    for n in range(POINTS):
        total = mp.fsum(v * mp.cos(n * angle) for v, angle in zip(values, angles, strict=True))
        found.append(total * 2 / POINTS)
    found[0] /= 2
    return found


def powers(coefficients: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """A sum of Chebyshev polynomials as one of powers, lowest first."""
    before, here = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    total = [coefficients[0]]
    for coefficient in coefficients[1:]:
        total += [mp.mpf(0)] * (len(here) - len(total))
        total = [t + coefficient * h for t, h in zip(total, here, strict=True)]
        after = [mp.mpf(0), *[2 * h for h in here]]
        for k, b in enumerate(before):
            after[k] -= b
        before, here = here, after
    return total


def fit(problem: Fit) -> tuple[list[float], float]:
    """The coefficients by power, and how much the terms left out add up to, at most."""
    found = chebyshev(problem.function)
    count = len(found)
    while count > 1 and mp.fsum(abs(c) for c in found[count - 1 :]) < mp.mpf(2) ** -55:
        count -= 1
    rest = float(mp.fsum(abs(c) for c in found[count:]))
    return [float(c) for c in powers(found[:count])], rest


def _far(t: mpmath.mpf, start: float) -> mpmath.mpf:
    """x >= start, where t = 2 start / x - 1."""
    return 2 * start / (t + 1)


def _erfcx(t: mpmath.mpf) -> mpmath.mpf:
    a = 4 * (1 + t) / (1 - t)
    if a > 40:  # the asymptotic series: exp(a²) would be too large
        total = term = mp.mpf(1)
        for k in range(1, 60):
            term *= -(2 * k - 1) / (2 * a * a)
            if abs(term) < mp.mpf(10) ** -45:
                break
            total += term
        return total / (a * mp.sqrt(mp.pi)) * (1 + 2 * a)
    return mp.erfc(a) * mp.exp(a * a) * (1 + 2 * a)


def _scaled_i(order: int) -> Function:
    def function(t: mpmath.mpf) -> mpmath.mpf:
        x = _far(t, 8)
        return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)

    return function


def _scaled_k(order: int) -> Function:
    def function(t: mpmath.mpf) -> mpmath.mpf:
        x = _far(t, 2)
        return mp.besselk(order, x) * mp.exp(x) * mp.sqrt(x)

    return function


def _wave(order: int, part: str) -> Function:
    """Of J and Y without their oscillation: P, and Q times x."""

    def function(t: mpmath.mpf) -> mpmath.mpf:
        x = 8 / mp.sqrt((t + 1) / 2)
        chi = x - mp.pi / 4 - order * mp.pi / 2
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        root = mp.sqrt(mp.pi * x / 2)
        if part == "P":
            return root * (j * mp.cos(chi) + y * mp.sin(chi))
        return root * (y * mp.cos(chi) - j * mp.sin(chi)) * x

    return function


_AIRY_FAR = mp.mpf(2) / 3 * mp.mpf(3) ** 1.5  # ζ of x = 3
_AIRY_WAVE = mp.mpf(2) / 3 * mp.mpf(5) ** 1.5  # ζ of x = -5


def _airy_far(t: mpmath.mpf) -> mpmath.mpf:
    zeta = 2 * _AIRY_FAR / (t + 1)
    x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
    return mp.airyai(x) * mp.exp(zeta) * mp.root(x, 4)


def _airy_wave(part: str) -> Function:
    """Of Ai and Bi below zero without their oscillation: F, and G times ζ."""

    def function(t: mpmath.mpf) -> mpmath.mpf:
        zeta = _AIRY_WAVE / mp.sqrt((t + 1) / 2)
        x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
        sine, cosine = mp.sin(zeta + mp.pi / 4), mp.cos(zeta + mp.pi / 4)
        a, b = mp.airyai(-x), mp.airybi(-x)
        if part == "F":
            return (a * sine + b * cosine) * mp.root(x, 4)
        return (b * sine - a * cosine) * mp.root(x, 4) * zeta

    return function


FITS = [
    Fit("ERFCX", "exp(x²) erfc(x) (1 + 2 x) = q(t), t = (x - 4) / (x + 4), x >= 0", _erfcx),
    Fit("I0E", "exp(-x) I₀(x) sqrt(x) = q(t), t = 16 / x - 1, x >= 8", _scaled_i(0)),
    Fit("I1E", "exp(-x) I₁(x) sqrt(x) = q(t), t = 16 / x - 1, x >= 8", _scaled_i(1)),
    Fit("K0E", "exp(x) K₀(x) sqrt(x) = q(t), t = 4 / x - 1, x >= 2", _scaled_k(0)),
    Fit("K1E", "exp(x) K₁(x) sqrt(x) = q(t), t = 4 / x - 1, x >= 2", _scaled_k(1)),
    Fit("P0", "J₀, Y₀ of x >= 8: the part in phase, t = 128 / x² - 1", _wave(0, "P")),
    Fit("Q0", "J₀, Y₀ of x >= 8: the part a quarter behind, times x", _wave(0, "Q")),
    Fit("P1", "J₁, Y₁ of x >= 8: the part in phase, t = 128 / x² - 1", _wave(1, "P")),
    Fit("Q1", "J₁, Y₁ of x >= 8: the part a quarter behind, times x", _wave(1, "Q")),
    Fit("AIRY_FAR", "Ai(x) exp(ζ) x**¼ = q(t), t = 2 ζ(3) / ζ(x) - 1, x >= 3", _airy_far),
    Fit("AIRY_F", "Ai(-x), x >= 5: the part in phase, t = 2 (ζ(5) / ζ(x))² - 1", _airy_wave("F")),
    Fit("AIRY_G", "Ai(-x), x >= 5: the part a quarter behind, times ζ", _airy_wave("G")),
]


def main() -> None:
    print(
        '"""Coefficients of special functions, lowest power first: see `tools/fit_special.py`."""'
    )
    for problem in FITS:
        coefficients, rest = fit(problem)
        print(f"\n# {problem.formula}: error {rest:.0e}")
        print(f"{problem.name} = (")
        for value in coefficients:
            print(f"    {value!r},")
        print(")")


if __name__ == "__main__":
    main()
