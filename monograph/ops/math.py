"""Elementwise arithmetic, comparison and functions."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..ir.check import check
from ..ir.dtypes import DType, Kind
from ..ir.node import Slot
from ..tensor import Tensor
from .define import ANYWHERE, Scalar, function, operator
from .inplace import into

f = build.functions


def floating(x: Any) -> Any:
    """x as a float: integers become the default dtype, as PyTorch's functions do."""
    return x if x.dtype.is_smooth else build.cast(x, dtypes.get_default_dtype())


def tensors_only(**operands: Any) -> None:
    """Refuse numbers where PyTorch takes tensors alone."""
    for name, operand in operands.items():
        if isinstance(operand, Slot):
            spelled = "input" if name == "x" else name
            raise TypeError(f"argument '{spelled}' must be a Tensor, not {operand.type.__name__}")


def some_tensor(*operands: Any) -> None:
    """Refuse numbers alone."""
    if all(isinstance(operand, Slot) for operand in operands):
        raise TypeError("at least one argument must be a Tensor, got numbers only")


def _is_bool(operand: Any) -> bool:
    return getattr(operand, "dtype", None) is dtypes.bool_


def not_bool(name: str, dtype: DType) -> None:
    """Refuse booleans, which have no such arithmetic."""
    if dtype is dtypes.bool_:
        raise NotImplementedError(f"{name} is not defined for bool tensors")


