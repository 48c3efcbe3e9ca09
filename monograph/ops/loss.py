"""Losses."""

from __future__ import annotations

from typing import Any

from ..ir import build
from ..ir.check import check
from ..ir.dtypes import Kind, int64
from ..ir.extent import real
from ..ir.index import Read
from ..ir.node import axis
from ..tensor import Tensor
from .define import operator
from .reduce import axes_of, logsumexp

f = build.functions


def reduced(x: Any, reduction: str) -> Any:
    """The loss per element, its sum, or its mean."""
    if reduction == "none":
        return x
    axes = axes_of(x, None)
    if reduction == "sum":
        return build.reduce("add", x, axes)
    if reduction == "mean":
        return build.reduce("add", x, axes) / real(x.size)
    raise ValueError(f"reduction must be 'none', 'mean' or 'sum', got {reduction!r}")


@operator(to="nn.functional", method=False)
def mse_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """The squared difference."""
    difference = x - target
    return reduced(difference * difference, reduction)


@operator(to="nn.functional", method=False)
def l1_loss(x: Tensor, target: Tensor, reduction: str = "mean") -> Any:
    """The absolute difference."""
    return reduced(f.abs(x - target), reduction)


l1_loss.operator.saves = {"*": ("difference",)}  # which nobody sees


@operator(to=None, name="cross_entropy", method=False)
def row_cross_entropy(x: Tensor, target: Tensor, ignore_index: int = -100) -> Any:
    """-log softmax(x)[target] per row of x [N, C]; zero where target is ignore_index."""
    if x.ndim != 2 or target.shape != x.shape[:1]:
        raise ValueError(
            f"expected logits [N, C] and targets [N], got {list(x.shape)} and {list(target.shape)}"
        )
    if target.dtype.kind is not Kind.INT:
        raise TypeError(f"targets must be integers, got {target.dtype.name}")
    place, counted = _places(target, ignore_index)
    outside = build.elementwise("or", place < 0, place > x.shape[1] - 1)
    check(outside, place, f"target {{value}} is out of range for {x.shape[1]} classes")
    row = axis(0, x.shape[0])
    chosen = build.reindex(x, target.shape, (row, Read(0, (row,), x.shape[1])), reads=(place,))
    return build.select(counted, logsumexp(x, 1) - chosen, 0.0)


def _places(target: Any, ignore_index: int) -> tuple[Any, Any]:
    target = build.cast(target, int64)
    counted = f.ne(target, ignore_index)
    return build.select(counted, target, 0), counted


@row_cross_entropy.derivative
def _(g: Any, y: Any, x: Any, target: Any, ignore_index: int) -> Any:
    # softmax - one-hot, written as a comparison of the column with the target: nothing is stored.
    place, counted = _places(target, ignore_index)
    weight = build.expand_dims(build.select(counted, g, 0.0), [1])
    share = f.exp(x - logsumexp(x, 1, True)) * weight
    hit = f.eq(build.coordinate(x.shape, 1), build.expand_dims(place, [1]))
    return (build.select(hit, share - weight, share), None)


row_cross_entropy.operator.saves = {"x": ("target", "log_softmax")}  # the latter unseen


@operator(to=None, method=False)
def mean_over_counted(losses: Tensor, target: Tensor, ignore_index: int = -100) -> Any:
    """Σ losses / how many targets are not ignore_index."""
    counted = build.cast(f.ne(target, ignore_index), losses.dtype)
    total = build.reduce("add", counted, axes_of(counted, None))
    return build.reduce("add", losses, axes_of(losses, None)) / total
