"""The table of operator records: what each operator is compared with, and on which inputs.

A `Record` names an operator, says how Monograph and how PyTorch call it, and yields samples. In a
sample every float64 array is an input that takes the dtype under test and is differentiated; other
arrays (indices, masks) stay as they are, and all else is an argument. `test_operators.py` turns the
table into tests; to test a new operator, add a line here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as TF

import monograph as mg
import monograph.nn.functional as F
from monograph.ops import (
    activation,
    batch_norm,
    comparison,
    joining,
    moments,
    reduce,
    shape,
    softmax,
    views,
)
from monograph.ops import math as ops
from monograph.ops import matmul as products

NAN, INF = float("nan"), float("inf")


@dataclass
class Sample:
    """Arguments of one call. `order` is the highest derivative that is compared there."""

    args: tuple[Any, ...]
    order: int = 2
    floats_only: bool = False  # holds NaN or infinity, which no integer is
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass
class Record:
    """One operator: how both libraries call it, on which samples, for which dtypes."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    samples: Callable[[], Iterable[Sample]]
    order: int = 2
    dtypes: str = "f"  # f: float32 and float64, i: int64, b: bool
    tolerance: float = 1.0  # a factor on the tolerances


RECORDS: list[Record] = []


def record(name: str, ours: Any, theirs: Any, samples: Any, **facts: Any) -> None:
    """Add a record; `samples` is a function without arguments, or a list of samples."""
    made = samples if callable(samples) else lambda: samples
    RECORDS.append(Record(name, ours, theirs, made, **facts))


def call(*args: Any, order: int = 2, floats_only: bool = False, **kwargs: Any) -> Sample:
    """A sample that calls with these arguments."""
    return Sample(args, order, floats_only, kwargs)


_generator = np.random.default_rng(20240607)


def normal(*size: int, scale: float = 1.0) -> np.ndarray:
    """Normally distributed float64 numbers."""
    return np.asarray(_generator.normal(size=size) * scale)


def positive(*size: int) -> np.ndarray:
    """Numbers from 0.5 to 2."""
    return np.asarray(_generator.uniform(0.5, 2.0, size=size))


def whole(low: int, high: int, *size: int) -> np.ndarray:
    """int64 numbers in [low, high)."""
    return np.asarray(_generator.integers(low, high, size=size), np.int64)


def mask(*size: int) -> np.ndarray:
    """Booleans."""
    return np.asarray(_generator.uniform(size=size) > 0.4)


def numbers(*values: float) -> np.ndarray:
    """These numbers as float64."""
    return np.asarray(values, np.float64)


# --- elementwise, one operand -------------------------------------------------------------------

SPECIAL = numbers(NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0)


def unary(draw: Callable[..., np.ndarray] = normal, special: int = 1) -> Callable[..., Any]:
    """Samples of one operand; `special` is the derivative order compared at NaN, infinity, 0."""
    plain = [call(draw(3, 4)), call(draw()), call(draw(0, 3)), call(draw(2, 1, 5))]
    return lambda: [*plain, call(SPECIAL, order=special, floats_only=True)]


for _name in ("neg", "abs", "square", "sign"):
    record(_name, getattr(ops, _name), getattr(torch, _name), unary(), dtypes="fi")
for _name in ("exp", "expm1", "sin", "cos", "tanh", "erf"):
    record(_name, getattr(ops, _name), getattr(torch, _name), unary(), dtypes="fib")
for _name in ("log", "log1p", "sqrt", "rsqrt", "reciprocal"):
    record(_name, getattr(ops, _name), getattr(torch, _name), unary(positive), dtypes="fi")
for _name in ("floor", "ceil", "round"):
    record(_name, getattr(ops, _name), getattr(torch, _name), unary(), dtypes="fi")
