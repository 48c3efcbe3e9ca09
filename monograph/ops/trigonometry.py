"""Angles, hyperbolas, and logarithms and powers to other bases.

Real numbers have scalar functions of their own; complex ones are made of those for their parts, or
of exponentials and logarithms.
"""

from __future__ import annotations

import math as numbers
from typing import Any

from ..ir import build, dtypes
from ..tensor import Tensor
from .define import Scalar, operator
from .math import floating, some_tensor, tensors_only

f = build.functions
_LN2 = numbers.log(2)


def _turned(z: Any, quarters: int) -> Any:
    """z times i (one quarter of a turn) or -i (minus one)."""
    real, imag = f.real(z), f.imag(z)
    return f.complex(-imag, real) if quarters > 0 else f.complex(imag, -real)


# --- powers and logarithms ----------------------------------------------------------------------


@operator(to=("", "special"), inplace=True)
def exp2(x: Tensor) -> Any:
    """2 to the power of x.

    >>> import monograph as mg
    >>> mg.exp2(mg.tensor([3.0])).tolist()
    [8.0]
    """
    x = floating(x)
    return f.exp(x * _LN2) if x.dtype.is_complex else f.exp2(x)


@operator(inplace=True)
def log2(x: Tensor) -> Any:
    """The logarithm to the base 2.

    >>> import monograph as mg
    >>> mg.log2(mg.tensor([8.0])).tolist()
    [3.0]
    """
    x = floating(x)
    return f.log(x) / _LN2 if x.dtype.is_complex else f.log2(x)


@operator(inplace=True)
def log10(x: Tensor) -> Any:
    """The logarithm to the base 10.

    >>> import monograph as mg
    >>> mg.log10(mg.tensor([100.0])).tolist()
    [2.0]
    """
    x = floating(x)
    return f.log(x) / numbers.log(10) if x.dtype.is_complex else f.log10(x)


@operator(method=True)
def logaddexp(x: Tensor, other: Tensor) -> Any:
    """log(exp(x) + exp(other)), without overflow.

    >>> import monograph as mg
    >>> mg.logaddexp(mg.tensor([1000.0]), mg.tensor([-1000.0])).tolist()
    [1000.0]
    """
    tensors_only(x=x, other=other)
    common = _require_smooth("logaddexp", x, other)
    a, b = build.cast(x, common), build.cast(other, common)
    if common.is_complex:
        first = f.real(a) >= f.real(b)
        large, small = build.select(first, a, b), build.select(first, b, a)
        return large + f.log1p(f.exp(small - large))
    return f.maximum(a, b) + f.log1p(f.exp(-_gap(a, b)))


@operator(method=True)
def logaddexp2(x: Tensor, other: Tensor) -> Any:
    """log2(2**x + 2**other), without overflow.

    >>> import monograph as mg
    >>> mg.logaddexp2(mg.tensor([3.0]), mg.tensor([3.0])).tolist()
    [4.0]
    """
    tensors_only(x=x, other=other)
    common = _require_smooth("logaddexp2", x, other)
    a, b = build.cast(x, common), build.cast(other, common)
    return f.maximum(a, b) + f.log1p(f.exp2(-_gap(a, b))) * (1 / _LN2)


def _require_smooth(name: str, x: Any, other: Any) -> Any:
    common = build.common_dtype([x, other])
    if not common.is_smooth:
        raise NotImplementedError(f"{name} is not defined for {common.name} tensors")
    return common


def _gap(a: Any, b: Any) -> Any:
    """|a - b|, and 0 of two equal infinities."""
    return f.abs(build.select(f.eq(a, b), 0.0, a - b))


