"""The scalar functions that `Map` applies, each described once.

A `Scalar` holds all that is known of a function of numbers: how many operands, which dtype comes
out, its NumPy meaning, its derivative (built with node arithmetic), and its text for Triton. A
function that machines do not have (exp, tanh, …) also has a `definition` in terms of the
primitive ones, run by any handler with methods named like the primitives: the LLVM emitter emits
it, NumPy evaluates it in tests. To add a scalar function, add one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import elementary, transcendental
from .dtypes import DType

# (f, g, y, *operands) -> cotangent of one operand; f is the namespace of node constructors.
Partial = Callable[..., Any] | None


@dataclass(frozen=True, eq=False)
class Scalar:
    """One function of numbers.

    `result` is the dtype that comes out: "same" (as the last operand), "bool", "real" (of the
    parts of a complex operand), "complex" (with such parts) or "given".
    """

    name: str
    arity: int
    numpy: Callable[..., Any]
    partials: tuple[Partial, ...] = ()
    result: str = "same"
    commutative: bool = False
    dear: bool = False  # costs many instructions: not to be recomputed lightly
    definition: Callable[..., Any] | None = None
    triton: str = ""


TABLE: dict[str, Scalar] = {}


def scalar(
    name: str,
    numpy: Callable[..., Any],
    *partials: Partial,
    triton: str,
    arity: int | None = None,
    result: str = "same",
    commutative: bool = False,
    definition: Callable[..., Any] | None = None,
    dear: bool | None = None,
) -> Scalar:
    """Declare a scalar function; the number of partials gives the arity unless it is stated."""
    count = len(partials) if arity is None else arity
    costly = definition is not None if dear is None else dear
    entry = Scalar(name, count, numpy, partials, result, commutative, costly, definition, triton)
    TABLE[name] = entry
    return entry


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*operands: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*operands)

    call.loud = function  # type: ignore[attr-defined]
    return call


def loud(entry: Scalar, dtype: DType) -> Callable[..., Any]:
    """The NumPy meaning on operands of a dtype, where NumPy's warnings are off already."""
    if entry.name == "div" and dtype.is_smooth:
        return np.divide
    function: Callable[..., Any] = getattr(entry.numpy, "loud", entry.numpy)
    return function


def _log10(x: Any) -> Any:
    """Rounded once: of float32 NumPy's own is above 2 at 100."""
    with np.errstate(all="ignore"):
        return np.log10(x, dtype=np.float64).astype(x.dtype)


def _erf(x: Any) -> Any:
    from math import erf

    return np.vectorize(erf, otypes=[np.float64])(x).astype(x.dtype)


def _by_library(name: str) -> Callable[..., Any]:
    """A function of Python's `math`, on arrays; where it raises it has a pole."""
    import math

    function = getattr(math, name)

    def one(x: float) -> float:
        try:
            return function(x)  # type: ignore[no-any-return]
        except (ValueError, OverflowError):
            return math.inf

    def call(x: Any) -> Any:
        return np.vectorize(one, otypes=[np.float64])(x).astype(x.dtype)

    return call


def _fmod(a: Any, b: Any) -> Any:
    """The rest with the sign of a; of integers 0 where b is 0."""
    if a.dtype.kind == "f":
        return np.fmod(a, b)
    return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _toward(f: Any, g: Any, y: Any, part: Any) -> Any:
    """g · part / y, and 0 where y is 0: the derivative of a length."""
    origin = f.eq(y, 0.0)
    return f.select(origin, 0.0, g * part / f.select(origin, 1.0, y))


def _divide(a: Any, b: Any) -> Any:
    """True division for floats; for integers the quotient rounded to zero, 0 on division by 0."""
    if a.dtype.kind in "fc":
        return np.divide(a, b)
    safe = np.where(b == 0, 1, b)
    quotient = np.floor_divide(a, safe)
    inexact = (quotient * safe != a) & ((a < 0) != (safe < 0))
    return np.where(b == 0, 0, quotient + inexact).astype(a.dtype)


def _direction(x: Any) -> Any:
    """x / |x|, and 0 of 0."""
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)


def _complex(real: Any, imag: Any) -> Any:
    made = np.empty(np.shape(real), np.result_type(real, np.complex64))
    made.real, made.imag = real, imag
    return made


def _abs_pulled(f: Any, g: Any, x: Any) -> Any:
    """g in the direction of x; where x is 0 nothing passes."""
    if x.dtype.is_complex:
        return g * f.sign(x)
    return f.select(x > 0, g, f.select(x < 0, -g, 0.0))


