"""Questions about numbers: equal, less, true, finite, close; and extremes without NaN."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..ir import build, dtypes
from ..tensor import Tensor
from . import math
from .define import Scalar, function, operator
from .math import tensors_only

f = build.functions
_INF = float("inf")


def _and(a: Any, b: Any) -> Any:
    return build.elementwise("and", a, b)


def _or(a: Any, b: Any) -> Any:
    return build.elementwise("or", a, b)


# --- two numbers --------------------------------------------------------------------------------

# By PyTorch's name: the sign of Python, and PyTorch's other names.
_SIGNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "eq": ("==", ()), "ne": ("!=", ("not_equal",)), "lt": ("<", ("less",)),
    "le": ("<=", ("less_equal",)), "gt": (">", ("greater",)), "ge": (">=", ("greater_equal",)),
}  # fmt: skip


def _publish(name: str) -> Any:
    """Declare the comparison of that name."""
    sign, others = _SIGNS[name]
    compare = getattr(f, name)

    def compared(x: Tensor, other: Tensor | Scalar) -> Any:
        tensors_only(x=x)
        return compare(x, other)

    compared.__name__ = name
    compared.__doc__ = f"""x {sign} other.

    >>> import monograph as mg
    >>> mg.{name}(mg.tensor([1, 2, 3]), 2).tolist() == [1 {sign} 2, 2 {sign} 2, 3 {sign} 2]
    True
    """
    # Not widened: a number is rounded to the dtype that it is compared with, also to 16 bits.
    return operator(compared, inplace=True, aliases=others, widen=False)


eq, ne, lt, le, gt, ge = map(_publish, _SIGNS)


@operator(inplace=True)
def logical_and(x: Tensor, other: Tensor) -> Any:
    """Both are non-zero.

    >>> import monograph as mg
    >>> mg.logical_and(mg.tensor([0, 2]), mg.tensor([1, 1])).tolist()
    [False, True]
    """
    tensors_only(x=x, other=other)
    return getattr(f, "and")(build.cast(x, dtypes.bool_), build.cast(other, dtypes.bool_))


@operator(inplace=True)
def logical_or(x: Tensor, other: Tensor) -> Any:
    """Either is non-zero.

    >>> import monograph as mg
    >>> mg.logical_or(mg.tensor([0, 2]), mg.tensor([0, 0])).tolist()
    [False, True]
    """
    tensors_only(x=x, other=other)
    return getattr(f, "or")(build.cast(x, dtypes.bool_), build.cast(other, dtypes.bool_))


@operator(inplace=True)
def logical_xor(x: Tensor, other: Tensor) -> Any:
    """One of both is non-zero, and only one.

    >>> import monograph as mg
    >>> mg.logical_xor(mg.tensor([0, 1]), mg.tensor([2, 3])).tolist()
    [True, False]
    """
    tensors_only(x=x, other=other)
    return f.xor(build.cast(x, dtypes.bool_), build.cast(other, dtypes.bool_))


@operator(inplace=True)
def logical_not(x: Tensor) -> Any:
    """x is zero.

    >>> import monograph as mg
    >>> mg.logical_not(mg.tensor([0.0, 2.0])).tolist()
    [True, False]
    """
    return getattr(f, "not")(build.cast(x, dtypes.bool_))


@operator
def isnan(x: Tensor) -> Any:
    """x is NaN.

    >>> import monograph as mg
    >>> mg.isnan(mg.tensor([1.0, float("nan")])).tolist()
    [False, True]
    """
    return f.ne(x, x)


# --- one number ---------------------------------------------------------------------------------


def _of_parts(x: Any, ask: Any, combine: Any) -> Any:
    """The answer for both parts of complex numbers; integers are like finite floats."""
    if x.dtype.is_complex:
        return combine(ask(f.real(x)), ask(f.imag(x)))
    if not x.dtype.is_floating_point:
        x = build.full(x.shape, 0.0, dtypes.float32)
    return ask(x)


@operator
def isinf(x: Tensor) -> Any:
    """x is infinite.

    >>> import monograph as mg
    >>> mg.isinf(mg.tensor([1.0, float("-inf")])).tolist()
    [False, True]
    """
    return _of_parts(x, lambda part: f.eq(f.abs(part), _INF), _or)


@operator
def isfinite(x: Tensor) -> Any:
    """x is neither infinite nor NaN.

    >>> import monograph as mg
    >>> mg.isfinite(mg.tensor([1.0, float("nan")])).tolist()
    [True, False]
    """
    return _of_parts(x, lambda part: f.lt(f.abs(part), _INF), _and)


@operator
def isposinf(x: Tensor) -> Any:
    """x is infinity.

    >>> import monograph as mg
    >>> mg.isposinf(mg.tensor([float("inf"), float("-inf")])).tolist()
    [True, False]
    """
    _require_order("isposinf", x)
    return _of_parts(x, lambda part: f.eq(part, _INF), _or)


@operator
def isneginf(x: Tensor) -> Any:
    """x is minus infinity.

    >>> import monograph as mg
    >>> mg.isneginf(mg.tensor([float("inf"), float("-inf")])).tolist()
    [False, True]
    """
    _require_order("isneginf", x)
    return _of_parts(x, lambda part: f.eq(part, -_INF), _or)


def _require_order(name: str, x: Any) -> None:
    if x.dtype.is_complex:
        raise ValueError(f"{name} is not defined for complex numbers")


@operator(to=None, method=False, smooth=False, widen=False, name="isclose")
def near(
    x: Tensor, other: Tensor, rtol: Scalar, atol: Scalar, equal_nan: bool = False
) -> Any:  # fmt: skip
    """|x - other| <= atol + rtol · |other|, or equal."""
    tensors_only(x=x, other=other)
    if x.dtype is not other.dtype:
        raise ValueError(f"both must have one dtype, got {x.dtype.name} and {other.dtype.name}")
    dtype = x.dtype
    same = f.eq(x, other)
    if equal_nan and dtype.is_smooth:
        same = _or(same, _and(f.ne(x, x), f.ne(other, other)))
    wide = dtype if dtype.is_smooth else dtypes.float64
    a, b = build.cast(x, wide), build.cast(other, wide)
    gap = f.abs(a - b)
    part = gap.dtype
    allowed = build.as_node(atol, part) + f.abs(b) * build.as_node(rtol, part)
    return _or(same, _and(f.lt(gap, _INF), f.le(gap, allowed)))


@function(method=True)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether |input - other| <= atol + rtol · |other|, for each element.

    >>> import monograph as mg
    >>> mg.isclose(mg.tensor([1.0, 1.1]), mg.tensor([1.0, 1.0])).tolist()
    [True, False]
    """
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise errors.OperandError(f"isclose: {name} must not be negative, got {value}")
    made: Tensor = near(input, other, float(rtol), float(atol), bool(equal_nan))
    return made


