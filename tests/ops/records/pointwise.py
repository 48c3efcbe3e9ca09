"""Elementwise functions of one operand, activations, and what normalises along an axis."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as TF

import monograph as mg
from monograph.ops import activation, comparison, reduce, softmax
from monograph.ops import math as ops

from .record import INF, NAN, SPECIAL, Sample, call, mask, normal, numbers, positive, record, whole


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
