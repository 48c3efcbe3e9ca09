"""Functions of integers: bits, shifts, common divisors and multiples."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.dtypes import Kind
from ..tensor import Tensor
from .define import Scalar, operator
from .math import some_tensor, tensors_only

f = build.functions


def _require_integers(name: str, x: Any, other: Any) -> None:
    dtype = build.common_dtype([x, other])
    if dtype.kind is not Kind.INT:
        raise NotImplementedError(f"{name} is not defined for {dtype.name} tensors")


def _bits(function: str, x: Any, other: Any) -> Any:
    some_tensor(x, other)
    if build.common_dtype([x, other]).is_smooth:
        raise NotImplementedError("bitwise operators take integers and booleans")
    return build.elementwise(function, x, other)


@operator(inplace=True)
def bitwise_and(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """The bits set in both; of booleans, both.

    >>> import monograph as mg
    >>> mg.bitwise_and(mg.tensor([6, 3]), 5).tolist()
    [4, 1]
    """
    return _bits("and", x, other)


@operator(inplace=True)
def bitwise_or(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """The bits set in either; of booleans, either.

    >>> import monograph as mg
    >>> mg.bitwise_or(mg.tensor([6, 3]), 8).tolist()
    [14, 11]
    """
    return _bits("or", x, other)


@operator(inplace=True)
def bitwise_xor(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """The bits set in one of both; of booleans, whether they differ.

    >>> import monograph as mg
    >>> mg.bitwise_xor(mg.tensor([6, 3]), 2).tolist()
    [4, 1]
    """
    return _bits("xor", x, other)


@operator(inplace=True)
def bitwise_not(x: Tensor) -> Any:
    """The bits not set; of booleans, the opposite.

    >>> import monograph as mg
    >>> mg.bitwise_not(mg.tensor([0, 5])).tolist()
    [-1, -6]
    """
    if x.dtype.is_smooth:
        raise TypeError("bitwise operators take integers and booleans")
    return getattr(f, "not")(x)


@operator(inplace=True)
def bitwise_left_shift(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """x · 2**other; 0 where all bits are shifted out.

    >>> import monograph as mg
    >>> mg.bitwise_left_shift(mg.tensor([1, 3]), 2).tolist()
    [4, 12]
    """
    some_tensor(x, other)
    _require_integers("<<", x, other)
    return f.shl(x, other)


@operator(inplace=True)
def bitwise_right_shift(x: Tensor | Scalar, other: Tensor | Scalar) -> Any:
    """floor(x / 2**other).

    >>> import monograph as mg
    >>> mg.bitwise_right_shift(mg.tensor([9, -9]), 1).tolist()
    [4, -5]
    """
    some_tensor(x, other)
    _require_integers(">>", x, other)
    return f.shr(x, other)


@operator(inplace=True)
def gcd(x: Tensor, other: Tensor) -> Any:
    """The greatest common divisor, never negative.

    >>> import monograph as mg
    >>> mg.gcd(mg.tensor([12, -18]), mg.tensor([8, 27])).tolist()
    [4, 9]
    """
    tensors_only(x=x, other=other)
    _require_integers("gcd", x, other)
    return f.gcd(x, other)


@operator(inplace=True)
def lcm(x: Tensor, other: Tensor) -> Any:
    """The least common multiple, never negative.

    >>> import monograph as mg
    >>> mg.lcm(mg.tensor([4, 0]), mg.tensor([6, 5])).tolist()
    [12, 0]
    """
    tensors_only(x=x, other=other)
    _require_integers("lcm", x, other)
    return f.abs(f.div(x, f.gcd(x, other)) * other)
