"""Pairs: complex arithmetic as arithmetic on real parts.

After this pass a complex array exists only in memory: as a leaf, as a result, or at a node that a
library runs. Whatever is computed is a pair of real nodes, read by `real` and `imag` and joined by
`complex`, so that fusion, library calls and every emitter serve complex numbers as they are. What
each scalar function does to parts stands in `ir/parts.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ir import build, index
from ..ir.dtypes import DType, bool_, float64
from ..ir.node import (
    Const,
    Contract,
    Loop,
    Map,
    Move,
    Node,
    Reduce,
    Reindex,
    Scatter,
    Slot,
    ancestors,
    coordinates,
)
from ..ir.parts import PARTS
from .simplify import rebuild

Pair = tuple[Node, Node]  # real and imaginary part
f = build.functions


def has_complex(outputs: Sequence[Node]) -> bool:
    """Whether anything that the outputs need is complex, or that the bodies of loops do."""
    for node in ancestors(outputs):
        if node.dtype.is_complex or (isinstance(node, Loop) and has_complex(node.body.outputs)):
            return True
    return False


def split_complex(outputs: Sequence[Node]) -> list[Node]:
    """The same results, with every computation on complex numbers done on their parts."""
    made: dict[int, Node] = {}  # of nodes that stay as they are
    pairs: dict[int, Pair] = {}  # of complex nodes
    for node in ancestors(outputs):
        if node.dtype.is_complex:
            pairs[node.id] = _pair(node, made, pairs)
        elif any(source.dtype.is_complex for source in node.inputs):
            made[node.id] = _real_valued(node, made, pairs)
        else:
            made[node.id] = _rebuilt(node, made, pairs)
    return [_whole(node, made, pairs) for node in outputs]


def _whole(node: Node, made: dict[int, Node], pairs: dict[int, Pair]) -> Node:
    """A node in memory: the parts of a complex one are joined."""
    if not node.dtype.is_complex:
        return made[node.id]
    real, imag = pairs[node.id]
    if isinstance(real, Map) and isinstance(imag, Map) and real.inputs[0] is imag.inputs[0]:
        if (real.function, imag.function) == ("real", "imag"):
            return real.inputs[0]  # they were never computed with
    return build.apply("complex", real, imag)


def _rebuilt(node: Node, made: dict[int, Node], pairs: dict[int, Pair]) -> Node:
    inputs = [_whole(source, made, pairs) for source in node.inputs]
    if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return node
    return rebuild(node, inputs)


def _pair(node: Node, made: dict[int, Node], pairs: dict[int, Pair]) -> Pair:
    """The parts of a complex node."""
    part = node.dtype.to_real()
    if isinstance(node, Const):
        return build.const(node.value.real, part), build.const(node.value.imag, part)
    if isinstance(node, Slot):
        real, imag = build.slot(node.number, float), build.slot(node.number + 1, float)
        return build.as_node(real, float64), build.as_node(imag, float64)
    operands: list[Any] = [pairs.get(n.id) or made[n.id] for n in node.inputs]
    if isinstance(node, Map):
        return _map(node, operands)
    if isinstance(node, Contract):
        return _contract(node, *operands)
    if isinstance(node, Reduce) and node.combine == "mul":
        return _product(node, *operands)
    if isinstance(node, (Reindex, Reduce, Scatter, Move)):
        (real, imag), *reads = operands
        fills = [node.fill.real, node.fill.imag] if isinstance(node, Reindex) else [0, 0]
        return (
            _alike(node, real, reads, fills[0]),
            _alike(node, imag, reads, fills[1]),
        )
    whole = _rebuilt(node, made, pairs)  # memory from outside, or what a library computes
    return build.apply("real", whole), build.apply("imag", whole)


def _alike(node: Node, part: Node, reads: Sequence[Any], fill: float) -> Node:
    """What a linear node does to one of the parts."""
    if isinstance(node, Reindex):
        return build.reindex(part, node.shape, node.index, node.guard, fill, tuple(reads))
    return rebuild(node, [part, *reads])


def _contract(node: Node, a: Any, b: Any) -> Pair:
    assert isinstance(node, Contract)

    def product(x: Node, y: Node) -> Node:
        return build.contract(x, y, node.shape, node.domain, node.fo, node.fa, node.fb)

    real = product(a[0], b[0]) - product(a[1], b[1])
    return real, product(a[0], b[1]) + product(a[1], b[0])


def _product(node: Node, pair: Any) -> Pair:
    """The product over axes: halves are multiplied with each other until one element is left."""
    assert isinstance(node, Reduce)
    source = node.inputs[0]
    kept = [k for k in range(source.ndim) if k not in node.axes]
    count = math.prod([source.shape[k] for k in node.axes])
    width = 1 << max(count - 1, 0).bit_length()
    rows = []
    for part, one in zip(pair, (1.0, 0.0), strict=True):
        turned = build.permute(part, [*kept, *node.axes])
        flat = build.reshape(turned, (*node.shape, count))
        rows.append(_slice(flat, 0, width, one))
    left: Pair = (rows[0], rows[1])
    while width > 1:
        width //= 2
        a = _slice(left[0], 0, width, 0.0), _slice(left[1], 0, width, 0.0)
        b = _slice(left[0], width, width, 0.0), _slice(left[1], width, width, 0.0)
        left = PARTS["mul"](f, a, b)
    return build.reshape(left[0], node.shape), build.reshape(left[1], node.shape)


def _slice(rows: Node, start: int, length: int, fill: float) -> Node:
    """`length` places of the last axis from `start`, with `fill` beyond its end."""
    shape = (*rows.shape[:-1], length)
    where: list[index.Index] = list(coordinates(shape))
    where[-1] = place = index.wrap(where[-1]) + start
    guard = index.within(place, rows.shape[-1]) if start + length > rows.shape[-1] else ()
    return build.reindex(rows, shape, where, guard, fill)


# --- Map ------------------------------------------------------------------------------------------


def _map(node: Map, operands: Sequence[Any]) -> Pair:
    if node.function == "cast":
        return _cast(operands[0], node.dtype)
    pair: Pair = PARTS[node.function](f, *operands)
    return pair


def _cast(x: Any, dtype: DType) -> Pair:
    part = dtype.to_real()
    if isinstance(x, tuple):
        return build.cast(x[0], part), build.cast(x[1], part)
    real = build.cast(x, part)
    return real, build.full(real.shape, 0.0, part)


def _real_valued(node: Node, made: dict[int, Node], pairs: dict[int, Pair]) -> Node:
    """A node that is not complex and has complex inputs."""
    if not isinstance(node, Map):
        return _rebuilt(node, made, pairs)
    operands: list[Any] = [pairs.get(n.id) or made[n.id] for n in node.inputs]
    if node.function != "cast":
        result: Node = PARTS[node.function](f, *operands)
        return result
    real, imag = operands[0]
    if node.dtype is bool_:
        return build.apply("or", f.ne(real, 0.0), f.ne(imag, 0.0))
    return build.cast(real, node.dtype)