record("round to even", ops.round, torch.round, [call(numbers(-1.5, -0.5, 0.5, 1.5, 2.5))])
record("isnan", comparison.isnan, torch.isnan, unary(), order=0, dtypes="fib")
record("logical_not", comparison.logical_not, torch.logical_not, unary(), order=0, dtypes="fib")
record("bitwise_not", lambda x: ~x, lambda x: ~x, [call(whole(-5, 5, 4)), call(mask(4))], order=0)
record("clone", ops.clone, torch.clone, unary(), dtypes="fib")
record("detach", ops.detach, torch.detach, unary(), order=0, dtypes="fib")
for _target in ("float32", "float64", "int64", "int32", "uint8", "bool"):
    _ours, _theirs = getattr(mg, _target + "_" * (_target == "bool")), getattr(torch, _target)
    record(
        f"cast to {_target}",
        lambda x, dtype=_ours: ops.cast(x, dtype),
        lambda x, dtype=_theirs: x.to(dtype),
        [call(positive(3, 4) * 3), call(positive()), call(positive(0, 2))],
        order=2 if _target == "float64" else 0,
        dtypes="fib",
    )

# --- activations --------------------------------------------------------------------------------

STEEP = numbers(-800.0, -100.0, -30.0, -1e-3, 0.0, 30.0, 100.0, 800.0)


def activations() -> list[Sample]:
    """One operand, with large arguments among them, where careless formulas overflow."""
    return [*unary(special=0)(), call(STEEP)]


record("relu", activation.relu, torch.relu, lambda: [*unary()(), call(STEEP)], dtypes="fi")
record("sigmoid", activation.sigmoid, torch.sigmoid, activations, dtypes="fib")
record("silu", activation.silu, TF.silu, activations)
record("leaky_relu", activation.leaky_relu, TF.leaky_relu, activations)
record(
    "leaky_relu with a slope",
    lambda x: activation.leaky_relu(x, 0.3),
    lambda x: TF.leaky_relu(x, 0.3),
    activations,
)
record("gelu", activation.gelu, TF.gelu, lambda: [*activations()[:4], call(STEEP)])
record(
    "gelu by tanh",
    lambda x: activation.gelu(x, approximate="tanh"),
    lambda x: TF.gelu(x, approximate="tanh"),
    lambda: [*activations()[:4], call(STEEP)],
)


def along(*extra: Sample) -> list[Sample]:
    """Samples of a function of (x, dim)."""
    return [
        call(normal(3, 4), 1),
        call(normal(3, 4), 0),
        call(normal(2, 3, 4), -2),
        call(normal(5, scale=100), 0),
        call(normal(3, 1), 1),
        call(normal(), 0),
        call(normal(0, 3), 1),
        *extra,
    ]


_infinite = np.array([[0.0, -INF, 1.0], [-INF, -INF, -INF], [NAN, 0.0, 1.0]])
_masked = np.array([[0.0, -INF, 1.0], [2.0, -INF, -INF]])
for _name in ("softmax", "log_softmax"):
    record(
        _name,
        getattr(softmax, _name),
        getattr(torch, _name),
        along(call(_infinite, 1, order=0), call(_masked, 1, order=1 if "log" not in _name else 0)),
    )
record(
    "logsumexp",
    reduce.logsumexp,
    torch.logsumexp,
    along(
        call(_infinite, 1, order=0),
        call(_masked, 1, order=1),
        call(numbers(INF, 0.0, -INF), 0, order=0),
        call(normal(2, 3, 4), (0, 2)),
        call(normal(2, 3), 1, keepdim=True),
    ),
)

# --- elementwise, two operands ------------------------------------------------------------------


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
    signs = np.where(_generator.uniform(size=size) > 0.5, 1.0, -1.0)
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

# --- reductions ---------------------------------------------------------------------------------


