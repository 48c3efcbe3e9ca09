"""Reverse differentiation of the graph, into the same graph.

`vjp` walks from the outputs to the nodes asked for and adds cotangents. Each kind of node has one
rule, and each rule builds nodes of the same kinds, so the result can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ..ir import build, dtypes, index, scalar
from ..ir.dtypes import DType
from ..ir.node import (
    Call,
    Contract,
    Loop,
    LoopResult,
    Map,
    Move,
    Node,
    Reduce,
    Reindex,
    Scatter,
    coordinates,
    enter_origin,
)
from ..ir.operator import Rule
from .dependence import dependents, feeds, sources_of
from .invert import transpose
from .loop_derivative import Cotangents, pull_loop


def vjp(
    outputs: Sequence[Node],
    cotangents: Sequence[Node],
    wanted: Sequence[Node],
    rules: Mapping[int, Rule] | None = None,
    through: bool = True,
) -> list[Node | None]:
    """The cotangents of `wanted`; None for those that the outputs do not depend on.

    Unless `through`, the walk ends at wanted nodes: what reaches one of them is not handed on.
    """
    rules = rules or {}
    order = sources_of(outputs, rules)
    depends = dependents(order, wanted, rules)
    sums: dict[int, Node] = {}
    for node, cotangent in zip(outputs, cotangents, strict=True):
        _accumulate(sums, node, cotangent)
    stops = {node.id for node in wanted}
    of_loops: dict[int, dict[int, Node]] = {}  # id of a Loop → the cotangents of its results
    before = enter_origin(-1)
    for node in reversed(order):
        if node.id not in depends or not node.inputs:
            continue
        if node.id not in sums and node.id not in of_loops:
            continue
        if node.id in stops and (not through or not feeds(node, depends, rules)):
            continue
        enter_origin(node.origin)  # a derivative belongs to the call that it is the derivative of
        if isinstance(node, LoopResult) and node.id not in rules:
            of_loops.setdefault(node.inputs[0].id, {})[node.number] = sums[node.id]
            continue
        if isinstance(node, Loop):
            needed = [source.id in depends for source in node.inputs]
            inputs, parts = node.inputs, pull_loop(node, of_loops[node.id], needed, rules, vjp)
        else:
            inputs, parts = _pull(node, sums[node.id], rules)
        for source, part in zip(inputs, parts, strict=True):
            if part is not None and source.id in depends:
                _accumulate(sums, source, part)
    enter_origin(before)
    return [sums.get(node.id) for node in wanted]


def _accumulate(sums: dict[int, Node], node: Node, part: Node) -> None:
    if part.shape != node.shape:  # sizes that vary, and are equal without being the same
        raise TypeError(f"a cotangent of shape {part.shape} for a value of {node.shape}")
    held = sums.get(node.id)
    sums[node.id] = part if held is None else held + part


def _pull(
    node: Node, cotangent: Node, rules: Mapping[int, Rule]
) -> tuple[tuple[Node, ...], Cotangents]:
    if node.id in rules:  # the operator's own derivative
        inputs, rule = rules[node.id]
        return inputs, rule(cotangent)
    return node.inputs, RULES[type(node)](node, cotangent)


def _pull_map(node: Node, g: Node) -> Cotangents:
    entry = scalar.TABLE[node.function]  # type: ignore[attr-defined]
    parts: list[Node | None] = []
    for partial, operand in zip(entry.partials, node.inputs, strict=True):
        if partial is None or not operand.dtype.is_smooth:
            parts.append(None)
        else:
            parts.append(partial(build.functions, g, node, *node.inputs))
    return tuple(parts)


def _pull_reindex(node: Node, g: Node) -> Cotangents:
    return (transpose(node, g), *([None] * (len(node.inputs) - 1)))


def _spread(node: Node, value: Node) -> Node:
    """A value per result of a Reduce, repeated over the reduced axes."""
    assert isinstance(node, Reduce)
    source = node.inputs[0]
    return build.broadcast_to(build.expand_dims(value, node.axes), source.shape)


def _pull_reduce(node: Node, g: Node) -> Cotangents:
    assert isinstance(node, Reduce)
    source = node.inputs[0]
    if node.combine == "add":
        return (_spread(node, g),)
    if node.combine in ("max", "min"):
        dtype = _smallest(prod(source.shape[k] for k in node.axes))
        first = build.cast(build.reduce(f"arg{node.combine}", source, node.axes), dtype)
        position = build.cast(_position(source, node.axes), dtype)
        chosen = build.functions.eq(_spread(node, first), position)
        return (build.select(chosen, _spread(node, g), 0.0),)
    if node.combine == "mul":
        return (_spread(node, g) * build.functions.conj(_others_product(node)),)
    return (None,)


def _smallest(count: int) -> DType:
    """The smallest integers that count that far: positions are kept for the backward pass."""
    if isinstance(count, int):
        for dtype, limit in ((dtypes.uint8, 1 << 8), (dtypes.int16, 1 << 15)):
            if count <= limit:
                return dtype
    return dtypes.int64


def _position(source: Node, axes: tuple[int, ...]) -> Node:
    """The flat position of each element within the reduced axes."""
    strides = index.contiguous_strides([source.shape[k] for k in axes])
    parts = [build.coordinate(source.shape, k) * s for k, s in zip(axes, strides, strict=True)]
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def _others_product(node: Node) -> Node:
    """For each element the product of all others, without division, so that zeros do no harm.

    The product of those before times the product of those after, each by doubling: after a step
    an element holds the product of twice as many neighbours.
    """
    assert isinstance(node, Reduce)
    source = node.inputs[0]
    kept = [k for k in range(source.ndim) if k not in node.axes]
    order = [*kept, *node.axes]
    turned = build.permute(source, order)
    rows = build.reshape(turned, (*turned.shape[: len(kept)], source.size // max(node.size, 1)))
    before, after = _shifted(rows, 1), _shifted(rows, -1)
    reach = 1
    while reach < rows.shape[-1]:
        before = before * _shifted(before, reach)
        after = after * _shifted(after, -reach)
        reach *= 2
    others = build.reshape(before * after, turned.shape)
    return build.permute(others, [order.index(k) for k in range(source.ndim)])


def _shifted(rows: Node, by: int) -> Node:
    """Each row moved `by` places along the last axis, with ones moving in."""
    where: list[index.Index] = list(coordinates(rows.shape))
    where[-1] = place = index.wrap(where[-1]) - by
    guard = index.within(place, rows.shape[-1])
    return build.reindex(rows, rows.shape, where, guard, 1.0)


def _pull_scatter(node: Node, g: Node) -> Cotangents:
    assert isinstance(node, Scatter)
    source, *reads = node.inputs

    def read(a: Node) -> Node:
        return build.reindex(a, source.shape, node.index, node.guard, 0, reads)

    def spread(combine: str, a: Node) -> Node:
        return build.scatter(combine, a, node.shape, node.index, node.guard, reads)

    if node.combine == "add":
        part = read(g)
    elif node.combine == "mul":  # of the factors that are not 0, and how many are: no x / 0
        zero = build.functions.eq(source, 0.0)
        safe = build.select(zero, 1.0, source)
        zeros = read(spread("add", build.cast(zero, g.dtype)))
        alone = build.functions.eq(zeros, build.cast(zero, g.dtype))
        part = build.select(alone, read(g * spread("mul", safe)) / safe, 0.0)
    else:  # equal extremes share
        best = build.functions.eq(source, read(node))
        number = spread("add", build.cast(best, g.dtype))
        part = build.select(best, read(g / build.functions.maximum(number, 1.0)), 0.0)
    return (part, *([None] * len(reads)))


def _pull_contract(node: Node, g: Node) -> Cotangents:
    assert isinstance(node, Contract)
    a, b = [build.functions.conj(x) for x in node.inputs]
    part_a = build.contract(g, b, a.shape, node.domain, node.fa, node.fo, node.fb)
    part_b = build.contract(a, g, b.shape, node.domain, node.fb, node.fa, node.fo)
    return (part_a, part_b)


def _pull_call(node: Node, g: Node) -> Cotangents:
    """Operators bring the derivatives of their calls; see `ir/operator.py`."""
    assert isinstance(node, Call)
    raise NotImplementedError(f"the derivative of {node.function} is not implemented")


def _pull_move(node: Node, g: Node) -> Cotangents:
    return (build.move(g, "cpu"),)


RULES: dict[type[Node], Callable[[Node, Node], Cotangents]] = {
    Map: _pull_map,
    Reindex: _pull_reindex,
    Reduce: _pull_reduce,
    Scatter: _pull_scatter,
    Contract: _pull_contract,
    Call: _pull_call,
    Move: _pull_move,
}

__all__ = ["vjp"]