def _sign_pulled(f: Any, g: Any, y: Any, x: Any) -> Any:
    """Of a complex x / |x|, the part of g across x; the sign of a real number is constant."""
    if not x.dtype.is_complex:
        return None
    size = f.abs(x)
    across = (g - y * f.real(g * f.conj(y))) / f.select(f.eq(size, 0.0), 1.0, size)
    return f.select(f.eq(size, 0.0), 0.0, across)


def _exponent_pulled(f: Any, g: Any, y: Any, a: Any, b: Any) -> Any:
    """g · a**b · log(a); 0 where a is 0 and the power is not a pole."""
    size = f.real(b) if b.dtype.is_complex else b
    vanishes = getattr(f, "and")(f.eq(a, 0.0), f.ge(size, 0.0))
    return f.select(vanishes, 0.0, g * f.conj(y * f.log(f.select(vanishes, 1.0, a))))


def _per_square(f: Any, part: Any, a: Any, b: Any) -> Any:
    """part / (a² + b²), and 0 where both are 0."""
    square = a * a + b * b
    origin = f.eq(square, 0.0)
    return f.select(origin, 0.0, part / f.select(origin, 1.0, square))


def _floordiv(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return np.floor(np.divide(a, b))
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b))).astype(a.dtype)


def _remainder(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":  # a zero has the sign of a, as PyTorch's
        rest = np.fmod(a, b)
        return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest).astype(a.dtype)
    return np.where(b == 0, 0, np.remainder(a, np.where(b == 0, 1, b))).astype(a.dtype)


# --- primitives: every backend has these ------------------------------------------------------
scalar(
    "add", np.add, lambda f, g, y, a, b: g, lambda f, g, y, a, b: g, triton="{0} + {1}",
    commutative=True,
)  # fmt: skip
scalar(
    "sub", np.subtract, lambda f, g, y, a, b: g, lambda f, g, y, a, b: -g, triton="{0} - {1}",
)  # fmt: skip
scalar(
    "mul", np.multiply, lambda f, g, y, a, b: g * f.conj(b), lambda f, g, y, a, b: g * f.conj(a),
    triton="{0} * {1}", commutative=True,
)  # fmt: skip
scalar(
    "div", _quiet(_divide), lambda f, g, y, a, b: g / f.conj(b),
    lambda f, g, y, a, b: -(g * f.conj(y)) / f.conj(b), triton="{0} / {1}",
)  # fmt: skip
scalar("floordiv", _quiet(_floordiv), None, None, triton="floor({0} / {1})")
scalar(
    "remainder", _quiet(_remainder), lambda f, g, y, a, b: g,
    lambda f, g, y, a, b: -g * f.floordiv(a, b), triton="{0} - floor({0} / {1}) * {1}",
)  # fmt: skip
scalar(
    "fmod", _quiet(_fmod), lambda f, g, y, a, b: g, lambda f, g, y, a, b: -g * f.trunc(a / b),
    triton="libdevice.fmod({0}, {1})",
)  # fmt: skip
scalar("neg", np.negative, lambda f, g, y, x: -g, triton="-{0}")
scalar(
    "abs", np.abs, lambda f, g, y, x: _abs_pulled(f, g, x), result="real", triton="tl.abs({0})",
)  # fmt: skip
scalar(
    "sign", _direction, lambda f, g, y, x: _sign_pulled(f, g, y, x),
    triton="tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, {0} * 0))",
)  # fmt: skip
scalar(
    "maximum", np.maximum,
    lambda f, g, y, a, b: f.select(a < b, 0.0, f.select(f.eq(a, b), g * 0.5, g)),
    lambda f, g, y, a, b: f.select(b < a, 0.0, f.select(f.eq(a, b), g * 0.5, g)),
    triton="tl.maximum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", commutative=True,
)  # fmt: skip
scalar(
    "minimum", np.minimum,
    lambda f, g, y, a, b: f.select(a > b, 0.0, f.select(f.eq(a, b), g * 0.5, g)),
    lambda f, g, y, a, b: f.select(b > a, 0.0, f.select(f.eq(a, b), g * 0.5, g)),
    triton="tl.minimum({0}, {1}, propagate_nan=tl.PropagateNan.ALL)", commutative=True,
)  # fmt: skip
for _name, _function, _sign in (
    ("lt", np.less, "<"), ("le", np.less_equal, "<="), ("gt", np.greater, ">"),
    ("ge", np.greater_equal, ">="), ("eq", np.equal, "=="), ("ne", np.not_equal, "!="),
):  # fmt: skip
    scalar(_name, _function, None, None, result="bool", triton="{0} " + _sign + " {1}")
