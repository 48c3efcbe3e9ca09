"""Arithmetic before a loop moves into its turns, where it costs no pass over memory of its own.

A sequence such as x·W + b is one array that a library wrote, and something small. Instead of a pass
that adds b to all of it, each turn adds b to the part that it reads anyway. That is done where a
sequence is little arithmetic on one array that lies in memory as the loop would step through it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import build, index
from ..ir.index import Expr
from ..ir.loop import LoopBody, loop, next_number, parameter, result
from ..ir.node import Loop, Map, Node, Reindex, axis, coordinates
from ..ir.scalar import TABLE
from .body import inlined
from .contract import Strides, view_of
from .simplify import rebuild, substitute

MOST = 12  # steps of arithmetic that move


def base_of(node: Node, strides: Strides) -> tuple[Node, int]:
    """What holds the elements of a node in memory, and from which element on.

    That is the node, unless it is a view that lies in one piece of something in memory.
    """
    base, flat = view_of(node, strides)
    if base is node or inlined(base):
        return node, 0
    wide = {v: s for v, s in zip(coordinates(node.shape), index.contiguous_strides(node.shape),
                                 strict=True) if v.extent != 1}  # fmt: skip
    start, terms = index.split(flat)
    return (base, start) if terms == wide else (node, 0)


def _plain(node: Node) -> tuple[int, ...]:
    return index.contiguous_strides(node.shape)


def absorb(node: Loop, used: list[int]) -> Mapping[int, Node]:
    """The loop with the arithmetic that makes its sequences in its body."""
    body = node.body
    first = len(body.carries)
    moving = _Moving(next_number(body.parameters))
    elements = []
    for p, xs in zip(body.elements, node.inputs[first : first + body.sequences], strict=True):
        source = _only_source(xs)
        if source is None or source is xs:
            elements.append((p, xs))
        else:
            elements.append((moving.take(p, xs, source), source))
    if not moving.replaced:
        return {n: result(node, n) for n in used}
    outputs = substitute(body.outputs, moving.replaced)
    shared = [*zip(body.shared, node.inputs[first + body.sequences :], strict=True), *moving.shared]
    rest = [*elements, *shared]
    parameters = [*body.carried, *[p for p, _ in rest]]
    fresh = LoopBody(parameters, len(elements), outputs[:first], outputs[first:])
    inputs = [*node.inputs[:first], *[x for _, x in rest]]
    made = loop(inputs, fresh, node.trips, node.reverse)
    return {n: result(made, n) for n in used}


class _Moving:
    """What moves into a body: the values that stand for parameters, and what these share."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.replaced: dict[int, Node] = {}
        self.shared: list[tuple[Node, Node]] = []

    def _fresh(self, shape: tuple[int, ...], like: Node) -> Node:
        self.number += 1
        return parameter(self.number - 1, shape, like.dtype)

    def take(self, element: Node, xs: Node, source: Node) -> Node:
        """Compute an element in the body, from an element of the source; that one's parameter."""
        own = self._fresh(source.shape[1:], source)
        made: dict[int, Node] = {}
        for here in _parts(xs):
            if _is_arithmetic(here):
                made[here.id] = rebuild(here, [made[n.id] for n in here.inputs])
            else:
                made[here.id] = self._leaf(here, source, own)
        self.replaced[element.id] = made[xs.id]
        return own

    def _leaf(self, leaf: Node, source: Node, own: Node) -> Node:
        if leaf is source:
            return own
        known = build.constant_value(leaf)
        if known is not None:
            return build.full(leaf.shape[1:], known, leaf.dtype)
        assert isinstance(leaf, Reindex)
        held = self._fresh(leaf.inputs[0].shape, leaf)
        self.shared.append((held, leaf.inputs[0]))
        down: dict[Expr, Expr] = {axis(k + 1, n): axis(k, n) for k, n in enumerate(leaf.shape[1:])}
        where = [index.substitute(e, down) for e in leaf.index]
        guard = index.substitute_guard(leaf.guard, down)
        return build.reindex(held, leaf.shape[1:], where, guard, leaf.fill)


def _parts(xs: Node) -> list[Node]:
    """The arithmetic that makes a sequence, and below it what that is done on; inputs first."""
    found: dict[int, Node] = {}
    stack = [xs]
    while stack:
        here = stack.pop()
        if here.id not in found:
            found[here.id] = here
            if _is_arithmetic(here):
                stack.extend(here.inputs)
    return [found[k] for k in sorted(found)]


def _is_arithmetic(node: Node) -> bool:
    return isinstance(node, Map) and not TABLE[node.function].dear and node.inputs != () and (
        node.dtype is not node.inputs[0].dtype or node.function != "cast"
    )  # fmt: skip


def _only_source(xs: Node) -> Node | None:
    """The one array along turns that a sequence is computed from, if it is as said above."""
    if not _is_arithmetic(xs):
        return None
    parts = _parts(xs)
    leaves = [here for here in parts if not _is_arithmetic(here)]
    along = [leaf for leaf in leaves if not _is_shared(leaf)]
    if len(parts) - len(leaves) > MOST or len(along) != 1:
        return None
    (source,) = along
    in_memory = not inlined(source) or base_of(source, _plain)[0] is not source
    return source if in_memory and source.dtype.itemsize <= xs.dtype.itemsize else None


def _is_shared(leaf: Node) -> bool:
    """Whether a value is the same in all turns, and small."""
    if build.constant_value(leaf) is not None:
        return True
    if not isinstance(leaf, Reindex) or len(leaf.inputs) > 1:
        return False
    turn = axis(0, leaf.shape[0])
    exprs = [*leaf.index, *[condition.expr for condition in leaf.guard]]
    return not any(turn in index.variables(e) for e in exprs)