@function(method=True)
def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close.

    >>> import monograph as mg
    >>> mg.allclose(mg.tensor([1.0]), mg.tensor([1.0 + 1e-7]))
    True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


@function(method=True)
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether both have one shape and the same elements.

    >>> import monograph as mg
    >>> mg.equal(mg.tensor([1, 2]), mg.tensor([1, 2]))
    True
    """
    if not isinstance(input, Tensor) or not isinstance(other, Tensor):
        raise TypeError("equal: both arguments must be Tensors")
    return tuple(input.shape) == tuple(other.shape) and bool(eq(input, other).all())


@operator(to=None, method=False, smooth=False, name="isin")
def among(
    elements: Tensor | Scalar, test_elements: Tensor | Scalar, invert: bool = False
) -> Any:  # fmt: skip
    """Whether each element equals any of the others."""
    math.some_tensor(elements, test_elements)
    common = build.common_dtype([elements, test_elements])
    x, others = build.as_node(elements, common), build.as_node(test_elements, common)
    column = build.reshape(x, (*x.shape, 1))
    row = build.reshape(others, (others.size,))
    found = build.reduce("or", f.eq(column, row), (-1,))
    return getattr(f, "not")(found) if invert else found


@function
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among the test elements.

    >>> import monograph as mg
    >>> mg.isin(mg.tensor([1, 2, 3]), mg.tensor([3, 1])).tolist()
    [True, False, True]
    """
    made: Tensor = among(elements, test_elements, bool(invert))
    return made


# --- extremes -----------------------------------------------------------------------------------


@operator
def fmax(x: Tensor, other: Tensor) -> Any:
    """The larger of both; a number rather than NaN.

    >>> import monograph as mg
    >>> mg.fmax(mg.tensor([1.0, float("nan")]), mg.tensor([2.0, 3.0])).tolist()
    [2.0, 3.0]
    """
    return _number_first(x, other, f.ge)


fmax.operator.selects = True


@operator
def fmin(x: Tensor, other: Tensor) -> Any:
    """The smaller of both; a number rather than NaN.

    >>> import monograph as mg
    >>> mg.fmin(mg.tensor([1.0, float("nan")]), mg.tensor([2.0, 3.0])).tolist()
    [1.0, 3.0]
    """
    return _number_first(x, other, f.le)


fmin.operator.selects = True


def _number_first(x: Any, other: Any, better: Any) -> Any:
    tensors_only(x=x, other=other)
    chosen = _or(better(x, other), f.ne(other, other))
    return build.select(chosen, x, other)


@operator(inplace=True)
def clamp_min(x: Tensor, min: Tensor | Scalar) -> Any:  # noqa: A002
    """x, but not less than min.

    >>> import monograph as mg
    >>> mg.clamp_min(mg.tensor([-1.0, 2.0]), 0).tolist()
    [0.0, 2.0]
    """
    tensors_only(x=x)
    return math.clamp.operator.definition(x, min=min)


clamp_min.operator.selects = True


@operator(inplace=True)
def clamp_max(x: Tensor, max: Tensor | Scalar) -> Any:  # noqa: A002
    """x, but not more than max.

    >>> import monograph as mg
    >>> mg.clamp_max(mg.tensor([-1.0, 2.0]), 1).tolist()
    [-1.0, 1.0]
    """
    tensors_only(x=x)
    return math.clamp.operator.definition(x, max=max)


clamp_max.operator.selects = True