def reductions(*extra: Sample, empty: bool = True, tuples: bool = True) -> list[Sample]:
    """Samples of a function of (x, dim, keepdim)."""
    samples = [
        call(normal(3, 4)),
        call(normal(3, 4), 0),
        call(normal(2, 3, 4), -1, keepdim=True),
        call(normal(2, 3, 4), 1),
        call(normal()),
        call(normal(3, 1), 1),
        call(normal(3, 0), 0),
    ]
    if tuples:
        samples += [call(normal(2, 3, 4), (0, 2)), call(normal(2, 3, 4), (2, 1), keepdim=True)]
    if empty:
        samples += [call(normal(0, 3), *dims, order=1) for dims in ((), (0,), (1,))]
    return [*samples, *extra]


_rows = np.array([[1.0, NAN, 2.0], [INF, -INF, 0.0], [INF, 1.0, INF], [1.0, 1.0, 0.0]])
_odd_rows = call(_rows, 1, order=1, floats_only=True)
_ties = call(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), 1)
_all_tied = call(np.array([[3.0, 1.0], [1.0, 3.0]]))
record("sum", mg.sum, torch.sum, reductions(_odd_rows), dtypes="fib")
record(
    "sum in another dtype",
    lambda x: mg.sum(x, 0, dtype=mg.float64),
    lambda x: torch.sum(x, 0, dtype=torch.float64),
    [call(normal(3, 4))],
    dtypes="fib",
)
record("mean", mg.mean, torch.mean, reductions(_odd_rows))
_spread = [
    call(normal(3, 4), 1, correction=0),
    call(normal(3, 4), 1, correction=2),
    call(normal(3, 2), 1, correction=2, order=0),
    call(normal(3, 1), 1, order=0),
    call(np.array([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]]), 1, order=1),
    call(normal(4, 3, scale=1e-3) + 100.0, 0, order=0),
]
record("var", mg.var, torch.var, [*_spread, *reductions(empty=False)[:4]])
record("std", mg.std, torch.std, [*_spread, *reductions(empty=False)[:4]])
_zeros = [
    call(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0]]), 1),
    call(np.array([[2.0, 0.0], [3.0, 4.0]])),
]
record("prod", mg.prod, torch.prod, [*reductions(tuples=False), *_zeros], dtypes="fib")
for _name in ("amax", "amin"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, _ties, _all_tied, empty=False),
        dtypes="fi",
    )
for _name in ("max", "min"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, _ties, _all_tied, empty=False, tuples=False),
        dtypes="fi",
    )
for _name in ("argmax", "argmin"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, _ties, _all_tied, empty=False, tuples=False),
        order=0,
        dtypes="fi",
    )
for _name in ("any", "all"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        reductions(_odd_rows, call(np.zeros((2, 3)), 1), call(np.ones((2, 3)), 0)),
        order=0,
        dtypes="fib",
    )
record(
    "norm",
    moments.norm,
    torch.linalg.vector_norm,
    [call(normal(3, 4)), call(normal()), call(np.zeros(3), order=1), call(normal(0), order=1)],
)
record(
    "global_norm",
    reduce.global_norm,
    lambda tensors: torch.linalg.vector_norm(torch.cat([t.reshape(-1) for t in tensors])),
    [call([normal(3, 4), normal(5), normal()])],
)

# --- shape --------------------------------------------------------------------------------------

