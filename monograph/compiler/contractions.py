"""The contract pass: every contraction becomes a library call or loops.

The backend is asked for each call; what it declines is expanded. Operands of convolutions that lie
plain (leaves) get a copy in the layout of the program. The graph changes when something is
expanded, so the pass repeats until nothing does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..ir import build
from ..ir.extent import hint
from ..ir.index import Var
from ..ir.node import (
    Buffer,
    Contract,
    Loop,
    Map,
    Node,
    Reduce,
    ancestors,
    enter_origin,
    make,
)
from . import layout
from .contract import ConvolutionCall, MatmulCall, convolution_call, matmul_call
from .host import Supports, everything, runs_on_host
from .layout import Layouts
from .plan import at_hints, step_of
from .simplify import copied, expand_contraction, rebuild, rewrite, widened_contraction

Accept = Callable[[str, dict, dict], bool]  # type: ignore[type-arg]
Calls = dict[int, MatmulCall | ConvolutionCall]


@dataclass
class Contracted:
    """The graph with only contractions that the backend takes, and how."""

    outputs: list[Node]
    calls: Calls
    layouts: Layouts


def lower_contractions(
    outputs: Sequence[Node], accept: Accept, supports: Supports = everything
) -> Contracted:
    """Turn every Contract into a call that `accept` takes, or into loops.

    One that runs on the host stays: NumPy has good products.
    """
    graph = _loops_apart(outputs)
    turned = False
    while True:
        nodes = ancestors(graph)
        contracts = [n for n in nodes if isinstance(n, Contract) and not runs_on_host(n, supports)]
        convolutions = _convolutions(contracts, accept)
        layouts = layout.choose(convolutions.values(), nodes)
        calls: Calls = dict(convolutions)
        replaced: dict[int, Node] = {}
        for node in contracts:
            enter_origin(node.origin)
            if node.id in convolutions:
                fixed = _with_copies(node, convolutions[node.id])
                if fixed is not node:
                    replaced[node.id] = fixed
                continue
            call = _matmul(node, layouts, accept)
            if call is not None:
                calls[node.id] = call
            else:
                replaced[node.id] = _otherwise(node, layouts, accept)
        enter_origin(-1)
        if not replaced and not turned and layouts.channels_last:
            graph, turned = _turned(graph, layouts), True
            continue
        if not replaced:
            layouts.turned = {node.id for node in nodes if _is_turned(node, layouts)}
            for known in convolutions.values():
                if known.kind == "backward_weights":
                    layouts.plain.add(known.node.id)
            for around in nodes:
                if isinstance(around, Loop):  # turns step through plain memory
                    layouts.plain.update(source.id for source in around.inputs)
            return Contracted(graph, calls, layouts)
        graph = _replace(graph, replaced)


NARROW = 16  # channels; fewer are read where they lie at little cost


def _lies_plain(node: Node, layouts: Layouts) -> bool:
    """Whether a leaf lies in another order than the arrays around it: what a flush kept, say."""
    wide = node.shape in layouts.channels_last and hint(node.shape[1]) >= NARROW
    return isinstance(node, Buffer) and wide


def _is_turned(node: Node, layouts: Layouts) -> bool:
    """Whether a node is the copy of such a leaf."""
    if not isinstance(node, Map) or node.function != "cast":
        return False
    return node.dtype is node.inputs[0].dtype and _lies_plain(node.inputs[0], layouts)


def _turned(outputs: Sequence[Node], layouts: Layouts) -> list[Node]:
    """Leaves that lie otherwise are copied once, rather than gathered from by every pass."""

    def rule(node: Node) -> Node | None:
        if not isinstance(node, (Map, Reduce)) or _is_turned(node, layouts):
            return None
        inputs = [copied(x) if _lies_plain(x, layouts) else x for x in node.inputs]
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return None
        return make(type(node), tuple(inputs), node.shape, node.dtype, *node.attributes)

    return rewrite(outputs, (rule,))


def _loops_apart(outputs: Sequence[Node]) -> list[Node]:
    """Inputs of loops as nodes of their own, where convolutions may give others a layout."""
    nodes = ancestors(outputs)
    loops = any(isinstance(node, Loop) for node in nodes)
    if not loops or not any(isinstance(n, Contract) and convolution_call(n) for n in nodes):
        return list(outputs)

    def rule(node: Node) -> Node | None:
        if not isinstance(node, Loop):
            return None
        inputs = [x if isinstance(x, Buffer) or x.ndim < 3 else copied(x) for x in node.inputs]
        return make(Loop, tuple(inputs), node.shape, node.dtype, *node.attributes)

    return rewrite(outputs, (rule,))


def _otherwise(node: Contract, layouts: Layouts, accept: Accept) -> Node:
    """What becomes of a contraction that no library takes as it stands."""
    for side in (0, 1):
        other = _arranged(node, side)
        if other is not None and _matmul(other, layouts, accept) is not None:
            return other
    return widened_contraction(node) if node.dtype.is_half else expand_contraction(node)


def _arranged(node: Contract, side: int) -> Contract | None:
    """The contraction over turned operands: batch, own axes, and those summed over last, in one
    order, so that these are one axis of the matrices. The order is that of operand `side`."""
    maps = (node.fa, node.fb)
    if not all(isinstance(e, Var) for place in (*maps, node.fo) for e in place):
        return None
    if any(len(set(place)) != len(place) for place in (*maps, node.fo)):
        return None
    summed = [v for v in maps[side] if v not in node.fo]
    if len(summed) < 2 or not all(v in maps[1 - side] for v in summed):
        return None
    turned, places = [], []
    for source, place in zip(node.inputs, maps, strict=True):
        batch = [v for v in place if v in node.fo and v in maps[0] and v in maps[1]]
        own = [v for v in place if v in node.fo and v not in batch]
        ordered = [*batch, *own, *summed]
        turned.append(build.permute(source, [place.index(v) for v in ordered]))
        places.append(ordered)
    a, b = turned
    made = build.contract(a, b, node.shape, node.domain, node.fo, places[0], places[1])
    assert isinstance(made, Contract)
    return None if made is node else made


def _replace(graph: Sequence[Node], replaced: dict[int, Node]) -> list[Node]:
    """Rebuild the graph with these contractions exchanged, in one walk.

    What takes the place of a contraction reads the inputs of the old one, among which there may be
    others that are exchanged, so it is rebuilt as well.
    """
    made: dict[int, Node] = {}
    stack = list(graph)
    while stack:
        node = stack[-1]
        if node.id in made:
            stack.pop()
            continue
        other = replaced.get(node.id)
        needed = node.inputs if other is None else (other,)
        missing = [x for x in needed if x.id not in made]
        if missing:
            stack += missing
            continue
        inputs = [made[x.id] for x in needed]
        if other is not None:
            made[node.id] = inputs[0]
        elif all(a is b for a, b in zip(inputs, needed, strict=True)):
            made[node.id] = node
        else:
            made[node.id] = rebuild(node, inputs)
        stack.pop()
    return [made[node.id] for node in graph]


def _convolutions(contracts: Sequence[Node], accept: Accept) -> dict[int, ConvolutionCall]:
    found: dict[int, ConvolutionCall] = {}
    for node in contracts:
        call = convolution_call(node)
        if call is None:
            continue
        if accept(*at_hints(step_of(call, _ideal_strides(call)))):
            found[node.id] = call
    return found


def _ideal_strides(call: ConvolutionCall) -> Callable[[Node], tuple[int, ...]]:
    wished = Layouts({call.source.shape, call.target.shape})

    def strides(node: Node) -> tuple[int, ...]:
        if node is call.weights:
            return Layouts().strides(node)
        return wished.strides(make(Map, (node,), node.shape, node.dtype, "cast"))

    return strides


def _with_copies(node: Node, call: ConvolutionCall) -> Node:
    """The contraction over copies of operands that lie plain."""
    inputs = []
    for source in node.inputs:
        if isinstance(source, layout.PLAIN) and source is not call.weights:
            inputs.append(copied(source))
        else:
            inputs.append(source)
    if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return node
    return make(Contract, tuple(inputs), node.shape, node.dtype, *node.attributes)


def _matmul(node: Node, layouts: Layouts, accept: Accept) -> MatmulCall | None:
    """The first way to hand the node to the library: views first, then copies of operands."""
    for own in ((False, False), (True, False), (False, True), (True, True)):
        call = matmul_call(node, own, layouts.strides)
        if call is not None and accept(*at_hints(step_of(call, None))):
            return call
    return None