scalar("and", np.bitwise_and, None, None, triton="{0} & {1}", commutative=True)
scalar("or", np.bitwise_or, None, None, triton="{0} | {1}", commutative=True)
scalar("xor", np.bitwise_xor, None, None, triton="{0} ^ {1}", commutative=True)
scalar("not", np.invert, None, triton="~{0}")
scalar("shl", np.left_shift, None, None, triton="{0} << {1}")
scalar("shr", np.right_shift, None, None, triton="{0} >> {1}")
scalar(
    "select", np.where, None, lambda f, g, y, c, a, b: f.select(c, g, 0.0),
    lambda f, g, y, c, a, b: f.select(c, 0.0, g), triton="tl.where({0}, {1}, {2})",
)  # fmt: skip
scalar("floor", np.floor, lambda f, g, y, x: None, triton="libdevice.floor({0})")
scalar("ceil", np.ceil, lambda f, g, y, x: None, triton="libdevice.ceil({0})")
scalar("trunc", np.trunc, lambda f, g, y, x: None, triton="libdevice.trunc({0})")
scalar(
    "round",
    lambda x: np.rint(x) if x.dtype.kind == "f" else x,
    lambda f, g, y, x: None,
    triton="libdevice.rint({0})",
)
scalar(
    "sqrt", _quiet(np.sqrt), lambda f, g, y, x: g / (f.conj(y) * 2.0), triton="tl.sqrt_rn({0})",
)  # fmt: skip
scalar("cast", lambda x: x, lambda f, g, y, x: f.cast(g, x.dtype), result="given", triton="")
scalar("bitcast", lambda x: x, None, result="given", triton="")
# The identity that keeps a value apart, so that derivatives with respect to it can be asked for.
scalar(
    "mark", lambda x: x, lambda f, g, y, x: g, definition=lambda h, x: x, dear=False, triton="{0}"
)  # fmt: skip
# The identity that no derivative passes: it is removed once derivatives are taken.
scalar(
    "detach", lambda x: x, lambda f, g, y, x: None, definition=lambda h, x: x, dear=False,
    triton="{0}",
)  # fmt: skip

scalar(
    "copysign", np.copysign,
    lambda f, g, y, a, b: g * f.sign(a) * f.sign(y), lambda f, g, y, a, b: None,
    triton="libdevice.copysign({0}, {1})",
)  # fmt: skip

# --- complex numbers: a compiler pass makes pairs of real numbers of them (compiler/pairs.py) ---
scalar("real", np.real, lambda f, g, y, x: f.cast(g, x.dtype), result="real", triton="")
scalar("imag", np.imag, lambda f, g, y, x: f.complex(g * 0.0, g), result="real", triton="")
scalar("conj", np.conj, lambda f, g, y, x: f.conj(g), triton="")
scalar(
    "complex", _complex, lambda f, g, y, a, b: f.real(g), lambda f, g, y, a, b: f.imag(g),
    result="complex", triton="",
)  # fmt: skip