record(
    "reshape",
    views.reshape,
    lambda x, *sizes: x.reshape(*sizes),
    [
        call(normal(3, 4), 2, 6),
        call(normal(3, 4), (2, -1)),
        call(normal(2, 3, 4), -1),
        call(normal(1), ()),
        call(normal(), 1, 1),
        call(normal(0, 3), 3, 0, 2),
        call(normal(6, 4), 4, 3, 2),
    ],
    dtypes="fib",
)
record(
    "permute",
    views.permute,
    lambda x, *dims: x.permute(*dims),
    [call(normal(2, 3, 4), 2, 0, 1), call(normal(2, 3), (-1, 0)), call(normal(0, 3), 1, 0)],
    dtypes="fib",
)
record(
    "transpose",
    mg.transpose,
    torch.transpose,
    [call(normal(2, 3, 4), 0, 2), call(normal(3, 4), -1, 0), call(normal(0, 2), 0, 1)],
    dtypes="fib",
)
record(
    "unsqueeze",
    mg.unsqueeze,
    torch.unsqueeze,
    [call(normal(3, 4), 0), call(normal(3, 4), -1), call(normal(), 0), call(normal(0), 1)],
    dtypes="fib",
)
record(
    "squeeze",
    mg.squeeze,
    torch.squeeze,
    [
        call(normal(3, 1, 4, 1)),
        call(normal(3, 1, 4), 1),
        call(normal(3, 1, 4), 0),
        call(normal(1, 3, 1), (0, 2)),
        call(normal()),
        call(normal(1, 0)),
    ],
    dtypes="fib",
)
record(
    "expand",
    views.expand,
    lambda x, *sizes: x.expand(*sizes),
    [
        call(normal(3, 1), 3, 4),
        call(normal(3, 1), (2, -1, 4)),
        call(normal(), 2, 3),
        call(normal(1), 0),
        call(normal(1, 3), 0, 3),
    ],
    dtypes="fib",
)
record(
    "flatten",
    mg.flatten,
    torch.flatten,
    [
        call(normal(2, 3, 4)),
        call(normal(2, 3, 4), 1),
        call(normal(2, 3, 4), 0, 1),
        call(normal()),
        call(normal(0, 3)),
    ],
    dtypes="fib",
)
record(
    "narrow",
    shape.narrow,
    torch.narrow,
    [
        call(normal(5, 4), 0, 1, 3),
        call(normal(5, 4), -1, 0, 2),
        call(normal(3), 0, 3, 0),
        call(normal(4), 0, -3, 2),
    ],
    dtypes="fib",
)
KEYS: list[Any] = [
    1,
    -1,
    (0, 2),
    slice(1, 3),
    slice(None, None, 2),
    (slice(None), slice(-2, None)),
    (..., 1),
    (1, ...),
    None,
    (slice(None), None, 2),
    (..., None),
    slice(3, 1),
    slice(-100, 100, 3),
    (),
]
record(
    "index",
    lambda x, key: x[key],
    lambda x, key: x[key],
    [*[call(normal(4, 5), key) for key in KEYS], call(normal(2, 3, 4), (1, ..., slice(1, 4, 2)))],
    dtypes="fib",
)
record(
    "index by tensors",
    lambda x, *keys: x[keys if len(keys) > 1 else keys[0]],
    lambda x, *keys: x[keys if len(keys) > 1 else keys[0]],
    [
        call(normal(4, 3), np.array([0, 3, 3, -1])),
        call(normal(4), np.array([[0, 2], [1, -4]])),
        call(normal(4, 3), np.array([0, 3, -1]), np.array([2, -3, 1])),
        call(normal(4, 3, 2), np.array([0, 3, -1]), np.array([[2], [-3]])),
        call(normal(4, 3), np.zeros(0, np.int64)),
    ],
    dtypes="fib",
)
record(
    "flip",
    joining.flip,
    lambda x, *dims: x.flip(*dims),
    [call(normal(2, 3), 0), call(normal(2, 3, 4), (0, -1)), call(normal(0, 2), 0)],
    dtypes="fib",
)
record(
    "cat",
    mg.cat,
    torch.cat,
    [
        call([normal(2, 3), normal(1, 3), normal(4, 3)]),
        call([normal(2, 3), normal(2, 1)], 1),
        call([normal(2, 3), normal(2, 0), normal(2, 2)], -1),
        call([normal(3)], 0),
        call([normal(2), whole(0, 5, 3)], 0),
        call([SPECIAL, SPECIAL], 0, floats_only=True),
    ],
    dtypes="fib",
)
record(
    "stack",
    mg.stack,
    torch.stack,
    [
        call([normal(2, 3), normal(2, 3)]),
        call([normal(2, 3)] * 3, -1),
        call([normal(), normal()], 0),
        call([normal(0, 2), normal(0, 2)], 1),
    ],
    dtypes="fib",
)
record(
    "split",
    mg.split,
    torch.split,
    [
        call(normal(5, 3), 2),
        call(normal(5, 3), [1, 0, 2], -1),
        call(normal(4, 2), 4),
        call(normal(0, 2), 3),
    ],
    dtypes="fib",
)
record(
    "chunk",
    mg.chunk,
    torch.chunk,
    [call(normal(5, 3), 2), call(normal(2, 7), 3, -1), call(normal(2), 5)],
    dtypes="fib",
)
record(
    "unbind", mg.unbind, torch.unbind, [call(normal(3, 2)), call(normal(2, 3), -1)], dtypes="fib"
)
record(
    "pad",
    F.pad,
    TF.pad,
    [
        call(normal(2, 3), (1, 2)),
        call(normal(2, 3), (1, 0, 0, 2), value=1.5),
        call(normal(4, 5), (-1, -2)),
        call(normal(4, 5), (-1, 2, 1, -1)),
        call(normal(0, 2), (0, 0, 1, 1), value=-3.0),
        call(SPECIAL, (1, 1), floats_only=True),
    ],
    dtypes="fi",
)
for _name in ("tril", "triu"):
    record(
        _name,
        getattr(mg, _name),
        getattr(torch, _name),
        [
            call(normal(4, 4)),
            call(normal(3, 5), 1),
            call(normal(2, 5, 3), -1),
            call(normal(0, 3)),
            call(np.full((3, 3), NAN), floats_only=True),
        ],
        dtypes="fib",
    )
