"""Python's operators on tensors: `a + b`, `a += b`, `a < b`, `-a`; and arithmetic in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..tensor import Tensor
from . import math, matmul
from .creation import full_like
from .define import Scalar, function, operator
from .inplace import in_place
from .views import expand

_OPERANDS = (Tensor, int, float, complex, np.generic)


@operator(inplace=True)
def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Any:
    """input + value · tensor1 · tensor2."""
    return x + tensor1 * tensor2 * value


@operator(inplace=True)
def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Any:
    """input + value · tensor1 / tensor2."""
    return x + tensor1 / tensor2 * value


@function(method=True, inplace=True)
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """input + weight · (end - input)."""
    return math.add(input, math.mul(math.sub(end, input), weight))


def _alpha(plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Any:
        return plain(input, other if alpha == 1 else math.mul(other, alpha), out=out)

    call.__name__, call.__doc__ = plain.__name__, plain.__doc__
    call.operator = plain.operator
    return call


def _compare(plain: Callable[..., Any]) -> Callable[..., Any]:
    def compare(x: Tensor, other: Any) -> Any:
        # Anything else (None, a string) is not equal and has no order, as Python has it.
        return plain(x, other) if isinstance(other, _OPERANDS) else NotImplemented

    return compare


def _copy(x: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    return math.clone(expand(source.to(x.dtype), *x.shape))


def _filled(x: Tensor, value: float) -> Tensor:
    return full_like(x, value)


def _attach() -> None:
    for name in ("add", "sub"):
        function(_alpha(getattr(math, name)), method=True, inplace=True)
    for name, plain in (
        ("copy", _copy), ("fill", _filled), ("zero", lambda x: full_like(x, 0)),
    ):  # fmt: skip
        setattr(Tensor, f"{name}_", in_place(plain, name))
    arithmetic = {
        "add": math.add, "sub": math.sub, "mul": math.mul, "truediv": math.div,
        "floordiv": math.floor_divide, "mod": math.remainder, "pow": math.pow,
        "matmul": matmul.matmul, "and": math.bitwise_and, "or": math.bitwise_or,
        "xor": math.bitwise_xor,
    }  # fmt: skip
    for name, plain in arithmetic.items():
        setattr(Tensor, f"__{name}__", plain)
        setattr(Tensor, f"__r{name}__", lambda a, b, call=plain: call(b, a))
        written = in_place(plain, plain.__name__)
        setattr(Tensor, f"__i{name}__", lambda a, b, call=written: call(a, b))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Tensor, f"__{name}__", _compare(getattr(math, name)))
    Tensor.__neg__ = lambda x: math.neg(x)  # type: ignore[method-assign,assignment]
    Tensor.__abs__ = lambda x: math.abs(x)  # type: ignore[attr-defined]
    Tensor.__invert__ = lambda x: math.bitwise_not(x)  # type: ignore[attr-defined]


_attach()
