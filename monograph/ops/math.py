"""Elementwise arithmetic, comparison and functions."""

from __future__ import annotations

from typing import Any

from ..ir import build, dtypes
from ..ir.dtypes import DType, Kind
from ..tensor import Tensor
from .define import Scalar, operator

f = build.functions


def floating(x: Any) -> Any:
    """x as a float: integers become the default dtype, as PyTorch's functions do."""
    return x if x.dtype.is_smooth else build.cast(x, dtypes.get_default_dtype())


@operator(inplace=True)
def add(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x + other."""
    return f.add(x, other)


@operator(inplace=True)
def sub(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x - other."""
    return f.sub(x, other)


@operator(inplace=True)
def mul(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x · other."""
    return f.mul(x, other)


@operator(inplace=True)
def div(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x / other, a float."""
    return x / other


# A number divided by a tensor is, in PyTorch, the number times a reciprocal that nobody sees.
div.operator.saves = lambda kinds: (
    {"other": ("reciprocal",)}
    if isinstance(kinds[0], type)
    else {"x": ("other",), "other": ("x", "other")}
)


@operator(inplace=True)
def floor_divide(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """floor(x / other)."""
    return f.floordiv(x, other)


@operator(inplace=True)
def remainder(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x modulo other, with the sign of other."""
    return f.remainder(x, other)


@operator(inplace=True)
def pow(x: Tensor | Scalar, exponent: Tensor | Scalar) -> Any:
    """x to the power of exponent."""
    common = build.common_dtype([x, exponent])
    if common.is_smooth:
        return f.pow(x, exponent)
    return _integer_pow(build.as_node(x, common), build.as_node(exponent, common))


pow.operator.saves = lambda kinds: (
    None
    if isinstance(kinds[0], type) or isinstance(kinds[1], type)
    else dict.fromkeys(("x", "exponent"), ("x", "exponent", "result"))
)


def _integer_pow(x: Any, exponent: Any) -> Any:
    """By squaring, with the low six bits of the exponent: more would overflow in any case."""
    result, square_, rest = build.const(1, x.dtype), x, exponent
    for _ in range(6):
        result = build.select(f.ne(rest % 2, 0), result * square_, result)
        square_, rest = square_ * square_, rest // 2
    result = build.select(rest > 0, build.select(f.eq(x % 2, 0), 0, result), result)
    inverse = build.select(f.eq(x * x, 1), result, 0)  # 1 / x is whole for 1 and -1 only
    return build.cast(build.select(exponent < 0, inverse, result), x.dtype)


@operator(inplace=True)
def square(x: Tensor) -> Any:
    """x · x."""
    return x * x


@operator(inplace=True)
def neg(x: Tensor) -> Any:
    """-x."""
    return f.neg(x)


@operator(inplace=True)
def abs(x: Tensor) -> Any:
    """|x|."""
    return f.abs(x)


@operator(inplace=True)
def sign(x: Tensor) -> Any:
    """-1, 0 or 1; 0 of NaN. Of complex numbers, see `sgn`."""
    if x.dtype.is_complex:
        raise NotImplementedError("sign is not defined for complex numbers; use sgn")
    return build.select(f.ne(x, x), build.const(0, x.dtype), f.sign(x))


@operator(inplace=True)
def exp(x: Tensor) -> Any:
    """e to the power of x."""
    return f.exp(floating(x))


@operator(inplace=True)
def expm1(x: Tensor) -> Any:
    """exp(x) - 1, exact near 0."""
    return f.expm1(floating(x))


@operator(inplace=True)
def log(x: Tensor) -> Any:
    """The natural logarithm."""
    return f.log(floating(x))


@operator(inplace=True)
def log1p(x: Tensor) -> Any:
    """log(1 + x), exact near 0."""
    return f.log1p(floating(x))


@operator(inplace=True)
def sqrt(x: Tensor) -> Any:
    """The square root."""
    return f.sqrt(floating(x))


@operator(inplace=True)
def rsqrt(x: Tensor) -> Any:
    """1 / sqrt(x)."""
    return 1.0 / f.sqrt(floating(x))


rsqrt.operator.saves = {"x": ("result",)}


@operator(inplace=True)
def reciprocal(x: Tensor) -> Any:
    """1 / x."""
    return 1.0 / floating(x)


reciprocal.operator.saves = {"x": ("result",)}


@operator(inplace=True)
def sin(x: Tensor) -> Any:
    """The sine."""
    return f.sin(floating(x))


@operator(inplace=True)
def cos(x: Tensor) -> Any:
    """The cosine."""
    return f.cos(floating(x))


@operator(to=("", "nn.functional"), inplace=True)
def tanh(x: Tensor) -> Any:
    """The hyperbolic tangent."""
    return f.tanh(floating(x))


@operator(inplace=True)
def erf(x: Tensor) -> Any:
    """The error function."""
    return f.erf(floating(x))


@operator(inplace=True)
def floor(x: Tensor) -> Any:
    """The largest integer not above x."""
    return f.floor(x) if x.dtype.is_smooth else x


@operator(inplace=True)
def ceil(x: Tensor) -> Any:
    """The smallest integer not below x."""
    return f.ceil(x) if x.dtype.is_smooth else x


@operator(inplace=True)
def round(x: Tensor) -> Any:
    """The nearest integer, halves to even."""
    return f.round(x) if x.dtype.is_smooth else x


@operator
def maximum(x: Tensor, other: Tensor | Scalar) -> Any:
    """The larger of both; NaN if either is."""
    return f.maximum(x, other)


@operator
def minimum(x: Tensor, other: Tensor | Scalar) -> Any:
    """The smaller of both; NaN if either is."""
    return f.minimum(x, other)


@operator(inplace=True)
def clamp(x: Tensor, min: Tensor | Scalar = None, max: Tensor | Scalar = None) -> Any:  # noqa: A002
    """x limited to [min, max]."""
    if min is None and max is None:
        raise ValueError("at least one of min and max must be given")
    given = [v for v in (x, min, max) if v is not None]
    common = build.common_dtype(given)
    result = build.as_node(x, common)
    if common.kind is Kind.FLOAT:  # NaN stays, but no derivative passes it
        result = build.select(f.ne(result, result), build.apply("detach", result), result)
    for bound, better in ((min, f.lt), (max, f.gt)):
        if bound is not None:
            limit = build.as_node(bound, common)
            result = build.select(better(result, limit), limit, result)
    return result


@operator
def where(condition: Tensor, x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x where condition holds, else other."""
    return build.select(condition, x, other)


@operator(inplace=True)
def masked_fill(x: Tensor, mask: Tensor, value: Tensor | Scalar) -> Any:
    """x with value where mask holds."""
    return build.select(mask, build.as_node(value, x.dtype), x)


@operator(inplace=True)
def eq(x: Tensor, other: Tensor | Scalar) -> Any:
    """x == other."""
    return f.eq(x, other)


@operator(inplace=True)
def ne(x: Tensor, other: Tensor | Scalar) -> Any:
    """x != other."""
    return f.ne(x, other)


@operator(inplace=True)
def lt(x: Tensor, other: Tensor | Scalar) -> Any:
    """x < other."""
    return f.lt(x, other)


@operator(inplace=True)
def le(x: Tensor, other: Tensor | Scalar) -> Any:
    """x <= other."""
    return f.le(x, other)


@operator(inplace=True)
def gt(x: Tensor, other: Tensor | Scalar) -> Any:
    """x > other."""
    return f.gt(x, other)


@operator(inplace=True)
def ge(x: Tensor, other: Tensor | Scalar) -> Any:
    """x >= other."""
    return f.ge(x, other)


@operator(inplace=True)
def logical_and(x: Tensor, other: Tensor) -> Any:
    """Both are non-zero."""
    return getattr(f, "and")(build.cast(x, dtypes.bool_), build.cast(other, dtypes.bool_))


@operator(inplace=True)
def logical_or(x: Tensor, other: Tensor) -> Any:
    """Either is non-zero."""
    return getattr(f, "or")(build.cast(x, dtypes.bool_), build.cast(other, dtypes.bool_))


@operator(inplace=True)
def logical_not(x: Tensor) -> Any:
    """x is zero."""
    return getattr(f, "not")(build.cast(x, dtypes.bool_))


def _bits(function: str, x: Any, other: Any) -> Any:
    if build.common_dtype([x, other]).is_smooth:
        raise TypeError("bitwise operators take integers and booleans")
    return build.elementwise(function, x, other)


@operator(inplace=True)
def bitwise_and(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """The bits set in both; of booleans, both."""
    return _bits("and", x, other)


@operator(inplace=True)
def bitwise_or(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """The bits set in either; of booleans, either."""
    return _bits("or", x, other)


@operator(inplace=True)
def bitwise_xor(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """The bits set in one of both; of booleans, whether they differ."""
    return _bits("xor", x, other)


@operator(inplace=True)
def bitwise_not(x: Tensor) -> Any:
    """The bits not set; of booleans, the opposite."""
    if x.dtype.is_smooth:
        raise TypeError("bitwise operators take integers and booleans")
    return getattr(f, "not")(x)


@operator
def isnan(x: Tensor) -> Any:
    """x is NaN."""
    return f.ne(x, x)


@operator(to=None, name="cast", method=False, widen=False)
def cast(x: Tensor, dtype: DType) -> Any:
    """x in another dtype."""
    return build.cast(x, dtype)


@operator
def clone(x: Tensor) -> Any:
    """A copy on a storage of its own."""
    return x


@operator(to=None, name="detach", method="_detach", view=True, smooth=False)
def detach(x: Tensor) -> Any:
    """The same storage, cut off from derivatives."""
    return build.apply("detach", x) if x.dtype.is_smooth else x


@operator(to=None, name="data", method="_data", view=True, smooth=False)
def data(x: Tensor) -> Any:
    """The same storage, cut off from derivatives, whose writes they take no notice of."""
    return build.apply("detach", x) if x.dtype.is_smooth else x