# --- functions with a definition in primitives --------------------------------------------------
scalar(
    "exp", _quiet(np.exp), lambda f, g, y, x: g * f.conj(y), definition=elementary.exp,
    triton="tl.exp({0})",
)  # fmt: skip
scalar(
    "expm1", _quiet(np.expm1), lambda f, g, y, x: g * (f.conj(y) + 1.0),
    definition=elementary.expm1, triton="libdevice.expm1({0})",
)  # fmt: skip
scalar(
    "log", _quiet(np.log), lambda f, g, y, x: g / f.conj(x), definition=elementary.log,
    triton="tl.log({0})",
)  # fmt: skip
scalar(
    "log1p", _quiet(np.log1p), lambda f, g, y, x: g / (f.conj(x) + 1.0),
    definition=elementary.log1p, triton="libdevice.log1p({0})",
)  # fmt: skip
scalar(
    "sin", _quiet(np.sin), lambda f, g, y, x: g * f.conj(f.cos(x)), definition=elementary.sin,
    triton="libdevice.sin({0})",
)  # fmt: skip
scalar(
    "cos", _quiet(np.cos), lambda f, g, y, x: -g * f.conj(f.sin(x)), definition=elementary.cos,
    triton="libdevice.cos({0})",
)  # fmt: skip
scalar(
    "tanh", np.tanh, lambda f, g, y, x: g * f.conj(1.0 - y * y), definition=elementary.tanh,
    triton="libdevice.tanh({0})",
)  # fmt: skip
scalar(
    "erf", _erf, lambda f, g, y, x: g * f.exp(-(x * x)) * 1.1283791670955126,
    definition=elementary.erf, triton="libdevice.erf({0})",
)  # fmt: skip
scalar(
    "pow", _quiet(np.power),
    # Within, no 0 ** -1 and no log(0): a further derivative would multiply them with 0.
    lambda f, g, y, a, b: g * f.conj(b * f.pow(a, f.select(f.eq(b, 0.0), 0.0, b - 1.0))),
    lambda f, g, y, a, b: _exponent_pulled(f, g, y, a, b),
    definition=elementary.pow, triton="libdevice.pow({0}, {1})",
)  # fmt: skip
scalar(
    "atan2", np.arctan2, lambda f, g, y, a, b: g * _per_square(f, b, a, b),
    lambda f, g, y, a, b: -g * _per_square(f, a, a, b),
    definition=elementary.atan2, triton="libdevice.atan2({0}, {1})",
)  # fmt: skip
_LN2, _LN10 = 0.6931471805599453, 2.302585092994046
scalar(
    "exp2", _quiet(np.exp2), lambda f, g, y, x: g * y * _LN2, definition=transcendental.exp2,
    triton="libdevice.exp2({0})",
)  # fmt: skip
scalar(
    "log2", _quiet(np.log2), lambda f, g, y, x: g / (x * _LN2), definition=transcendental.log2,
    triton="libdevice.log2({0})",
)  # fmt: skip
scalar(
    "log10", _log10, lambda f, g, y, x: g / (x * _LN10),
    definition=transcendental.log10, triton="libdevice.log10({0})",
)  # fmt: skip
scalar(
    "tan", _quiet(np.tan), lambda f, g, y, x: g * (y * y + 1.0), definition=transcendental.tan,
    triton="libdevice.tan({0})",
)  # fmt: skip
scalar(
    "asin", _quiet(np.arcsin), lambda f, g, y, x: g / f.sqrt(1.0 - x * x),
    definition=transcendental.asin, triton="libdevice.asin({0})",
)  # fmt: skip
scalar(
    "acos", _quiet(np.arccos), lambda f, g, y, x: -g / f.sqrt(1.0 - x * x),
    definition=transcendental.acos, triton="libdevice.acos({0})",
)  # fmt: skip
scalar(
    "atan", np.arctan, lambda f, g, y, x: g / (x * x + 1.0), definition=transcendental.atan,
    triton="libdevice.atan({0})",
)  # fmt: skip
scalar(
    "sinh", _quiet(np.sinh), lambda f, g, y, x: g * f.cosh(x), definition=transcendental.sinh,
    triton="libdevice.sinh({0})",
)  # fmt: skip
scalar(
    "cosh", _quiet(np.cosh), lambda f, g, y, x: g * f.sinh(x), definition=transcendental.cosh,
    triton="libdevice.cosh({0})",
)  # fmt: skip
scalar(
    "asinh", np.arcsinh, lambda f, g, y, x: g / f.hypot(x, 1.0),
    definition=transcendental.asinh, triton="libdevice.asinh({0})",
)  # fmt: skip
scalar(
    "acosh", _quiet(np.arccosh), lambda f, g, y, x: g / (f.sqrt(x - 1.0) * f.sqrt(x + 1.0)),
    definition=transcendental.acosh, triton="libdevice.acosh({0})",
)  # fmt: skip
scalar(
    "atanh", _quiet(np.arctanh), lambda f, g, y, x: g / (1.0 - x * x),
    definition=transcendental.atanh, triton="libdevice.atanh({0})",
)  # fmt: skip
scalar(
    "hypot", _quiet(np.hypot), lambda f, g, y, a, b: _toward(f, g, y, a),
    lambda f, g, y, a, b: _toward(f, g, y, b), definition=transcendental.hypot,
    triton="libdevice.hypot({0}, {1})", commutative=True,
)  # fmt: skip
scalar(
    "erfc", _by_library("erfc"), lambda f, g, y, x: g * f.exp(-(x * x)) * -1.1283791670955126,
    definition=transcendental.erfc, triton="libdevice.erfc({0})",
)  # fmt: skip
# Its derivative is the digamma function, which the operator brings.
scalar(
    "lgamma", _by_library("lgamma"), None, definition=transcendental.lgamma,
    triton="libdevice.lgamma({0})",
)  # fmt: skip

scalar(
    "gcd", np.gcd, None, None, triton="gcd({0}, {1})", commutative=True,
)  # fmt: skip

# The functions of this package: what is added later belongs to a user.
BUILT_IN = frozenset(TABLE)
