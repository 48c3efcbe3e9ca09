"""What a reversed loop finds in memory of the loop that it differentiates.

The derivative of a loop computes again what it needs of each turn (`transform/loop_derivative.py`).
Here that is looked for in the loop itself: a value of the reversed body that depends only on what
the loop has in the same turn is the loop's own value of that turn. If it is dear (a product, a sum,
an exponential) the loop stacks it and the reversed loop reads it. What follows from such values
with little work is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.loop import Inputs, LoopBody, loop, next_number, parameter, result
from ..ir.node import (
    Call,
    Const,
    Contract,
    Coordinate,
    Loop,
    LoopResult,
    Map,
    Node,
    Random,
    Reduce,
    Scatter,
    Slot,
    ancestors,
)
from ..ir.scalar import TABLE
from .simplify import rebuild, substitute


def keep_residuals(outputs: Sequence[Node]) -> list[Node]:
    """The graph in which reversed loops read the dear values of the loops before them."""
    made: dict[int, Node] = {}
    for node in ancestors(outputs):
        inputs = [made[source.id] for source in node.inputs]
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        fresh = rebuild(node, inputs) if changed else node
        if isinstance(fresh, Loop):
            for source in _sources(fresh):
                fresh = _reading(fresh, source)
        made[node.id] = fresh
    return [made[node.id] for node in outputs]


def _sources(node: Loop) -> list[Loop]:
    """The loops of as many turns whose stacks this one goes through, the oldest first."""
    found: dict[int, Loop] = {}
    for xs in Inputs(node).sequences:
        if isinstance(xs, LoopResult):
            source = xs.inputs[0]
            assert isinstance(source, Loop)
            if source.trips == node.trips and xs.number >= len(source.body.carries):
                found[source.id] = source
    return [found[k] for k in sorted(found)]


def _reading(node: Loop, source: Loop) -> Loop:
    """The loop, with the dear values that `source` has in the same turn read from its stacks."""
    body = node.body
    known = _same_values(node, source)
    own: dict[int, bool] = {}  # id of a node of this body → whether the source has it
    order = ancestors(body.outputs)
    for here in order:
        if here.id in known:
            own[here.id] = True
        elif here.inputs:
            own[here.id] = all(own[n.id] for n in here.inputs)
        else:
            own[here.id] = isinstance(here, (Const, Coordinate, Slot))
    asked = _asked(order, body.outputs, own, known)
    if not asked:
        return node
    theirs = substitute(asked, known)
    more = LoopBody(
        source.body.parameters, source.body.sequences, source.body.carries,
        [*source.body.stacked, *theirs],
    )  # fmt: skip
    extended = loop(source.inputs, more, source.trips, source.reverse)
    first = len(source.body.outputs)
    number = next_number(body.parameters)
    read = [parameter(number + n, y.shape, y.dtype) for n, y in enumerate(asked)]
    stacks = [result(extended, first + n) for n in range(len(asked))]
    fresh = substitute(body.outputs, {y.id: p for y, p in zip(asked, read, strict=True)})
    place = len(body.carries) + body.sequences
    parameters = [*body.parameters[:place], *read, *body.parameters[place:]]
    count = len(body.carries)
    made = LoopBody(parameters, body.sequences + len(read), fresh[:count], fresh[count:])
    inputs = [*node.inputs[:place], *stacks, *node.inputs[place:]]
    return loop(inputs, made, node.trips, node.reverse)


def _same_values(node: Loop, source: Loop) -> dict[int, Node]:
    """Parameters of the loop that are a value of the source in the same turn: id → that value."""
    known: dict[int, Node] = {}
    theirs = Inputs(source)
    elements = {xs.id: p for xs, p in zip(theirs.sequences, source.body.elements, strict=True)}
    shared = {x.id: p for x, p in zip(theirs.shared, source.body.shared, strict=True)}
    mine = Inputs(node)
    for p, xs in zip(node.body.elements, mine.sequences, strict=True):
        if isinstance(xs, LoopResult) and xs.inputs[0] is source:
            known[p.id] = source.body.outputs[xs.number]
        elif xs.id in elements:
            known[p.id] = elements[xs.id]
    for p, x in zip(node.body.shared, mine.shared, strict=True):
        if x.id in shared:
            known[p.id] = shared[x.id]
    return known


def _asked(
    order: Sequence[Node], outputs: Sequence[Node], own: dict[int, bool], known: dict[int, Node]
) -> list[Node]:
    """The values to read: used by what only this loop has, and dear to compute again."""
    border = {node.id for node in outputs if own[node.id]}
    for here in order:
        if not own[here.id]:
            border.update(n.id for n in here.inputs if own[n.id])
    asked: dict[int, Node] = {}
    for here in order:
        if here.id in border and here.inputs and _effort(here, asked, known):
            asked[here.id] = here
    return list(asked.values())


def _effort(node: Node, asked: dict[int, Node], known: dict[int, Node]) -> bool:
    """Whether computing a node from what is at hand takes more than a little arithmetic."""
    stack, seen = [node], set()
    while stack:
        here = stack.pop()
        if here.id in seen or here.id in asked or here.id in known:
            continue
        seen.add(here.id)
        if isinstance(here, (Contract, Reduce, Scatter, Call, Random, LoopResult)):
            return True
        if isinstance(here, Map) and TABLE[here.function].dear:
            return True
        stack.extend(here.inputs)
    return False
