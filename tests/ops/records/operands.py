"""Elementwise functions of two operands and more: arithmetic, comparison, selection."""

from collections.abc import Callable

import numpy as np
import torch

import monograph as mg
from monograph.ops import math as ops

from .pointwise import unary
from .record import (
    INF,
    SPECIAL,
    Sample,
    call,
    generator,
    mask,
    normal,
    numbers,
    positive,
    record,
    whole,
)


def binary(
    left: Callable[..., np.ndarray] = normal,
    right: Callable[..., np.ndarray] = normal,
    number: float | None = 1.5,
    special: int = 1,
) -> list[Sample]:
    """Samples of two operands: equal shapes, broadcast both ways, 0-d, empty, numbers, NaN."""
    samples = [
        call(left(3, 4), right(3, 4)),
        call(left(3, 1), right(1, 4)),
        call(left(2, 3, 4), right(4)),
        call(left(), right(2, 3)),
        call(left(2, 3), right()),
        call(left(), right()),
        call(left(0, 3), right(1, 3)),
        call(left(1), right(0)),
    ]
    if number is not None:
        samples += [call(left(3), number), call(left(3), 2), call(left(), number)]
    odd, even = np.meshgrid(SPECIAL, SPECIAL)
    return [*samples, call(odd.copy(), even.copy(), order=special, floats_only=True)]


record("add", mg.add, torch.add, binary(), dtypes="fib")
record("sub", mg.sub, torch.sub, binary(), dtypes="fi")
record("mul", mg.mul, torch.mul, binary(), dtypes="fib")
record("div", mg.div, torch.div, binary(right=positive), dtypes="fi")
record("number - x", lambda x: 2.5 - x, lambda x: 2.5 - x, unary(), dtypes="fi")
record("number / x", lambda x: 2.5 / x, lambda x: 2.5 / x, unary(positive), dtypes="fi")
record("number ** x", lambda x: 2.5**x, lambda x: 2.5**x, unary(special=0), dtypes="fi")
record("number % x", lambda x: 7 % x, lambda x: 7 % x, unary(positive), order=0, dtypes="fi")


def steps(*size: int) -> np.ndarray:
    """Numbers of both signs, none near 0, whose int64 forms are not 0."""
    signs = np.where(generator.uniform(size=size) > 0.5, 1.0, -1.0)
    return np.asarray(positive(*size) * signs)


def divisions(special: int) -> list[Sample]:
    """Operands of floor_divide and remainder: all combinations of signs."""
    a, b = np.meshgrid(numbers(-7, -6, -1, 0, 1, 6, 7), numbers(-3, -2, 2, 3))
    return [*binary(steps, steps, None, special), call(a, b), call(a, 2), call(a, -2.5)]


record(
    "floor_divide", ops.floor_divide, torch.floor_divide, divisions(0)[:-4], order=0, dtypes="fi"
)
record(
    "floor_divide of signs",
    ops.floor_divide,
    torch.floor_divide,
    divisions(0)[-3:],
    order=0,
    dtypes="fi",
)
record("remainder", ops.remainder, torch.remainder, divisions(0), order=0, dtypes="fi")
record("x % number", lambda x: x % 0.7, lambda x: x % 0.7, unary(special=0))


def powers() -> list[Sample]:
    """Bases and exponents, with the zeros where the derivative needs care."""
    zeros = [call(numbers(0.0, -1.5, 2.0), n) for n in (0, 1, 2, 3, 2.0)]
    both = call(numbers(0.0, 2.0, 0.0, 1.0), numbers(0.0, 0.0, 2.0, 3.0), order=1)
    return [*binary(positive, normal, 1.5, special=0), call(normal(4), 3), *zeros, both]


record("pow", ops.pow, torch.pow, powers)
record(
    "pow of integers",
    ops.pow,
    torch.pow,
    [
        call(whole(-4, 5, 6), 3),
        call(whole(-4, 5, 6), whole(0, 5, 6)),
        call(numbers(3, 5, -7), 21),
        call(numbers(1, -1, 0, 4), 65),
        call(numbers(1, -1, 2, 4), numbers(-1, -3, -2, -1)),
        call(whole(0, 5, 3), 2.5),
    ],
    order=0,
    dtypes="i",
)
for _name in ("maximum", "minimum"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        [*binary(number=None), call(numbers(1, 2, 3), numbers(1, 3, 2))],
        dtypes="fib",
    )
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        [*binary(), call(numbers(1, 2, 3), numbers(1, 3, 2))],
        order=0,
        dtypes="fib",
    )
for _name in ("logical_and", "logical_or"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        binary(number=None),
        order=0,
        dtypes="fib",
    )
_bits = [
    call(whole(-9, 9, 3, 4), whole(-9, 9, 4)),
    call(mask(3), mask(3)),
    call(mask(3), whole(0, 4, 3)),
]
record("bitwise_and", lambda a, b: a & b, lambda a, b: a & b, _bits, order=0)
record("bitwise_or", lambda a, b: a | b, lambda a, b: a | b, _bits, order=0)
record("bitwise_xor", lambda a, b: a ^ b, lambda a, b: a ^ b, _bits, order=0)

_edges = numbers(-2.0, -1.0, -0.5, 0.0, 1.0, 2.0)
record(
    "clamp",
    ops.clamp,
    torch.clamp,
    [
        call(_edges, -1.0, 1.0),
        call(_edges, min=-1.0),
        call(_edges, max=0),
        call(_edges, 1.0, -1.0),
        call(normal(3, 4), normal(4), normal(3, 1)),
        call(normal(), -0.5, 0.5),
        call(normal(0, 2), -1.0),
        call(SPECIAL, -0.5, 0.5, order=1, floats_only=True),
    ],
    dtypes="fi",
)
record(
    "where",
    ops.where,
    torch.where,
    [
        call(mask(3, 4), normal(3, 4), normal(3, 4)),
        call(mask(3, 1), normal(4), normal()),
        call(mask(3), normal(3), 1.5),
        call(mask(3), 2, normal(3)),
        call(mask(0, 2), normal(0, 2), normal(2)),
        call(mask(7), SPECIAL, normal(7), floats_only=True),
    ],
    dtypes="fib",
)
record(
    "masked_fill",
    ops.masked_fill,
    torch.masked_fill,
    [
        call(normal(3, 4), mask(3, 4), 7),
        call(normal(3, 4), mask(4), -INF, floats_only=True),
        call(normal(3, 4), mask(3, 1), normal()),
        call(normal(0), mask(0), 1),
    ],
    dtypes="fi",
)
record(
    "lerp",
    lambda x, end, w: x.lerp(end, w),
    torch.lerp,
    [call(normal(3, 4), normal(3, 4), 0.3), call(normal(3, 1), normal(4), 0.7)],
)
record(
    "addcmul",
    lambda x, a, b: x.addcmul(a, b, value=0.5),
    lambda x, a, b: x.addcmul(a, b, value=0.5),
    [call(normal(3, 4), normal(3, 1), normal(4))],
)
record(
    "addcdiv",
    lambda x, a, b: x.addcdiv(a, b, value=0.5),
    lambda x, a, b: x.addcdiv(a, b, value=0.5),
    [call(normal(3, 4), normal(3, 1), positive(4))],
)
record(
    "add with alpha",
    lambda x, y: x.add(y, alpha=3),
    lambda x, y: x.add(y, alpha=3),
    [call(normal(3, 4), normal(4))],
    dtypes="fi",
)
