"""Unrolling: loops turn by turn, for backends whose programs have none.

Each turn becomes a copy of the body over what the turn before carried. Stacks are put together by
position. What comes out is as large as the loop is long: a backend that runs loops is spared this.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import build, index
from ..ir.node import Loop, LoopResult, Node, ancestors, coordinates
from .simplify import rebuild, substitute


def has_loops(outputs: Sequence[Node]) -> bool:
    """Whether the outputs need a loop."""
    return any(isinstance(node, Loop) for node in ancestors(outputs))


def has_empty(outputs: Sequence[Node]) -> bool:
    """Whether a loop goes over arrays without elements: then there is no memory to step through."""
    for node in ancestors(outputs):
        if isinstance(node, Loop):
            around = (*node.inputs, *node.body.outputs)
            if any(x.size == 0 for x in around) or has_empty(node.body.outputs):
                return True
    return False


def unroll(outputs: Sequence[Node]) -> list[Node]:
    """The same results without loops."""
    made: dict[int, Node] = {}
    results: dict[int, list[Node]] = {}  # id of a loop → what it gives
    for node in ancestors(outputs):
        inputs = [made[source.id] for source in node.inputs if not isinstance(source, Loop)]
        if isinstance(node, Loop):
            results[node.id] = _turns(node, inputs)
        elif isinstance(node, LoopResult):
            made[node.id] = results[node.inputs[0].id][node.number]
        elif all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            made[node.id] = node
        else:
            made[node.id] = rebuild(node, inputs)
    return [made[node.id] for node in outputs]


def _turns(node: Loop, inputs: Sequence[Node]) -> list[Node]:
    """All results of a loop over these inputs."""
    body = node.body
    flat = unroll(body.outputs)
    count, rest = len(body.carries), len(body.carries) + body.sequences
    carried, shared = list(inputs[:count]), inputs[rest:]
    stacks: list[list[Node]] = [[] for _ in body.stacked]
    turns = range(node.trips)
    for turn in reversed(turns) if node.reverse else turns:
        elements = [element(xs, turn) for xs in inputs[count:rest]]
        given = [*carried, *elements, *shared]
        replaced = {p.id: x for p, x in zip(body.parameters, given, strict=True)}
        made = substitute(flat, replaced)
        carried = made[:count]
        for stack, y in zip(stacks, made[count:], strict=True):
            stack.append(y)
    return [*carried, *[_stack(s[::-1] if node.reverse else s) for s in stacks]]


def element(xs: Node, place: int) -> Node:
    """One element of a sequence."""
    shape = xs.shape[1:]
    return build.reindex(xs, shape, [index.num(place), *coordinates(shape)])


def _stack(parts: Sequence[Node]) -> Node:
    shape = (len(parts), *parts[0].shape)
    position = build.coordinate(shape, 0)
    made = build.broadcast_to(build.expand_dims(parts[0], [0]), shape)
    for n, part in enumerate(parts[1:], 1):
        spread = build.broadcast_to(build.expand_dims(part, [0]), shape)
        made = build.select(position < n, made, spread)
    return made
