"""Epilogues: what a library call does to its result before it stores it.

A convolution or product that is scaled, shifted and put through a ReLU on its way to the next one
need not be stored in between. Where a result must exist in memory anyway, as the operand of another
call or as a result of the program, and only vectors along the channels lie between it and a
contraction, the call computes it whole, if the library has code for that. Nodes stay as they are:
the call of the contraction becomes a call of the last node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir import index
from ..ir.node import Const, Map, Node, Reindex, ancestors, axis
from .contract import ConvolutionCall, EpilogueStep, MatmulCall
from .contractions import Contracted
from .fuse import operands
from .layout import Layouts
from .plan import LibraryFacts, step_of

# Whether the library carries out a call with its epilogue as well as one without.
Fuses = Callable[..., bool]
Call = MatmulCall | ConvolutionCall
CHAINED = frozenset({"add", "sub", "mul", "div"})
TURNED = frozenset({"add", "mul"})  # the vector may stand first


@dataclass
class Found:
    """Calls by the node that each computes, and the contractions that others compute now."""

    calls: dict[int, Any]
    absorbed: set[int]


def find(contracted: Contracted, outputs: Sequence[Node], fuses: Fuses | None) -> Found:
    """Every call with as much of what follows as the library can do."""
    calls = dict(contracted.calls)
    absorbed: set[int] = set()
    if fuses is None:
        return Found(calls, absorbed)
    users: dict[int, list[Node]] = {}
    for node in ancestors(outputs):
        for source in dict.fromkeys(node.inputs):
            users.setdefault(source.id, []).append(node)
    required = {node.id for node in outputs}
    required |= {node.id for call in calls.values() for node in operands(call)}
    for call in contracted.calls.values():
        longer = _extended(call, users, required, contracted.layouts)
        if longer is not None and fuses(*_facts(longer, contracted.layouts)):
            del calls[call.node.id]
            calls[longer.node.id] = longer
            absorbed.add(call.node.id)
    return Found(calls, absorbed)


def _facts(call: Call, layouts: Layouts) -> LibraryFacts:
    return step_of(call, layouts.strides)


def _extended(
    call: Call, users: dict[int, list[Node]], required: set[int], layouts: Layouts
) -> Call | None:
    """The call that computes the next node that must be in memory; None if it cannot."""
    channel = _channel(call, layouts)
    if channel is None or call.node.dtype.name != "float32":
        return None
    steps: list[EpilogueStep] = []
    inside = [call.node]
    here = call.node
    while here.id not in required:
        found = _step(here, users.get(here.id, []), users, channel)
        if found is None:
            return None
        steps.append(found[0])
        here = found[1]
        inside.append(here)
    if not steps or layouts.strides(here) != layouts.strides(call.node):
        return None
    return _ending(call, here, tuple(steps), tuple(inside[:-1]))


def _ending(
    call: Call, node: Node, steps: tuple[EpilogueStep, ...], inside: tuple[Node, ...]
) -> Call:
    """The call with its result in another node."""
    if isinstance(call, MatmulCall):
        result = replace(call.c, base=node)
        return replace(call, node=node, c=result, epilogue=steps, inside=inside)
    return replace(call, node=node, target=node, epilogue=steps, inside=inside)


def _channel(call: Call, layouts: Layouts) -> int | None:
    """The axis of the result along which the library takes vectors."""
    node = call.node
    if isinstance(call, ConvolutionCall):
        return 1 if call.kind == "forward" else None
    last = node.ndim - 1
    if last < 1 or call.c.base is not node or call.c.shape[-1] != node.shape[last]:
        return None
    plain = call.c.strides[-1] == 1 and layouts.strides(node)[last] == 1
    return last if plain and call.c.shape[-1] > 1 else None


def _step(
    here: Node, readers: list[Node], users: dict[int, list[Node]], channel: int
) -> tuple[EpilogueStep, Node] | None:
    """What is done next to a value that nothing else reads, and the node that it becomes."""
    if len(readers) == 2:
        return _relu(here, readers, users)
    if len(readers) != 1:
        return None
    (after,) = readers
    if not isinstance(after, Map) or after.function not in CHAINED or after.shape != here.shape:
        return None
    first, second = after.inputs
    if second is here and after.function in TURNED:
        first, second = second, first
    vector = _vector(second, channel) if first is here and second is not here else None
    return None if vector is None else (EpilogueStep(after.function, vector), after)


def _vector(node: Node, channel: int) -> Node | None:
    """The array of which a node has one element for each channel."""
    if not isinstance(node, Reindex) or node.guard or len(node.inputs) != 1:
        return None
    (source,) = node.inputs
    if source.size != node.shape[channel] or source.dtype is not node.dtype:
        return None
    along = [e for e in node.index if e != index.ZERO]
    return source if along == [axis(channel, node.shape[channel])] else None


def _relu(
    here: Node, readers: list[Node], users: dict[int, list[Node]]
) -> tuple[EpilogueStep, Node] | None:
    """select(x < 0, 0, x) as one step."""
    less = next((r for r in readers if isinstance(r, Map) and r.function == "lt"), None)
    chosen = next((r for r in readers if isinstance(r, Map) and r.function == "select"), None)
    if less is None or chosen is None or users.get(less.id) != [chosen]:
        return None
    zero = less.inputs[1]
    if less.inputs[0] is not here or chosen.inputs != (less, zero, here) or not _is_zero(zero):
        return None
    return EpilogueStep("relu", None), chosen


def _is_zero(node: Node) -> bool:
    source = node.inputs[0] if isinstance(node, Reindex) and not node.guard else node
    return isinstance(source, Const) and source.value == 0
