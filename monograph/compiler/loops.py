"""Loops before they are compiled: equal ones joined, turns made light, and nothing idle in them.

A derivative asks its loop for more stacks, so that the same loop stands in the graph several times:
`merge` makes one of them. `loop_residuals.py` decides what a reversed loop finds in memory instead
of computing it again, `hoist.py` moves products out of the turns, before the loop or behind it,
`absorb.py` moves arithmetic into them.
`prune` takes away what nobody needs. Bodies within bodies are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir import build, index
from ..ir.loop import Inputs, LoopBody, loop, result
from ..ir.node import Loop, LoopResult, Node, ancestors, coordinates
from .absorb import absorb
from .hoist import hoist, sink
from .loop_residuals import keep_residuals
from .simplify import drop_detach, drop_move, rebuild, rewrite, substitute

Results = Mapping[int, Node]  # by the number of the result, those that are used
Change = Callable[[Loop, list[int]], Results]
Pass = Callable[[Sequence[Node]], list[Node]]


def optimise_loops(outputs: Sequence[Node]) -> list[Node]:
    """The graph with its loops as they will be run."""
    graph = in_bodies(outputs, drop_marks)
    graph = drop_marks(graph)
    return _optimise(graph)


def drop_marks(outputs: Sequence[Node]) -> list[Node]:
    """What derivatives needed and is in the way now."""
    return rewrite(outputs, (drop_detach, drop_move))


def _optimise(outputs: Sequence[Node]) -> list[Node]:
    graph = merge(outputs)
    graph = merge(keep_residuals(graph))
    graph = each_loop(graph, prune)
    graph = each_loop(graph, hoist)
    graph = each_loop(graph, sink)
    graph = each_loop(graph, shift)
    graph = each_loop(merge(graph), prune)
    graph = each_loop(each_loop(graph, absorb), prune)
    return _inner(graph)


def _inner(outputs: Sequence[Node]) -> list[Node]:
    """The same for loops within bodies."""

    def change(node: Loop, used: list[int]) -> Results:
        body = node.body
        if any(isinstance(n, Loop) for n in ancestors(body.outputs)):
            body = body.with_outputs(_optimise(body.outputs))
            node = loop(node.inputs, body, node.trips, node.reverse)
        return {n: result(node, n) for n in used}

    return each_loop(outputs, change)


# --- walking over loops ---------------------------------------------------------------------------


def each_loop(outputs: Sequence[Node], change: Change) -> list[Node]:
    """Give every loop of the graph, not those in bodies, to `change`, which says its results."""
    order = ancestors(outputs)
    used: dict[int, set[int]] = {}
    for node in order:
        if isinstance(node, LoopResult):
            used.setdefault(node.inputs[0].id, set()).add(node.number)
    made: dict[int, Node] = {}
    results: dict[int, Results] = {}
    for node in order:
        if isinstance(node, LoopResult):
            made[node.id] = results[node.inputs[0].id][node.number]
            continue
        inputs = [made[source.id] for source in node.inputs]
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        fresh = rebuild(node, inputs) if changed else node
        if isinstance(fresh, Loop):
            results[node.id] = change(fresh, sorted(used.get(node.id, ())))
        else:
            made[node.id] = fresh
    return [made[node.id] for node in outputs]


def in_bodies(outputs: Sequence[Node], transform: Pass) -> list[Node]:
    """Apply a pass to the bodies of all loops, inner ones first."""

    def change(node: Loop, used: list[int]) -> Results:
        inside = in_bodies(node.body.outputs, transform)
        body = node.body.with_outputs(transform(inside))
        made = loop(node.inputs, body, node.trips, node.reverse)
        return {n: result(made, n) for n in used}

    return each_loop(outputs, change)


# --- merge ----------------------------------------------------------------------------------------


def merge(outputs: Sequence[Node]) -> list[Node]:
    """Loops that differ only in what they stack become one."""
    graph = list(outputs)
    while True:
        groups: dict[object, list[Loop]] = {}
        for node in ancestors(graph):
            if isinstance(node, Loop):
                groups.setdefault(_turns_of(node), []).append(node)
        if all(len(group) == 1 for group in groups.values()):
            return graph
        joined = {key: _joined(group) for key, group in groups.items() if len(group) > 1}
        graph = _exchange(graph, joined)


def _turns_of(node: Loop) -> object:
    """What two loops have in common that carry the same through the same turns."""
    body = node.body
    ids = [tuple([n.id for n in group]) for group in (node.inputs, body.parameters, body.carries)]
    return (node.trips, node.reverse, body.sequences, *ids)


def _joined(group: Sequence[Loop]) -> Loop:
    first = group[0]
    stacked = {y.id: y for node in group for y in node.body.stacked}
    body = LoopBody(
        first.body.parameters, first.body.sequences, first.body.carries, list(stacked.values())
    )
    return loop(first.inputs, body, first.trips, first.reverse)


def _exchange(outputs: Sequence[Node], joined: Mapping[object, Loop]) -> list[Node]:
    made: dict[int, Node] = {}
    for node in ancestors(outputs):
        if isinstance(node, LoopResult):
            source = node.inputs[0]
            assert isinstance(source, Loop)
            whole = joined.get(_turns_of(source))
            if whole is not None:
                made[node.id] = result(_with_inputs(whole, made), _number(node, whole))
                continue
        inputs = [made[source.id] for source in node.inputs]
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        made[node.id] = rebuild(node, inputs) if changed else node
    return [made[node.id] for node in outputs]


def _with_inputs(node: Loop, made: Mapping[int, Node]) -> Loop:
    return loop([made[n.id] for n in node.inputs], node.body, node.trips, node.reverse)


def _number(node: LoopResult, whole: Loop) -> int:
    source = node.inputs[0]
    assert isinstance(source, Loop)
    count = len(whole.body.carries)
    if node.number < count:
        return node.number
    asked = source.body.stacked[node.number - count]
    return count + [y.id for y in whole.body.stacked].index(asked.id)


# --- what was carried into each turn --------------------------------------------------------------


def shift(node: Loop, used: list[int]) -> Results:
    """A stack of what is carried into each turn is what the turn before gave."""
    body = node.body
    count = len(body.carries)
    carried = {p.id: k for k, p in enumerate(body.carried)}
    moved = {n: carried.get(body.outputs[n].id) for n in used if n >= count}
    asked = {k for k in moved.values() if k is not None}
    if not asked:
        return {n: result(node, n) for n in used}
    stacked = [*body.stacked, *[body.carries[k] for k in sorted(asked)]]
    more = LoopBody(body.parameters, body.sequences, body.carries, stacked)
    made = loop(node.inputs, more, node.trips, node.reverse)
    place = {k: count + len(body.stacked) + n for n, k in enumerate(sorted(asked))}
    found = {}
    for n in used:
        k = moved.get(n)
        if k is None:
            found[n] = result(made, n)
        else:
            found[n] = _moved(node.inputs[k], result(made, place[k]), node.reverse)
    return found


def _moved(initial: Node, stack: Node, reverse: bool) -> Node:
    """The initial value, then all of the stack but the last turn's."""
    shape = stack.shape
    where: list[index.Index] = list(coordinates(shape))
    where[0] = before = index.wrap(where[0]) + (1 if reverse else -1)
    guard = index.within(before, shape[0])
    earlier = build.reindex(stack, shape, where, guard)
    position = build.coordinate(shape, 0)
    first = build.functions.eq(position, shape[0] - 1 if reverse else 0)
    return build.select(first, build.broadcast_to(build.expand_dims(initial, [0]), shape), earlier)