@operator(to=("", "special"), inplace=True)
def xlogy(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x · log(other), and 0 where x is.

    >>> import monograph as mg
    >>> mg.xlogy(mg.tensor([0.0, 2.0]), mg.tensor([0.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    return _times_log(x, other, f.log, 0.0)


@operator(to="special", method=False)
def xlog1py(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x · log(1 + other), and 0 where x is.

    >>> import monograph as mg
    >>> mg.special.xlog1py(mg.tensor([0.0]), mg.tensor([-1.0])).tolist()
    [0.0]
    """
    return _times_log(x, other, f.log1p, -1.0)


def _times_log(x: Any, other: Any, log: Any, pole: float) -> Any:
    some_tensor(x, other)
    common = build.common_dtype([x, other])
    common = common if common.is_smooth else dtypes.get_default_dtype()
    a, b = build.as_node(x, common), build.as_node(other, common)
    # Where x is 0, no logarithm without a limit: the product, and its derivative, stay 0.
    unbounded = getattr(f, "or")(b <= pole, f.eq(b, float("inf")))
    vanishes = build.elementwise("and", f.eq(a, 0.0), unbounded)
    product = a * log(build.select(vanishes, pole + 1.0, b))
    zeros = [build.const(zero, common) for zero in (0.0, -0.0)]
    return product + build.select(f.eq(a, 0.0), *zeros)  # where x is 0: 0.0, and never -0.0


@operator(to=("", "special"), inplace=True)
def logit(x: Tensor, eps: Scalar | None = None) -> Any:
    """log(x / (1 - x)), the inverse of sigmoid; with eps, of x limited to [eps, 1 - eps].

    >>> import monograph as mg
    >>> mg.logit(mg.tensor([0.5])).tolist()
    [0.0]
    """
    x = floating(x)
    if eps is None:
        return f.log(x / (1.0 - x))
    low = build.as_node(eps, x.dtype)
    high = 1.0 - low
    x = build.select(x < low, low, build.select(x > high, high, x))
    return f.log(x / (1.0 - x))


@logit.derivative
def _(g: Any, y: Any, x: Any, eps: Any) -> Any:
    # Outside [0, 1] there is no value, and so no derivative.
    low, beyond = (0.0, float("nan")) if eps is None else (build.as_node(eps, g.dtype), 0.0)
    inside = getattr(f, "and")(x >= low, x <= 1.0 - low)
    z = build.cast(x, g.dtype)
    return (build.select(inside, g / (z * (1.0 - z)), beyond),)


# --- angles -------------------------------------------------------------------------------------


@operator(inplace=True)
def tan(x: Tensor) -> Any:
    """The tangent.

    >>> import monograph as mg
    >>> mg.tan(mg.tensor([0.0])).tolist()
    [0.0]
    """
    x = floating(x)
    return _turned(f.tanh(_turned(x, 1)), -1) if x.dtype.is_complex else f.tan(x)


@operator(inplace=True, aliases=("arcsin",))
def asin(x: Tensor) -> Any:
    """The angle whose sine is x.

    >>> import monograph as mg
    >>> mg.asin(mg.tensor([0.0])).tolist()
    [0.0]
    """
    x = floating(x)
    return _turned(_complex_asinh(_turned(x, 1)), -1) if x.dtype.is_complex else f.asin(x)


@operator(inplace=True, aliases=("arccos",))
def acos(x: Tensor) -> Any:
    """The angle whose cosine is x.

    >>> import monograph as mg
    >>> mg.acos(mg.tensor([1.0])).tolist()
    [0.0]
    """
    x = floating(x)
    if x.dtype.is_complex:
        return numbers.pi / 2 - _turned(_complex_asinh(_turned(x, 1)), -1)
    return f.acos(x)


@operator(inplace=True, aliases=("arctan",))
def atan(x: Tensor) -> Any:
    """The angle whose tangent is x.

    >>> import monograph as mg
    >>> mg.atan(mg.tensor([0.0])).tolist()
    [0.0]
    """
    x = floating(x)
    return _turned(_complex_atanh(_turned(x, 1)), -1) if x.dtype.is_complex else f.atan(x)


@operator(inplace=True, aliases=("arctan2",))
def atan2(x: Tensor, other: Tensor) -> Any:
    """The angle of the points (other, x), from -π to π.

    >>> import monograph as mg
    >>> mg.atan2(mg.tensor([0.0]), mg.tensor([1.0])).tolist()
    [0.0]
    """
    tensors_only(x=x, other=other)
    common = build.common_dtype([x, other])
    common = common if common.is_smooth else dtypes.get_default_dtype()
    return build.elementwise("atan2", x, other, dtype=common)


@operator(inplace=True)
def hypot(x: Tensor, other: Tensor) -> Any:
    """sqrt(x² + other²), without overflow.

    >>> import monograph as mg
    >>> mg.hypot(mg.tensor([3.0]), mg.tensor([4.0])).tolist()
    [5.0]
    """
    tensors_only(x=x, other=other)
    _require_smooth("hypot", x, other)
    return f.hypot(x, other)


@operator(inplace=True)
def deg2rad(x: Tensor) -> Any:
    """Degrees as radians.

    >>> import monograph as mg
    >>> mg.deg2rad(mg.tensor([0.0])).tolist()
    [0.0]
    """
    return floating(x) * (numbers.pi / 180)


@operator(inplace=True)
def rad2deg(x: Tensor) -> Any:
    """Radians as degrees.

    >>> import monograph as mg
    >>> mg.rad2deg(mg.tensor([0.0])).tolist()
    [0.0]
    """
    return floating(x) * (180 / numbers.pi)


@operator(to=("", "special"), inplace=True)
def sinc(x: Tensor) -> Any:
    """sin(π x) / (π x), and 1 at 0.

    >>> import monograph as mg
    >>> mg.sinc(mg.tensor([0.0])).tolist()
    [1.0]
    """
    x = floating(x)
    zero = f.eq(x, 0.0)
    angle = build.select(zero, 1.0, x) * numbers.pi
    return build.select(zero, 1.0, f.sin(angle) / angle)


# --- hyperbolas ---------------------------------------------------------------------------------


@operator(inplace=True)
def sinh(x: Tensor) -> Any:
    """The hyperbolic sine.

    >>> import monograph as mg
    >>> mg.sinh(mg.tensor([0.0])).tolist()
    [0.0]
    """
    x = floating(x)
    if x.dtype.is_complex:
        real, imag = f.real(x), f.imag(x)
        return f.complex(f.sinh(real) * f.cos(imag), f.cosh(real) * f.sin(imag))
    return f.sinh(x)


@operator(inplace=True)
def cosh(x: Tensor) -> Any:
    """The hyperbolic cosine.

    >>> import monograph as mg
    >>> mg.cosh(mg.tensor([0.0])).tolist()
    [1.0]
    """
    x = floating(x)
    if x.dtype.is_complex:
        real, imag = f.real(x), f.imag(x)
        return f.complex(f.cosh(real) * f.cos(imag), f.sinh(real) * f.sin(imag))
    return f.cosh(x)


@operator(inplace=True, aliases=("arcsinh",))
def asinh(x: Tensor) -> Any:
    """The number whose hyperbolic sine is x.

    >>> import monograph as mg
    >>> mg.asinh(mg.tensor([0.0])).tolist()
    [0.0]
    """
    x = floating(x)
    return _complex_asinh(x) if x.dtype.is_complex else f.asinh(x)


def _complex_asinh(z: Any) -> Any:
    """log(z + sqrt(z² + 1)), on the half of the plane where nothing cancels."""
    other_half = f.real(z) < 0.0
    z = build.select(other_half, -z, z)
    result = f.log(z + f.sqrt(z * z + 1.0))
    return build.select(other_half, -result, result)


@operator(inplace=True, aliases=("arccosh",))
def acosh(x: Tensor) -> Any:
    """The positive number whose hyperbolic cosine is x.

    >>> import monograph as mg
    >>> mg.acosh(mg.tensor([1.0])).tolist()
    [0.0]
    """
    x = floating(x)
    if x.dtype.is_complex:
        return f.log(x + f.sqrt(x + 1.0) * f.sqrt(x - 1.0))
    return f.acosh(x)


@operator(inplace=True, aliases=("arctanh",))
def atanh(x: Tensor) -> Any:
    """The number whose hyperbolic tangent is x.

    >>> import monograph as mg
    >>> mg.atanh(mg.tensor([0.0])).tolist()
    [0.0]
    """
    x = floating(x)
    return _complex_atanh(x) if x.dtype.is_complex else f.atanh(x)


def _complex_atanh(z: Any) -> Any:
    return (f.log1p(z) - f.log1p(-z)) * 0.5
