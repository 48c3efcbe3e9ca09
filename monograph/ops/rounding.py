"""Parts of numbers: rounded, fraction, sign, exponent, neighbours; and NaN replaced."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..ir import build, dtypes
from ..ir.dtypes import DType
from ..ir.limits import finfo
from ..tensor import Tensor
from .define import Scalar, function, operator
from .inplace import into
from .math import floating, not_bool, tensors_only

f = build.functions
_INF = float("inf")


@operator(inplace=True, aliases=("fix",))
def trunc(x: Tensor) -> Any:
    """The integer next to x on the way to zero.

    >>> import monograph as mg
    >>> mg.trunc(mg.tensor([1.7, -1.7])).tolist()
    [1.0, -1.0]
    """
    not_bool("trunc", x.dtype)
    return f.trunc(x) if x.dtype.is_smooth else x


@operator(inplace=True)
def frac(x: Tensor) -> Any:
    """What is left of x without its integer part.

    >>> import monograph as mg
    >>> mg.frac(mg.tensor([1.5, -2.25])).tolist()
    [0.5, -0.25]
    """
    _require_float("frac", x.dtype)
    return x - f.trunc(x)


def _require_float(name: str, dtype: DType) -> None:
    if not dtype.is_floating_point:
        raise NotImplementedError(f"{name} is not defined for {dtype.name} tensors")


# --- signs --------------------------------------------------------------------------------------


@operator
def signbit(x: Tensor) -> Any:
    """Whether the sign is minus, of -0.0 too.

    >>> import monograph as mg
    >>> mg.signbit(mg.tensor([-0.0, 1.0])).tolist()
    [True, False]
    """
    if x.dtype.is_complex:
        raise ValueError("signbit is not defined for complex tensors")
    if x.dtype is dtypes.bool_:
        return build.full(x.shape, False, dtypes.bool_)
    if not x.dtype.is_floating_point:
        return f.lt(x, 0)
    return f.lt(f.copysign(1.0, x), 0.0)


@operator(inplace=True)
def copysign(x: Tensor, other: Tensor | Scalar) -> Any:
    """The size of x with the sign of other.

    >>> import monograph as mg
    >>> mg.copysign(mg.tensor([1.0, -2.0]), -0.0).tolist()
    [-1.0, -2.0]
    """
    tensors_only(x=x)
    common = build.common_dtype([x, other])
    common = common if common.is_smooth else dtypes.get_default_dtype()
    return build.elementwise("copysign", x, other, dtype=common)


@operator(inplace=True)
def heaviside(x: Tensor, values: Tensor) -> Any:
    """0 below zero, 1 above, and the value given at zero.

    >>> import monograph as mg
    >>> mg.heaviside(mg.tensor([-1.0, 0.0, 2.0]), mg.tensor(0.5)).tolist()
    [0.0, 0.5, 1.0]
    """
    tensors_only(x=x, values=values)
    if x.dtype is not values.dtype:
        raise ValueError(f"both must have one dtype, got {x.dtype.name} and {values.dtype.name}")
    if x.dtype.is_complex:
        raise ValueError("heaviside is not defined for complex tensors")
    step = build.cast(f.gt(x, 0), x.dtype)
    return build.select(f.eq(x, 0), values, step)


# --- bits of floats -----------------------------------------------------------------------------

_BITS = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


@operator(inplace=True, widen=False)
def nextafter(x: Tensor, other: Tensor) -> Any:
    """The next number after x on the way to other.

    >>> import monograph as mg
    >>> mg.nextafter(mg.tensor(1.0), mg.tensor(2.0)).item() - 1
    1.1920928955078125e-07
    """
    tensors_only(x=x, other=other)
    common = build.common_dtype([x, other])
    _require_float("nextafter", common)
    shape = build.broadcast_shapes(x.shape, other.shape)
    return neighbour(*[build.broadcast_to(build.cast(part, common), shape) for part in (x, other)])


@operator(to=None, method=False, widen=False)
def neighbour(a: Tensor, b: Tensor) -> Any:
    """The next number after a on the way to b, of one shape and dtype."""
    kind = _BITS[a.dtype.itemsize]
    bits = build.apply("bitcast", a, dtype=kind)
    # Without the sign, bits of floats are in the order of their sizes.
    outward = f.eq(b > a, a > 0.0)
    step = build.select(outward, build.const(1, kind), build.const(-1, kind))
    moved = build.apply("bitcast", f.add(bits, step), dtype=a.dtype)
    least = build.apply("bitcast", build.full(a.shape, 1, kind), dtype=a.dtype)
    moved = build.select(f.eq(a, 0.0), f.copysign(least, b), moved)
    moved = build.select(f.eq(a, b), b, moved)
    return build.select(f.ne(a, a), a, build.select(f.ne(b, b), b, moved))


@neighbour.derivative
def _(g: Any, y: Any, a: Any, b: Any) -> Any:
    return g, None


class Frexp(NamedTuple):
    """Numbers as mantissa · 2**exponent."""

    mantissa: Tensor
    exponent: Tensor


def _layout(dtype: DType) -> tuple[DType, int, int]:
    """Of a float: the integers of its size, the bits of its mantissa, and the exponent's bias."""
    return (dtypes.int64, 52, 1023) if dtype is dtypes.float64 else (dtypes.int32, 23, 127)