@operator(inplace=True)
def add(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x + other."""
    return f.add(x, other)


@operator(inplace=True)
def sub(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x - other."""
    _no_bool_difference(x, other)
    return f.sub(x, other)


def _no_bool_difference(*operands: Any) -> None:
    if any(_is_bool(operand) for operand in operands):
        raise ValueError(
            "subtraction with a bool tensor is not supported; to invert a mask use ~ or "
            "logical_not, for the difference of two use ^ or logical_xor"
        )


@operator(to=None, method=False)
def add_scaled(x: Tensor | Scalar, other: Tensor | Scalar, alpha: Scalar) -> Any:
    """x + alpha · other."""
    return f.add(*_scaled(x, other, alpha))


@operator(to=None, method=False)
def sub_scaled(x: Tensor | Scalar, other: Tensor | Scalar, alpha: Scalar) -> Any:
    """x - alpha · other."""
    _no_bool_difference(x, other)
    return f.sub(*_scaled(x, other, alpha))


def _scaled(x: Any, other: Any, alpha: Any) -> tuple[Any, Any]:
    """x, and other times alpha, in their common dtype, which alpha must not raise."""
    common = build.common_dtype([x, other])
    if alpha.dtype.kind > max(common.kind, Kind.INT):
        raise ValueError(f"alpha must not be {alpha.type.__name__} for {common.name} operands")
    if alpha.dtype is dtypes.bool_ and common is not dtypes.bool_:
        raise ValueError("a bool alpha is for bool operands only")
    return build.as_node(x, common), build.as_node(other, common) * build.as_node(alpha, common)


@operator(inplace=True, aliases=("multiply",))
def mul(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x · other.

    >>> import monograph as mg
    >>> mg.mul(mg.tensor([1.0, 2.0]), 3).tolist()
    [3.0, 6.0]
    """
    return f.mul(x, other)


@operator(inplace=True, aliases=("divide",))
def div(
    x: Tensor | Scalar, other: Tensor | Scalar, *, rounding_mode: str | None = None
) -> Any:  # fmt: skip
    """x / other, a float; with rounding_mode "trunc" or "floor" rounded, integers if they are.

    >>> import monograph as mg
    >>> mg.div(mg.tensor([7, -7]), 2, rounding_mode="floor").tolist()
    [3, -4]
    """
    if rounding_mode is None:
        return x / other
    if rounding_mode == "floor":
        return _floor_quotient(x, other)
    if rounding_mode != "trunc":
        raise ValueError(
            f"rounding_mode must be None, 'trunc' or 'floor', but it is {rounding_mode!r}"
        )
    not_bool("rounded division", build.common_dtype([x, other]))
    _require_divisor(other, build.common_dtype([x, other]))
    quotient = f.div(x, other)
    return f.trunc(quotient) if quotient.dtype.is_smooth else quotient


def _require_divisor(other: Any, common: Any) -> None:
    """Integers are not divided by zero; floats are."""
    if not common.is_smooth:
        divisor = build.as_node(other, common)
        check(f.eq(divisor, 0), divisor, "ZeroDivisionError: division by zero", "ValueOutOfRange")


@operator(inplace=True)
def true_divide(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x / other, a float.

    >>> import monograph as mg
    >>> mg.true_divide(mg.tensor([3, 5]), 2).tolist()
    [1.5, 2.5]
    """
    return x / other


# A number divided by a tensor is, in PyTorch, the number times a reciprocal that nobody sees.
div.operator.saves = true_divide.operator.saves = lambda kinds, _: (
    {"other": ("reciprocal",)}
    if isinstance(kinds[0], type)
    else {"x": ("other",), "other": ("x", "other")}
)


@operator(to=None, method=False, name="floor_divide")
def floor_quotient(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """floor(x / other)."""
    return _floor_quotient(x, other)


@function(method=True, inplace=True)
def floor_divide(input: Tensor | Scalar, other: Tensor | Scalar, *, out: Any = None) -> Any:
    """floor(input / other), without a derivative as in PyTorch; `div` with a rounding mode has one.

    >>> import monograph as mg
    >>> mg.floor_divide(mg.tensor([7.0, -7.0]), 2).tolist()
    [3.0, -4.0]
    """
    made = floor_quotient(input, other)
    if isinstance(made, Tensor) and made.requires_grad:
        made.grad_fn.register_prehook(_no_derivative)
    return made if out is None else into(out, made)


def _no_derivative(gradients: Any) -> None:
    raise errors.GradientError("derivative for floor_divide is not implemented")


def _floor_quotient(x: Any, other: Any) -> Any:
    """As Python's //: of floats by way of the exact rest, so that x = q · other + rest."""
    common = build.common_dtype([x, other])
    not_bool("floor division", common)
    if not common.is_smooth:
        _require_divisor(other, common)
        return f.floordiv(x, other)
    a, b = build.as_node(x, common), build.as_node(other, common)
    rest = f.fmod(a, b)
    quotient = (a - rest) / b
    crossed = getattr(f, "and")(f.ne(rest, 0.0), f.ne(b < 0.0, rest < 0.0))
    quotient = build.select(crossed, quotient - 1.0, quotient)
    whole = f.floor(quotient)
    whole = build.select(quotient - whole > 0.5, whole + 1.0, whole)
    whole = build.select(f.eq(quotient, 0.0), f.copysign(0.0, a / b), whole)
    return build.apply("detach", build.select(f.eq(b, 0.0), a / b, whole))


@operator(inplace=True)
def remainder(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x modulo other, with the sign of other.

    >>> import monograph as mg
    >>> mg.remainder(mg.tensor([-7, 7]), 3).tolist()
    [2, 1]
    """
    some_tensor(x, other)
    not_bool("remainder", build.common_dtype([x, other]))
    _require_divisor(other, build.common_dtype([x, other]))
    return f.remainder(x, other)


@operator(inplace=True)
def fmod(x: Tensor, other: Tensor | Scalar) -> Any:
    """What is left of x after whole parts of other, with the sign of x.

    >>> import monograph as mg
    >>> mg.fmod(mg.tensor([-3.0, 3.0]), 2).tolist()
    [-1.0, 1.0]
    """
    tensors_only(x=x)
    not_bool("fmod", build.common_dtype([x, other]))
    _require_divisor(other, build.common_dtype([x, other]))
    return f.fmod(x, other)


@operator(inplace=True)
def pow(x: Tensor | Scalar, exponent: Tensor | Scalar) -> Any:
    """x to the power of exponent."""
    some_tensor(x, exponent)
    common = build.common_dtype([x, exponent])
    not_bool("pow", common)
    if common.is_smooth:
        return f.pow(x, exponent)
    return _integer_pow(build.as_node(x, common), build.as_node(exponent, common))


pow.operator.saves = lambda kinds, _: (
    None
    if isinstance(kinds[0], type) or isinstance(kinds[1], type)
    else dict.fromkeys(("x", "exponent"), ("x", "exponent", "result"))
)


def _integer_pow(x: Any, exponent: Any) -> Any:
    """By squaring, with all bits of the exponent: what overflows wraps as a product does."""
    result, square_ = build.const(1, x.dtype), x
    for bit in range(8 * x.dtype.itemsize - x.dtype.signed):
        odd = f.ne(getattr(f, "and")(f.shr(exponent, bit), 1), 0)
        result = build.select(odd, result * square_, result)
        square_ = square_ * square_
    inverse = build.select(f.eq(x * x, 1), result, 0)  # 1 / x is whole for 1 and -1 only
    return build.cast(build.select(exponent < 0, inverse, result), x.dtype)


@operator(name="pow", method=False, to=None)
def whole_power(x: Tensor, exponent: int) -> Any:
    """An integer tensor to the power of a number that is not negative, by squaring."""
    x = build.cast(x, dtypes.int64) if _is_bool(x) else x
    result, square_ = build.const(1, x.dtype), x
    while exponent:
        result = result * square_ if exponent % 2 else result
        square_, exponent = square_ * square_, exponent // 2
    return build.broadcast_to(result, x.shape)


@operator(inplace=True)
def float_power(x: Tensor | Scalar, exponent: Tensor | Scalar) -> Any:
    """x to the power of exponent, in double precision.

    >>> import monograph as mg
    >>> mg.float_power(mg.tensor([2, 3]), -1)[0].item()
    0.5
    """
    some_tensor(x, exponent)
    common = build.common_dtype([x, exponent])
    wide = dtypes.complex128 if common.is_complex else dtypes.float64
    return f.pow(build.as_node(x, wide), build.as_node(exponent, wide))


def _saved_by_float_power(kinds: Any, attributes: Any) -> Any:
    """Operands are first made double: copies that nobody sees."""
    tensors = [kind for kind in kinds if not isinstance(kind, type)]
    if all(kind.dtype.to_real() is dtypes.float64 for kind in tensors):
        return pow.operator.saves(kinds, attributes)
    return {"*": ("copies",) if len(tensors) < len(kinds) else ("copies", "result")}


float_power.operator.saves = _saved_by_float_power


@operator(inplace=True)
def square(x: Tensor) -> Any:
    """x · x.

    >>> import monograph as mg
    >>> mg.square(mg.tensor([-3.0, 2.0])).tolist()
    [9.0, 4.0]
    """
    x = build.cast(x, dtypes.int64) if _is_bool(x) else x
    return x * x


@operator(inplace=True, aliases=("negative",))
def neg(x: Tensor) -> Any:
    """-x.

    >>> import monograph as mg
    >>> mg.neg(mg.tensor([1.0, -2.0])).tolist()
    [-1.0, 2.0]
    """
    if _is_bool(x):
        raise ValueError("negation of a bool tensor is not supported; use ~ or logical_not")
    return f.neg(x)


@function(method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself.

    >>> import monograph as mg
    >>> mg.positive(mg.tensor(-1.0)).item()
    -1.0
    """
    if input.dtype is dtypes.bool_:
        raise errors.OperandError("positive: + of a bool tensor is not supported")
    return input


@operator(inplace=True, aliases=("absolute",))
def abs(x: Tensor) -> Any:
    """|x|.

    >>> import monograph as mg
    >>> mg.abs(mg.tensor([-2.0, 3.0])).tolist()
    [2.0, 3.0]
    """
    not_bool("abs", x.dtype)
    return f.abs(x)


@operator(inplace=True)
def sign(x: Tensor) -> Any:
    """-1, 0 or 1; 0 of NaN. Of complex numbers, see `sgn`.

    >>> import monograph as mg
    >>> mg.sign(mg.tensor([-3.0, 0.0, 5.0])).tolist()
    [-1.0, 0.0, 1.0]
    """
    if x.dtype.is_complex:
        raise NotImplementedError("sign is not defined for complex numbers; use sgn")
    if x.dtype is dtypes.bool_:
        return x
    return build.select(f.ne(x, x), build.const(0, x.dtype), f.sign(x))


@operator(inplace=True)
def exp(x: Tensor) -> Any:
    """e to the power of x.

    >>> import monograph as mg
    >>> mg.exp(mg.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return f.exp(floating(x))


@operator(to=("", "special"), inplace=True)
def expm1(x: Tensor) -> Any:
    """exp(x) - 1, exact near 0.

    >>> import monograph as mg
    >>> mg.expm1(mg.tensor([1e-8])).item() > 0
    True
    """
    return f.expm1(floating(x))


@operator(inplace=True)
def log(x: Tensor) -> Any:
    """The natural logarithm.

    >>> import monograph as mg
    >>> mg.log(mg.tensor([1.0])).tolist()
    [0.0]
    """
    return f.log(floating(x))


@operator(to=("", "special"), inplace=True)
def log1p(x: Tensor) -> Any:
    """log(1 + x), exact near 0.

    >>> import monograph as mg
    >>> mg.log1p(mg.tensor([1e-8])).item() > 0
    True
    """
    return f.log1p(floating(x))


@operator(inplace=True)
def sqrt(x: Tensor) -> Any:
    """The square root.

    >>> import monograph as mg
    >>> mg.sqrt(mg.tensor([4.0, 9.0])).tolist()
    [2.0, 3.0]
    """
    return f.sqrt(floating(x))


@operator(inplace=True)
def rsqrt(x: Tensor) -> Any:
    """1 / sqrt(x).

    >>> import monograph as mg
    >>> mg.rsqrt(mg.tensor([4.0, 16.0])).tolist()
    [0.5, 0.25]
    """
    return 1.0 / f.sqrt(floating(x))


rsqrt.operator.saves = {"x": ("result",)}


@operator(inplace=True)
def reciprocal(x: Tensor) -> Any:
    """1 / x.

    >>> import monograph as mg
    >>> mg.reciprocal(mg.tensor([2.0, 4.0])).tolist()
    [0.5, 0.25]
    """
    return 1.0 / floating(x)


reciprocal.operator.saves = {"x": ("result",)}


@operator(inplace=True)
def sin(x: Tensor) -> Any:
    """The sine.

    >>> import monograph as mg
    >>> mg.sin(mg.zeros(2)).tolist()
    [0.0, 0.0]
    """
    return f.sin(floating(x))


@operator(inplace=True)
def cos(x: Tensor) -> Any:
    """The cosine.

    >>> import monograph as mg
    >>> mg.cos(mg.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return f.cos(floating(x))


@operator(to=("", "nn.functional"), inplace=True)
def tanh(x: Tensor) -> Any:
    """The hyperbolic tangent.

    >>> import monograph as mg
    >>> mg.tanh(mg.tensor([0.0, 50.0])).tolist()
    [0.0, 1.0]
    """
    return f.tanh(floating(x))


@operator(to=("", "special"), inplace=True)
def erf(x: Tensor) -> Any:
    """The error function.

    >>> import monograph as mg
    >>> mg.erf(mg.tensor([0.0, 10.0])).tolist()
    [0.0, 1.0]
    """
    return f.erf(floating(x))


@operator(inplace=True)
def floor(x: Tensor) -> Any:
    """The largest integer not above x.

    >>> import monograph as mg
    >>> mg.floor(mg.tensor([-1.5, 1.5])).tolist()
    [-2.0, 1.0]
    """
    not_bool("floor", x.dtype)
    return f.floor(x) if x.dtype.is_smooth else x


@operator(inplace=True)
def ceil(x: Tensor) -> Any:
    """The smallest integer not below x.

    >>> import monograph as mg
    >>> mg.ceil(mg.tensor([-1.5, 1.5])).tolist()
    [-1.0, 2.0]
    """
    not_bool("ceil", x.dtype)
    return f.ceil(x) if x.dtype.is_smooth else x


@operator(to=("", "special"), inplace=True)
def round(x: Tensor, *, decimals: int = 0) -> Any:
    """The nearest integer, halves to even; or the nearest number with so many decimals.

    >>> import monograph as mg
    >>> mg.round(mg.tensor([1234.5678]), decimals=-2).tolist()
    [1200.0]
    """
    not_bool("round", x.dtype)
    if not x.dtype.is_smooth:
        if decimals:
            raise NotImplementedError("integers are rounded to integers only: decimals must be 0")
        return x
    if decimals == 0:
        return f.round(x)
    power = 10.0 ** (decimals if decimals > 0 else -decimals)
    return f.round(x * power) / power if decimals > 0 else f.round(x / power) * power


@operator
def maximum(x: Tensor, other: Tensor) -> Any:
    """The larger of both; NaN if either is.

    >>> import monograph as mg
    >>> mg.maximum(mg.tensor([1.0, 4.0]), mg.tensor([2.0, 3.0])).tolist()
    [2.0, 4.0]
    """
    tensors_only(x=x, other=other)
    return f.maximum(x, other)


maximum.operator.selects = True


@operator
def minimum(x: Tensor, other: Tensor) -> Any:
    """The smaller of both; NaN if either is.

    >>> import monograph as mg
    >>> mg.minimum(mg.tensor([1.0, 4.0]), mg.tensor([2.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    tensors_only(x=x, other=other)
    return f.minimum(x, other)


minimum.operator.selects = True


@operator(inplace=True, aliases=("clip",))
def clamp(x: Tensor, min: Tensor | Scalar = None, max: Tensor | Scalar = None) -> Any:  # noqa: A002
    """x limited to [min, max].

    >>> import monograph as mg
    >>> mg.clamp(mg.tensor([-3.0, 0.5, 3.0]), -1.0, 1.0).tolist()
    [-1.0, 0.5, 1.0]
    """
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
            taken = better(result, limit)
            if common.is_smooth:  # a bound that is NaN makes NaN
                taken = getattr(f, "or")(taken, f.ne(limit, limit))
            result = build.select(taken, limit, result)
    return result


clamp.operator.selects = True


@operator
def where(condition: Tensor, x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x where condition holds, else other."""
    return build.select(condition, x, other)


@operator(inplace=ANYWHERE)
def masked_fill(x: Tensor, mask: Tensor, value: Tensor | Scalar) -> Any:
    """x with value where mask holds.

    >>> import monograph as mg
    >>> mg.masked_fill(mg.zeros(3), mg.tensor([True, False, True]), 7.0).tolist()
    [7.0, 0.0, 7.0]
    """
    if mask.dtype is not dtypes.bool_:
        raise ValueError(f"the mask must be bool, got {mask.dtype.name}")
    if value.ndim:
        raise ValueError(f"the value must be a number or have no axes, got {list(value.shape)}")
    if value.dtype.is_complex and not x.dtype.is_complex:
        raise ValueError(f"a complex value does not fit a tensor of {x.dtype.name}")
    return build.select(mask, build.as_node(value, x.dtype), x)


masked_fill.operator.lies = "contiguous"


@operator(to=None, name="cast", method=False, widen=False)
def cast(x: Tensor, dtype: DType) -> Any:
    """x in another dtype."""
    return build.cast(x, dtype)


@operator
def clone(x: Tensor, *, memory_format: Any = None) -> Any:
    """A copy on a storage of its own. How it lies in memory the compiler decides."""
    wanted = str(memory_format).rsplit(".", 1)[-1]
    rank = {"channels_last": 4, "channels_last_3d": 5}.get(wanted)
    if rank is not None and x.ndim != rank:
        raise ValueError(f"{wanted} is for tensors of {rank} axes, got {list(x.shape)}")
    return x


@operator(to=None, name="detach", method="_detach", view=True, smooth=False)
def detach(x: Tensor) -> Any:
    """The same storage, cut off from derivatives."""
    return build.apply("detach", x) if x.dtype.is_smooth else x


@operator(to=None, name="data", method="_data", view=True, smooth=False)
def data(x: Tensor) -> Any:
    """The same storage, cut off from derivatives, whose writes they take no notice of."""
    return build.apply("detach", x) if x.dtype.is_smooth else x