record(
    "write through a view",
    lambda x, y: _written(x, y),
    lambda x, y: _written(x, y),
    [call(normal(4, 5), normal(2, 2)), call(normal(4, 5), np.full((2, 2), NAN), floats_only=True)],
    dtypes="fib",
)


def _written(x: Any, y: Any) -> Any:
    copy = x.clone()
    copy.permute(1, 0)[1:4:2, 2:] = y
    return copy


record(
    "arange",
    lambda *args: mg.arange(*args),
    lambda *args: torch.arange(*args),
    [call(5), call(2, 7), call(0, 10, 3), call(5, 0, -2), call(0.0, 1.0, 0.3), call(0), call(1.5)],
    order=0,
)
record(
    "full",
    mg.full,
    torch.full,
    [call((2, 3), 1.5), call((2,), 7), call((), True), call((0, 2), NAN)],
    order=0,
)

# --- indexing by integers -----------------------------------------------------------------------

record(
    "gather",
    mg.gather,
    torch.gather,
    [
        call(normal(3, 4), 1, whole(0, 4, 3, 2)),
        call(normal(3, 4), 0, whole(0, 3, 5, 4)),
        call(normal(3, 4), -1, whole(0, 4, 2, 6)),
        call(normal(5), 0, whole(0, 5, 0)),
        call(normal(), 0, whole(0, 1)),
    ],
    dtypes="fib",
)
record(
    "index_select",
    mg.index_select,
    torch.index_select,
    [
        call(normal(3, 4), 0, whole(0, 3, 5)),
        call(normal(3, 4), -1, whole(0, 4, 2)),
        call(normal(3, 4), 1, whole(0, 4, 0)),
    ],
    dtypes="fib",
)
record(
    "embedding",
    F.embedding,
    TF.embedding,
    [
        call(whole(0, 5, 4), normal(5, 3)),
        call(whole(0, 5, 2, 3), normal(5, 3)),
        call(whole(0, 5), normal(5, 3)),
        call(whole(0, 5, 0), normal(5, 3), order=1),
    ],
)
record(
    "one_hot",
    F.one_hot,
    TF.one_hot,
    [call(whole(0, 4, 3), 4), call(whole(0, 4, 2, 3), 6), call(whole(0, 4), 4)],
    order=0,
)

# --- contractions -------------------------------------------------------------------------------