# --- prune ----------------------------------------------------------------------------------------


def prune(node: Loop, used: list[int]) -> Results:
    """Only what is used is carried and stacked, each thing once."""
    node, found = _without_still(node, used)
    body = node.body
    count = len(body.carries)
    rest = [n for n in used if n not in found]
    if not rest:
        return found
    stacked = {body.outputs[n].id: body.outputs[n] for n in rest if n >= count}
    # The end of a carry that is stacked anyway is the last of its stack.
    ends = {n for n in rest if n < count and body.carries[n].id in stacked}
    needed = _needed_carries(node, [n for n in rest if n < count and n not in ends], stacked)
    kept, inputs = _parameters(node, needed, list(stacked.values()))
    carries = [body.carries[k] for k in needed]
    outputs = substitute([*carries, *stacked.values()], inputs.same)
    made_body = LoopBody(kept, inputs.sequences, outputs[: len(needed)], outputs[len(needed) :])
    made = loop(inputs.given, made_body, node.trips, node.reverse)
    place = {y: len(needed) + n for n, y in enumerate(stacked)}
    for n in rest:
        if n in ends:
            stack = result(made, place[body.carries[n].id])
            found[n] = _element(stack, 0 if node.reverse else node.trips - 1)
        elif n < count:  # equal ends are one
            twin = next(k for k in needed if body.carries[k] is body.carries[n])
            found[n] = result(made, needed.index(twin))
        else:
            found[n] = result(made, place[body.outputs[n].id])
    return found