def _power_of_two(n: Any, dtype: DType) -> Any:
    """2**n as a normal float."""
    kind, mantissa, bias = _layout(dtype)
    bits = f.shl(f.add(n, bias), mantissa)
    return build.apply("bitcast", bits, dtype=dtype)


@operator(to=None, method=False, name="frexp")
def split(x: Tensor) -> Any:
    """(mantissa, exponent): the exponent is read from the bits."""
    if not x.dtype.is_floating_point:
        raise ValueError(f"frexp takes floats, got {x.dtype.name}")
    wide = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    kind, mantissa, bias = _layout(wide)
    value = build.cast(x, wide)
    least = 2.0 ** (1 - bias)
    subnormal = f.lt(f.abs(value), least)
    scaled = build.select(subnormal, value * 2.0 ** (mantissa + 1), value)
    bits = build.apply("bitcast", scaled, dtype=kind)
    held = getattr(f, "and")(f.shr(bits, mantissa), 2 * bias + 1)
    exponent = f.sub(held, bias - 1)
    exponent = build.select(subnormal, f.sub(exponent, mantissa + 1), exponent)
    regular = getattr(f, "and")(f.ne(value, 0.0), f.lt(f.abs(value), _INF))
    exponent = build.select(regular, exponent, build.const(0, kind))
    # 2**-exponent may be no normal number, but its halves are.
    half = f.shr(exponent, 1)
    small = value * _power_of_two(f.neg(half), wide)
    small = small * _power_of_two(f.sub(half, exponent), wide)
    return build.cast(small, x.dtype), build.cast(exponent, dtypes.int32)


@function(method=True)
def frexp(input: Tensor, *, out: Any = None) -> Frexp:
    """Numbers as mantissa · 2**exponent, with mantissas from 1/2 to 1.

    >>> import monograph as mg
    >>> mantissa, exponent = mg.frexp(mg.tensor([6.0]))
    >>> mantissa.item(), exponent.item()
    (0.75, 3)
    """
    made = Frexp(*split(input))
    return made if out is None else into(out, made)


@operator(inplace=True)
def ldexp(x: Tensor, other: Tensor) -> Any:
    """x · 2**other.

    >>> import monograph as mg
    >>> mg.ldexp(mg.tensor([1.5]), mg.tensor([3])).tolist()
    [12.0]
    """
    tensors_only(x=x, other=other)
    other = floating(other)
    return x * f.pow(build.const(2.0, other.dtype), other)


ldexp.operator.saves = {"x": ("other",), "other": ("result",)}


# --- replacing ----------------------------------------------------------------------------------


@operator(inplace=True, widen=False)  # the largest number is the dtype's own
def nan_to_num(
    x: Tensor, nan: Scalar | None = None, posinf: Scalar | None = None,
    neginf: Scalar | None = None,
) -> Any:  # fmt: skip
    """x with numbers in the place of NaN and infinities: 0 and the largest, if not given.

    >>> import monograph as mg
    >>> mg.nan_to_num(mg.tensor([float("nan"), float("inf")]), posinf=9.0).tolist()
    [0.0, 9.0]
    """
    if x.dtype.is_complex:
        parts = [_finite(part(x), nan, posinf, neginf) for part in (f.real, f.imag)]
        return f.complex(*parts)
    return _finite(x, nan, posinf, neginf) if x.dtype.is_floating_point else x


nan_to_num.operator.selects = True


def _finite(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    largest = float(finfo(x.dtype).max)
    given = [
        build.const(default, x.dtype) if value is None else build.as_node(value, x.dtype)
        for value, default in ((nan, 0.0), (posinf, largest), (neginf, -largest))
    ]
    x = build.select(f.ne(x, x), given[0], x)
    x = build.select(f.eq(x, _INF), given[1], x)
    return build.select(f.eq(x, -_INF), given[2], x)