record(
    "matmul",
    mg.matmul,
    torch.matmul,
    [
        call(normal(3, 4), normal(4, 5)),
        call(normal(4), normal(4)),
        call(normal(3, 4), normal(4)),
        call(normal(4), normal(4, 5)),
        call(normal(2, 3, 4), normal(2, 4, 5)),
        call(normal(2, 3, 4), normal(4, 5)),
        call(normal(2, 1, 3, 4), normal(5, 4, 2)),
        call(normal(1, 3, 4), normal(1, 4, 5)),
        call(normal(4), normal(2, 4, 5)),
        call(normal(2, 3, 4), normal(4)),
        call(normal(3, 0), normal(0, 2)),
        call(normal(0, 3), normal(3, 2)),
        call(normal(0, 2, 3), normal(3, 2)),
        call(normal(1, 1), normal(1, 1)),
    ],
    dtypes="fi",
    tolerance=3,
)
record(
    "linear",
    products.linear,
    TF.linear,
    [
        call(normal(3, 4), normal(5, 4), normal(5)),
        call(normal(2, 3, 4), normal(5, 4)),
        call(normal(4), normal(5, 4), normal(5)),
        call(normal(0, 4), normal(5, 4), normal(5)),
    ],
    tolerance=3,
)


def convolutions(rank: int) -> list[Sample]:
    """Strided, padded, dilated and grouped ones."""
    size = (7, 6, 5)[:rank]
    kernel = (3, 2, 2)[:rank]
    x, weight = normal(2, 4, *size), normal(6, 4, *kernel)
    samples = [
        call(x, weight, normal(6)),
        call(x, weight, None, 2, 1),
        call(x, weight, normal(6), stride=(2, 1, 2)[:rank], padding=(1, 0, 1)[:rank], dilation=2),
        call(x, normal(6, 2, *kernel), normal(6), groups=2),
        call(x, normal(8, 1, *kernel), None, padding=1, groups=4),
        call(x, normal(6, 4, *([3] * rank)), padding="same"),
        call(x[0], weight, normal(6)),
        call(x[:0], weight, normal(6)),
    ]
    return samples if rank < 3 else samples[:4]


for _rank in (1, 2, 3):
    record(
        f"conv{_rank}d",
        getattr(F, f"conv{_rank}d"),
        getattr(TF, f"conv{_rank}d"),
        convolutions(_rank),
        tolerance=10,
    )
    _size = (7, 6, 5)[:_rank]
    record(
        f"max_pool{_rank}d",
        getattr(F, f"max_pool{_rank}d"),
        getattr(TF, f"max_pool{_rank}d"),
        [
            call(normal(2, 3, *_size), 2),
            call(normal(2, 3, *_size), (3, 2, 2)[:_rank], 1, 1),
            call(normal(2, 3, *_size), 3, 2, 1, ceil_mode=True),
            call(normal(2, 3, *_size), 2, stride=1, dilation=2),
            call(normal(3, *_size), 2),
            call(np.ones((1, 1, *_size)), 2),
        ],
    )
    record(
        f"avg_pool{_rank}d",
        getattr(F, f"avg_pool{_rank}d"),
        getattr(TF, f"avg_pool{_rank}d"),
        [
            call(normal(2, 3, *_size), 2),
            call(normal(2, 3, *_size), (3, 2, 2)[:_rank], 2, 1),
            call(normal(2, 3, *_size), 3, 2, 1, True),
            call(normal(2, 3, *_size), 3, 2, 1, True, False),
            call(normal(2, 3, *_size), 3, 1, 1, count_include_pad=False),
            call(normal(3, *_size), 2),
        ],
    )
    record(
        f"adaptive_avg_pool{_rank}d",
        getattr(F, f"adaptive_avg_pool{_rank}d"),
        getattr(TF, f"adaptive_avg_pool{_rank}d"),
        [
            call(normal(2, 3, *(6, 4, 8)[:_rank]), (3, 2, 2)[:_rank]),
            call(normal(2, 3, *(6, 4, 8)[:_rank]), 1),
            call(normal(3, *(6, 4, 8)[:_rank]), 2),
        ],
    )

