"""Python's operators on tensors: `a + b`, `a += b`, `a < b`, `-a`; and arithmetic in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import errors
from ..ir import build
from ..ir.node import Slot
from ..record import call
from ..recorder import current
from ..tensor import Tensor
from . import comparison, elements, integers, math, matmul
from .define import Scalar, function, operator
from .inplace import in_place, into, over
from .views import expand

f = build.functions

_OPERANDS = (Tensor, int, float, complex, np.generic, np.ndarray)


@operator(inplace=True)
def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Any:
    """input + value · tensor1 · tensor2.

    >>> import monograph as mg
    >>> mg.addcmul(mg.ones(2), mg.tensor([2.0, 3.0]), mg.tensor([4.0, 5.0]), value=0.5).tolist()
    [5.0, 8.5]
    """
    common = build.common_dtype([x, tensor1, tensor2])
    a, b, c = [build.cast(part, common) for part in (x, tensor1, tensor2)]
    return a + build.as_node(value, common) * b * c


@operator(inplace=True)
def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Any:
    """input + value · tensor1 / tensor2.

    >>> import monograph as mg
    >>> mg.addcdiv(mg.ones(2), mg.tensor([2.0, 4.0]), mg.tensor([4.0, 4.0]), value=2).tolist()
    [2.0, 3.0]
    """
    common = build.common_dtype([x, tensor1, tensor2])
    if not common.is_smooth:
        raise ValueError("addcdiv divides floats; for integers use div and add")
    a, b, c = [build.cast(part, common) for part in (x, tensor1, tensor2)]
    return a + build.as_node(value, common) * b / c


@operator(inplace=True)
def lerp(x: Tensor, end: Tensor, weight: Tensor | Scalar) -> Any:
    """input + weight · (end - input); from the end where the weight is large, so that 1 is it.

    >>> import monograph as mg
    >>> mg.lerp(mg.zeros(2), mg.tensor([4.0, 8.0]), 0.25).tolist()
    [1.0, 2.0]
    """
    others = [end] if isinstance(weight, Slot) else [end, weight]
    for other in others:
        if other.dtype is not x.dtype:
            raise ValueError(f"lerp takes one dtype, got {x.dtype.name} and {other.dtype.name}")
    share = build.as_node(weight, x.dtype)
    way = end - x
    return build.select(f.abs(share) < 0.5, x + share * way, end - way * (1.0 - share))


@operator
def fill(x: Tensor, value: Tensor | Scalar) -> Any:
    """A tensor like x whose elements are all the value.

    >>> import monograph as mg
    >>> mg.fill(mg.zeros(2), 3).tolist()
    [3.0, 3.0]
    """
    if value.ndim:
        raise ValueError(f"the value must be a number or have no axes, got {list(value.shape)}")
    return build.broadcast_to(build.as_node(value, x.dtype), x.shape)


@function
def fill_(input: Tensor, value: Any) -> Tensor:
    """All elements are set to a number; the same one may be seen at many places.

    >>> import monograph as mg
    >>> x = mg.zeros(2)
    >>> x.expand(3, 2).fill_(7).shape, x.tolist()
    (Size([3, 2]), [7.0, 7.0])
    """
    return over(input, fill(input, value), "fill", not isinstance(value, Tensor))


@function
def zero_(input: Tensor) -> Tensor:
    """All elements are set to 0.

    >>> import monograph as mg
    >>> mg.ones(2).zero_().tolist()
    [0.0, 0.0]
    """
    return input.fill_(0)


@function(method=False)
def rsub(input: Tensor, other: Any, *, alpha: float = 1) -> Tensor:
    """other - alpha · input.

    >>> import monograph as mg
    >>> mg.rsub(mg.tensor([1, 2]), 10, alpha=3).tolist()
    [7, 4]
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"rsub: argument 'input' must be a Tensor, not {type(input).__name__}")
    made: Tensor = _difference(other, input, alpha=alpha)
    return made


def _factor(name: str, number: Any, *tensors: Any) -> tuple[Any, ...]:
    """A number and the tensors that it scales, in this order, if that is what they are."""
    if isinstance(number, (int, float)) and all(isinstance(x, Tensor) for x in tensors):
        return (number, *tensors)
    given = ", ".join(type(x).__name__ for x in (number, *tensors))
    raise TypeError(f"{name}() takes a number and then tensors in this order, but got {given}")


def _value_first(name: str) -> None:
    """Let the methods take the number before the tensors: x.addcdiv_(-rate, mean, root)."""
    for method in (name, f"{name}_"):
        plain = getattr(Tensor, method)

        def call(
            x: Tensor, first: Any = None, second: Any = None, third: Any = None, *,
            plain: Any = plain, **options: Any,
        ) -> Any:  # fmt: skip
            if third is None:
                named = {"tensor1": first, "tensor2": second}
                given = {key: part for key, part in named.items() if part is not None}
                return plain(x, **given, **options)
            value, first, second = _factor(name, first, second, third)
            return plain(x, first, second, value=value, **options)

        call.__name__, call.__doc__ = method, plain.__doc__
        setattr(Tensor, method, call)


def _alpha(plain: Callable[..., Any], scaled: Callable[..., Any]) -> Callable[..., Any]:
    """The operator with its second operand times alpha; without alpha it is recorded plainly.

    Programs written for early versions of PyTorch have the number first: x.add_(-rate, gradient).
    """

    def call(
        input: Any, other: Any, scaled_other: Any = None, *, alpha: float = 1, out: Any = None
    ) -> Any:
        if scaled_other is not None:
            alpha, other = _factor(plain.__name__, other, scaled_other)
        if alpha.__class__ is int and alpha == 1:
            return plain(input, other, out=out)
        made = scaled(input, other, alpha)
        return made if out is None else into(out, made)

    call.__name__, call.__doc__ = plain.__name__, plain.__doc__
    call.operator = plain.operator  # type: ignore[attr-defined]
    return call


