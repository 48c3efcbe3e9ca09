"""Elementwise arithmetic, comparison and functions."""

from __future__ import annotations

from typing import Any

from ..ir import build, dtypes
from ..ir.dtypes import DType, Kind
from ..tensor import Tensor
from .define import Scalar, operator

f = build.functions


def _floating(x: Any) -> Any:
    """x as a float: integers become float32, as PyTorch's functions do."""
    return x if x.dtype.kind is Kind.FLOAT else build.cast(x, dtypes.float32)


@operator
def add(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x + other."""
    return f.add(x, other)


@operator
def sub(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x - other."""
    return f.sub(x, other)


@operator
def mul(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x · other."""
    return f.mul(x, other)


@operator
def div(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x / other, a float."""
    return x / other


@operator
def floor_divide(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """floor(x / other)."""
    return f.floordiv(x, other)


@operator
def remainder(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x modulo other, with the sign of other."""
    return f.remainder(x, other)


@operator
def pow(x: Tensor | Scalar, exponent: Tensor | Scalar) -> Any:
    """x to the power of exponent."""
    common = build.common_dtype([x, exponent])
    if common.kind is not Kind.FLOAT:
        real = build.elementwise("pow", x, exponent, dtype=dtypes.float64)
        return build.cast(f.round(real), common)
    return f.pow(x, exponent)


@operator
def square(x: Tensor) -> Any:
    """x · x."""
    return x * x


@operator
def neg(x: Tensor) -> Any:
    """-x."""
    return f.neg(x)


@operator
def abs(x: Tensor) -> Any:
    """|x|."""
    return f.abs(x)


@operator
def sign(x: Tensor) -> Any:
    """-1, 0 or 1."""
    return f.sign(x)


@operator
def exp(x: Tensor) -> Any:
    """e to the power of x."""
    return f.exp(_floating(x))


@operator
def expm1(x: Tensor) -> Any:
    """exp(x) - 1, exact near 0."""
    return f.expm1(_floating(x))


@operator
def log(x: Tensor) -> Any:
    """The natural logarithm."""
    return f.log(_floating(x))


@operator
def log1p(x: Tensor) -> Any:
    """log(1 + x), exact near 0."""
    return f.log1p(_floating(x))


@operator
def sqrt(x: Tensor) -> Any:
    """The square root."""
    return f.sqrt(_floating(x))


@operator
def rsqrt(x: Tensor) -> Any:
    """1 / sqrt(x)."""
    return 1.0 / f.sqrt(_floating(x))


@operator
def reciprocal(x: Tensor) -> Any:
    """1 / x."""
    return 1.0 / _floating(x)


@operator
def sin(x: Tensor) -> Any:
    """The sine."""
    return f.sin(_floating(x))


@operator
def cos(x: Tensor) -> Any:
    """The cosine."""
    return f.cos(_floating(x))


@operator
def tanh(x: Tensor) -> Any:
    """The hyperbolic tangent."""
    return f.tanh(_floating(x))


@operator
def erf(x: Tensor) -> Any:
    """The error function."""
    return f.erf(_floating(x))


@operator
def floor(x: Tensor) -> Any:
    """The largest integer not above x."""
    return f.floor(x) if x.dtype.is_floating_point else x


@operator
def ceil(x: Tensor) -> Any:
    """The smallest integer not below x."""
    return f.ceil(x) if x.dtype.is_floating_point else x


@operator
def round(x: Tensor) -> Any:
    """The nearest integer, halves to even."""
    return f.round(x) if x.dtype.is_floating_point else x


@operator
def maximum(x: Tensor, other: Tensor | Scalar) -> Any:
    """The larger of both; NaN if either is."""
    return f.maximum(x, other)


@operator
def minimum(x: Tensor, other: Tensor | Scalar) -> Any:
    """The smaller of both; NaN if either is."""
    return f.minimum(x, other)


@operator
def clamp(x: Tensor, min: Tensor | Scalar = None, max: Tensor | Scalar = None) -> Any:  # noqa: A002
    """x limited to [min, max]."""
    if min is None and max is None:
        raise ValueError("at least one of min and max must be given")
    given = [v for v in (x, min, max) if v is not None]
    common = build.common_dtype(given)
    x = build.as_node(x, common)
    passes = None
    result = x
    for bound, better in ((min, f.lt), (max, f.gt)):
        if bound is not None:
            limit = build.as_node(bound, common)
            result = build.select(better(result, limit), limit, result)
    return result if passes is None else passes


@operator
def where(condition: Tensor, x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x where condition holds, else other."""
    return build.select(condition, x, other)


@operator
def masked_fill(x: Tensor, mask: Tensor, value: Tensor | Scalar) -> Any:
    """x with value where mask holds."""
    return build.select(mask, build.as_node(value, x.dtype), x)


@operator
def eq(x: Tensor, other: Tensor | Scalar) -> Any:
    """x == other."""
    return f.eq(x, other)


@operator
def ne(x: Tensor, other: Tensor | Scalar) -> Any:
    """x != other."""
    return f.ne(x, other)


@operator
def lt(x: Tensor, other: Tensor | Scalar) -> Any:
    """x < other."""
    return f.lt(x, other)


@operator
def le(x: Tensor, other: Tensor | Scalar) -> Any:
    """x <= other."""
    return f.le(x, other)


@operator
def gt(x: Tensor, other: Tensor | Scalar) -> Any:
    """x > other."""
    return f.gt(x, other)


@operator
def ge(x: Tensor, other: Tensor | Scalar) -> Any:
    """x >= other."""
    return f.ge(x, other)


@operator
def logical_and(x: Tensor, other: Tensor) -> Any:
    """Both are non-zero."""
    return getattr(f, "and")(build.cast(x, dtypes.bool_), build.cast(other, dtypes.bool_))


@operator
def logical_or(x: Tensor, other: Tensor) -> Any:
    """Either is non-zero."""
    return getattr(f, "or")(build.cast(x, dtypes.bool_), build.cast(other, dtypes.bool_))


@operator
def logical_not(x: Tensor) -> Any:
    """x is zero."""
    return getattr(f, "not")(build.cast(x, dtypes.bool_))


@operator
def isnan(x: Tensor) -> Any:
    """x is NaN."""
    return f.ne(x, x)


@operator(name="cast", method=False)
def cast(x: Tensor, dtype: DType) -> Any:
    """x in another dtype."""
    return build.cast(x, dtype)


@operator
def clone(x: Tensor) -> Any:
    """A copy on a storage of its own."""
    return x


@operator(name="detach", method="_detach", view=True, smooth=False)
def detach(x: Tensor) -> Any:
    """The same storage, cut off from derivatives."""
    return build.apply("detach", x) if x.dtype.is_floating_point else x