# --- normalisation, attention, losses -----------------------------------------------------------

record(
    "layer_norm",
    F.layer_norm,
    TF.layer_norm,
    [
        call(normal(3, 4), (4,), normal(4), normal(4)),
        call(normal(2, 3, 4), (3, 4), normal(3, 4)),
        call(normal(2, 3, 4), (4,), eps=1e-3),
        call(normal(3, 1), (1,)),
        call(np.ones((2, 3)), (3,), order=1),
        call(normal(0, 4), (4,), normal(4), normal(4)),
    ],
    tolerance=10,
)


def _batch_norm(library: Any) -> Callable[..., Any]:
    def run(x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool) -> Any:
        mean, var = mean.detach().clone(), var.detach().clone()
        y = library.batch_norm(x, mean, var, weight, bias, training, 0.3, 1e-3)
        return y, mean, var

    return run


record(
    "batch_norm",
    _batch_norm(F),
    _batch_norm(TF),
    [
        call(x, normal(3), normal(3), normal(3), positive(3), training)
        for training in (True, False)
        for x in (normal(4, 3), normal(2, 3, 5), normal(2, 3, 2, 4))
    ],
    tolerance=10,
)
record(
    "batch_norm with given statistics",
    lambda x, mean, var: batch_norm.batch_norm_inference(x, mean, var),
    lambda x, mean, var: TF.batch_norm(x, mean.detach(), var.detach()),
    [call(normal(2, 3, 4), normal(3), positive(3))],
    order=0,
)
_q, _k, _v = normal(2, 2, 3, 4), normal(2, 2, 5, 4), normal(2, 2, 5, 6)
record(
    "scaled_dot_product_attention",
    F.scaled_dot_product_attention,
    TF.scaled_dot_product_attention,
    [
        call(_q, _k, _v),
        call(_q, _k, _v, scale=0.3),
        call(_q, _k, _v, normal(3, 5)),
        call(_q, _k, _v, np.tri(3, 5, dtype=bool)),
        call(normal(2, 4, 3), normal(2, 4, 3), normal(2, 4, 3), is_causal=True),
        call(normal(4, 3), normal(5, 3), normal(5, 2)),
    ],
    tolerance=10,
)
for _name in ("mse_loss", "l1_loss"):
    record(
        _name,
        getattr(F, _name),
        getattr(TF, _name),
        [
            call(normal(3, 4), normal(3, 4)),
            call(normal(3, 4), normal(3, 4), reduction="sum"),
            call(normal(3, 4), normal(3, 4), reduction="none"),
            call(normal(), normal()),
            call(normal(0), normal(0), order=1),
        ],
    )
_targets = np.array([1, -100, 0, 3])
record(
    "cross_entropy",
    lambda x, target, **kwargs: F.cross_entropy(x, target, **kwargs),
    lambda x, target, **kwargs: TF.cross_entropy(x, target, **kwargs),
    [
        call(normal(4, 5), whole(0, 5, 4)),
        call(normal(4, 5), _targets),
        call(normal(4, 5), whole(0, 5, 4), ignore_index=2),
        call(normal(4, 5), _targets, reduction="sum"),
        call(normal(4, 5), _targets, reduction="none"),
        call(normal(4, 5, scale=300.0), whole(0, 5, 4)),
        call(normal(2, 5, 3, 2), whole(0, 5, 2, 3, 2)),
        call(normal(2, 5, 3), whole(0, 5, 2, 3), reduction="none"),
        call(normal(5), whole(0, 5)),
        call(normal(5), whole(0, 5), reduction="none"),
        call(normal(2, 5), np.array([-100, -100]), order=0),
    ],
    tolerance=3,
)
record(
    "nll_loss",
    F.nll_loss,
    TF.nll_loss,
    [
        call(normal(4, 5), whole(0, 5, 4)),
        call(normal(4, 5), whole(0, 5, 4), reduction="sum"),
        call(normal(4, 5), whole(0, 5, 4), reduction="none"),
    ],
)
