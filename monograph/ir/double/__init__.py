"""The elementary functions in float64, by name, written in the primitive scalar operations.

They are to float64 what `ir/elementary.py` and `ir/transcendental.py` are to float32, and follow
the same habits: no branches, no tables of values, every product that is added to something an
explicit `fma`. Where float32 has float64 to work in, float64 has sums of two numbers (`twofold`).
Errors are in units in the last place (ulp), the largest of some millions of samples.
"""

from .angle import acos, asin, atan, atan2, cos, hypot, sin, tan
from .error_function import erf, erfc
from .exponential import cosh, exp, exp2, expm1, sinh, tanh
from .logarithm import acosh, asinh, atanh, log, log1p, log2, log10
from .power import pow

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "erfc",
    "exp", "exp2", "expm1", "hypot", "log", "log10", "log1p", "log2", "pow", "sin", "sinh", "tan",
    "tanh",
]  # fmt: skip