_difference = _alpha(math.sub, math.sub_scaled)
_POWERS = {2: math.square, 0.5: math.sqrt, -1.0: math.reciprocal}


def _power(input: Any, exponent: Any, *, out: Any = None) -> Any:
    """x to the power of exponent; 2, 1/2 and -1 are computed as what they are.

    >>> import monograph as mg
    >>> mg.pow(mg.tensor([1.0, 2.0]), 2).tolist()
    [1.0, 4.0]
    """
    kind = exponent.__class__
    if (kind is int or kind is float) and isinstance(input, Tensor):
        smooth = input.dtype.is_smooth
        if kind is int and exponent < 0 and not smooth:
            raise errors.OperandError("pow: integers to negative integer powers are not allowed")
        if kind is int and not smooth:
            made = math.whole_power(input, exponent)
            return made if out is None else into(out, made)
        if smooth and exponent in _POWERS:
            return _POWERS[exponent](input, out=out)
    return math.pow(input, exponent, out=out)


_power.__name__ = "pow"


def _compare(plain: Callable[..., Any]) -> Callable[..., Any]:
    def compare(x: Tensor, other: Any) -> Any:
        # Anything else (None, a string) is not equal and has no order, as Python has it.
        return plain(x, other) if isinstance(other, _OPERANDS) else NotImplemented

    return compare


@operator(to=None, method=False)
def overwrite(x: Tensor, source: Tensor) -> Any:
    """The source. x stays on the tape, with a gradient of zeros."""
    return source


def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    if x.is_meta:
        expand(source, *x.shape)  # which says whether it fits
        return x
    new = source.to(x.dtype)
    if new._sizes != x._sizes or current.recorder.capture is not None:  # a trace is for any size
        new = expand(new, *x.shape)
    return overwrite(x, new) if x.requires_grad else math.clone(new)


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """`x * other`. Where `other` is no operand, Python asks it: it may know what to do with x."""
    made = getattr(function, "operator", None)
    rest = () if made is None else tuple([p.default for p in made.parameters[2:]])

    def apply(x: Tensor, other: Any) -> Any:
        try:
            return function(x, other)
        except TypeError:
            if isinstance(other, _OPERANDS):
                raise
            return NotImplemented

    def recorded(x: Tensor, other: Any) -> Any:  # with one call less on the way
        try:
            return call(made, (x, other), rest)
        except TypeError:
            if isinstance(other, _OPERANDS):
                raise
            return NotImplemented

    return apply if made is None else recorded


def _reversed(function: Callable[..., Any]) -> Callable[..., Any]:
    """`other * x`, which Python asks for where `other` does not know what to do with x."""

    def swapped(x: Tensor, other: Any) -> Any:
        if not isinstance(x, Tensor) and not isinstance(other, Tensor):
            raise TypeError(f"expected a Tensor, got {type(x).__name__}")
        try:
            return function(other, x)
        except TypeError:
            if isinstance(other, _OPERANDS):
                raise
            return NotImplemented

    return swapped


def _counted(added: Callable[..., Any]) -> Callable[..., Any]:
    """x += other, where table[i][j] += 1 is done at the call."""

    def method(x: Tensor, other: Any) -> Any:
        if (other.__class__ is int or other.__class__ is float) and elements.add(x, other):
            return x
        return added(x, other)

    return method


def _attach() -> None:
    function(_alpha(math.add, math.add_scaled), method=True, inplace=True)
    function(_difference, method=True, inplace=True, aliases=("subtract",))
    function(_power, method=True, inplace=True)
    _value_first("addcmul")
    _value_first("addcdiv")
    Tensor.copy_ = in_place(_copy, "copy")  # type: ignore[attr-defined]
    Tensor.fill_, Tensor.zero_ = fill_, zero_  # type: ignore[attr-defined]
    arithmetic = {
        "add": math.add, "sub": math.sub, "mul": math.mul, "truediv": math.div, "div": math.div,
        "floordiv": math.floor_divide, "mod": math.remainder, "pow": _power,
        "matmul": matmul.matmul, "and": integers.bitwise_and, "or": integers.bitwise_or,
        "xor": integers.bitwise_xor, "lshift": integers.bitwise_left_shift,
        "rshift": integers.bitwise_right_shift,
    }  # fmt: skip
    for name, plain in arithmetic.items():
        setattr(Tensor, f"__{name}__", _plain(plain))
        setattr(Tensor, f"__r{name}__", _reversed(plain))
        setattr(Tensor, f"__i{name}__", _plain(in_place(plain, plain.__name__)))
    Tensor.__iadd__ = _counted(Tensor.__iadd__)  # type: ignore[attr-defined]
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Tensor, f"__{name}__", _compare(getattr(comparison, name)))
    Tensor.__neg__ = lambda x: math.neg(x)  # type: ignore[method-assign,assignment]
    Tensor.__pos__ = lambda x: math.positive(x)  # type: ignore[attr-defined]
    Tensor.__abs__ = lambda x: math.abs(x)  # type: ignore[attr-defined]
    Tensor.__invert__ = lambda x: integers.bitwise_not(x)  # type: ignore[attr-defined]


_attach()