def _element(stack: Node, place: int) -> Node:
    shape = stack.shape[1:]
    return build.reindex(stack, shape, [index.num(place), *coordinates(shape)])


def _without_still(node: Loop, used: list[int]) -> tuple[Loop, dict[int, Node]]:
    """What is carried and never changes is shared instead; its end is its beginning."""
    body = node.body
    still = [k for k, p in enumerate(body.carried) if body.carries[k] is p]
    if not still:
        return node, {}
    found = {k: node.inputs[k] for k in still if k in used}
    # A carry that stays in its place keeps the numbers of results; it is dropped by `prune`,
    # since nothing reads its parameter any more.
    number = max(p.attributes[0] for p in body.parameters) + 1
    twins = {
        body.parameters[k].id: build.buffer(
            number + n, body.carries[k].shape, body.carries[k].dtype
        )
        for n, k in enumerate(still)
    }
    outputs = substitute(body.outputs, twins)
    for k in still:
        outputs[k] = body.parameters[k]
    count = len(body.carries)
    parameters = [*body.parameters, *[twins[body.parameters[k].id] for k in still]]
    fresh = LoopBody(parameters, body.sequences, outputs[:count], outputs[count:])
    inputs = [*node.inputs, *[node.inputs[k] for k in still]]
    return loop(inputs, fresh, node.trips, node.reverse), found


def _needed_carries(node: Loop, ends: list[int], stacked: Mapping[int, Node]) -> list[int]:
    """The carries that something used depends on, from turn to turn."""
    body = node.body
    needed = set(ends)
    while True:
        heads = [*stacked.values(), *[body.carries[k] for k in needed]]
        inside = {n.id for n in ancestors(heads)}
        more = {k for k, p in enumerate(body.carried) if p.id in inside} - needed
        if not more:
            return sorted(needed)
        needed |= more


class _Parameters:
    """The inputs of a pruned loop, and parameters that turned out to be the same as others."""

    def __init__(self) -> None:
        self.given: list[Node] = []
        self.sequences = 0
        self.same: dict[int, Node] = {}


def _parameters(
    node: Loop, needed: list[int], stacked: Sequence[Node]
) -> tuple[list[Node], _Parameters]:
    body, inputs = node.body, Inputs(node)
    inside = {n.id for n in ancestors([*[body.carries[k] for k in needed], *stacked])}
    made = _Parameters()
    made.given = [node.inputs[k] for k in needed]
    kept = [body.parameters[k] for k in needed]
    groups = ((body.elements, inputs.sequences), (body.shared, inputs.shared))
    for number, (parameters, given) in enumerate(groups):
        known: dict[int, Node] = {}
        for parameter, source in zip(parameters, given, strict=True):
            if parameter.id not in inside:
                continue
            constant = build.constant_value(source)
            if constant is not None:  # no memory needs to hold it
                made.same[parameter.id] = build.full(parameter.shape, constant, parameter.dtype)
                continue
            twin = known.setdefault(source.id, parameter)
            if twin is not parameter:
                made.same[parameter.id] = twin
                continue
            kept.append(parameter)
            made.given.append(source)
            made.sequences += number == 0
    return kept, made
