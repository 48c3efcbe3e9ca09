"""Combines: how accumulators start, grow, merge and become one number.

An accumulator is one value, or for argmax and argmin a value and the position of it. It begins at
`start`, `merge` joins two, `across` joins the lanes of one. Of equal extremes the one with the
smallest position wins, and NaN is more extreme than any number.
"""

from __future__ import annotations

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType, Kind
from ..combine import identity
from .scope import Ref
from .types import REGISTER, literal, mangled, register
from .vector import Builder

Accumulator = tuple[Ref, ...]


def is_positional(combine: str) -> bool:
    """Whether the accumulator carries a position beside the value."""
    return combine in ("argmax", "argmin")


def start(builder: Builder, combine: str, dtype: DType, position: DType, lanes: int) -> Accumulator:
    """The accumulator before the first value."""
    value = builder.const(identity(combine, dtype), dtype, lanes)
    if not is_positional(combine):
        return (value,)
    last = int(np.iinfo(position.numpy).max)
    return value, builder.const(last, position, lanes)


def merge(builder: Builder, combine: str, new: Accumulator, old: Accumulator) -> Accumulator:
    """old ⊕ new. The order of operands keeps the chain through `old` short."""
    if is_positional(combine):
        return _merge_positions(builder, combine, new, old)
    a, b = new[0], old[0]
    if combine in ("add", "mul"):
        return (builder.reassociated(combine, b, a),)
    if combine in ("max", "min"):
        return (builder.maximum(a, b) if combine == "max" else builder.minimum(a, b),)
    return (builder.and_(b, a) if combine == "and" else builder.or_(b, a),)


def _merge_positions(
    builder: Builder, combine: str, new: Accumulator, old: Accumulator
) -> Accumulator:
    (x, p), (y, q) = new, old
    better = builder.gt(x, y) if combine == "argmax" else builder.lt(x, y)
    same = builder.eq(x, y)
    if x.dtype.kind is Kind.FLOAT:
        new_nan, old_nan = builder.is_nan(x), builder.is_nan(y)
        better = builder.or_(better, builder.and_(new_nan, builder.not_(old_nan)))
        same = builder.or_(same, builder.and_(new_nan, old_nan))
    first = builder.and_(same, builder.lt(p, q))
    wins = builder.or_(better, first)
    return builder.select(wins, x, y), builder.select(wins, p, q)


def where(builder: Builder, mask: Ref | None, a: Accumulator, b: Accumulator) -> Accumulator:
    """a in the lanes of the mask, b elsewhere."""
    if mask is None:
        return a
    return tuple(builder.select(mask, x, y) for x, y in zip(a, b))


_REDUCE = {"add": "fadd", "mul": "fmul"}
_INTEGER_REDUCE = {"add": "add", "mul": "mul", "and": "and", "or": "or"}


def across(builder: Builder, combine: str, accumulator: Accumulator) -> Accumulator:
    """All lanes of an accumulator combined into a scalar."""
    value = accumulator[0]
    if not value.lanes:
        return accumulator
    if value.dtype.kind is Kind.FLOAT and combine in _REDUCE:
        return (_reduce_float(builder, combine, value),)
    if value.dtype.kind is not Kind.FLOAT and combine in _INTEGER_REDUCE:
        return (_reduce_integer(builder, combine, value),)
    lanes = value.lanes
    while lanes > 1:
        lanes //= 2
        low = tuple(builder.shuffle(x, list(range(lanes))) for x in accumulator)
        high = tuple(builder.shuffle(x, list(range(lanes, 2 * lanes))) for x in accumulator)
        accumulator = merge(builder, combine, low, high)
    return tuple(builder.extract(x, 0) for x in accumulator)


def _reduce_float(builder: Builder, combine: str, value: Ref) -> Ref:
    element = REGISTER[value.dtype]
    first = literal(0.0 if combine == "add" else 1.0, value.dtype)
    name = f"llvm.vector.reduce.{_REDUCE[combine]}.{mangled(element, value.lanes)}"
    kind = register(value.dtype, value.lanes)
    text = f"call reassoc {element} @{name}({element} {first}, {kind} {value.text})"
    return Ref(builder.emit(value.scope, text), value.dtype, 0, value.scope)


def _reduce_integer(builder: Builder, combine: str, value: Ref) -> Ref:
    element = REGISTER[value.dtype]
    operation = _INTEGER_REDUCE[combine]
    if value.dtype is dtypes.bool_:
        operation = {"add": "or", "mul": "and"}.get(combine, combine)
    name = f"llvm.vector.reduce.{operation}.{mangled(element, value.lanes)}"
    kind = register(value.dtype, value.lanes)
    text = f"call {element} @{name}({kind} {value.text})"
    return Ref(builder.emit(value.scope, text), value.dtype, 0, value.scope)
