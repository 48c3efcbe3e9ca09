"""The body of a loop as a program of its own, and how each turn finds its memory.

A turn reads and writes through places that move with it. What is carried is written to one of two
buffers in turn, or, where it is stacked anyway, into its stack; the next turn reads it there. The
first turn reads the initial values where they are. So nothing is copied between turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..codegen.kernel import Kernel
from ..ir import build
from ..ir.extent import Values, value_at
from ..ir.node import Buffer, Loop, LoopResult, Node
from .simplify import copied, substitute

if TYPE_CHECKING:
    from .lower import Lowered
    from .plan import Place, Planner, Ref


@dataclass(frozen=True)
class LoopUnit:
    """A loop as fusion sees it: one pass that computes all results that are used."""

    node: Loop
    sources: list[tuple[Node, int]]  # of each input: what holds it in memory, from which element
    results: list[LoopResult] = field(default_factory=list)

    @property
    def operands(self) -> list[Node]:
        """What the loop reads."""
        return [base for base, _ in self.sources]


@dataclass
class Outputs:
    """What a turn stores: each node once, and which results and carries it serves."""

    nodes: list[Node]
    carries: list[int]  # carry → its place among the nodes
    stacks: dict[int, int]  # number of a result → its place among the nodes


def outputs_of(call: LoopUnit) -> Outputs:
    """The nodes to compute in each turn, over Buffers numbered as the parameters are."""
    body = call.node.body
    renumbered = {p.id: build.buffer(n, p.shape, p.dtype) for n, p in enumerate(body.parameters)}
    made = substitute(body.outputs, renumbered)
    count = len(body.carries)
    found = Outputs([], [], {})
    place: dict[int, int] = {}
    for result in sorted(call.results, key=lambda node: node.number):
        if result.number >= count:
            found.stacks[result.number] = _add(found.nodes, place, made[result.number], True)
    ends = {result.number for result in call.results}
    taken = set(found.stacks.values())  # outputs whose memory is no end of a carry, or another's
    for k, y in enumerate(made[:count]):
        at = _add(found.nodes, place, y, False)
        if k in ends:
            at = _add(found.nodes, place, y, True) if at in taken else at
            taken.add(at)
        found.carries.append(at)
    return found


def _add(nodes: list[Node], place: dict[int, int], node: Node, own: bool) -> int:
    """The place of a node among those to compute; with `own`, it shares memory with no other."""
    known = place.get(node.id)
    if known is not None and not own:
        return known
    stored = node
    while isinstance(stored, Buffer) or any(stored is other for other in nodes):
        stored = copied(stored)
    place.setdefault(node.id, len(nodes))
    nodes.append(stored)
    return len(nodes) - 1


@dataclass
class LoweredLoop:
    """A loop whose body has kernels and a planner of its own."""

    call: LoopUnit
    outputs: Outputs
    lowered: dict[int, Lowered]
    loops: dict[int, LoweredLoop]
    planner: Planner

    def kernels(self) -> Iterator[Kernel]:
        """All kernels, those of loops inside included."""
        for low in self.lowered.values():
            yield low.kernel
        for inner in self.loops.values():
            yield from inner.kernels()

    def lowerings(self) -> Iterator[Lowered]:
        """The same with their arguments."""
        yield from self.lowered.values()
        for inner in self.loops.values():
            yield from inner.lowerings()

    def buffered(self) -> list[int]:
        """Places of the outputs that are carried and not stacked: these need two buffers."""
        stacked = set(self.outputs.stacks.values())
        return sorted(set(self.outputs.carries) - stacked)

    def final(self, node: LoopResult) -> int | None:
        """The place of the output that a result is the end of; None for a stack."""
        count = len(self.call.node.body.carries)
        return self.outputs.carries[node.number] if node.number < count else None


def nbytes(node: Node, values: Values) -> int:
    """Bytes of a node at given sizes."""
    return value_at(node.size, values) * node.dtype.itemsize


class Places:
    """Where each parameter and each output of a body lies, turn by turn."""

    def __init__(
        self, low: LoweredLoop, values: Values, ref: Callable[..., Ref],
        buffer: Callable[[int], tuple[Ref, int]],
    ) -> None:  # fmt: skip
        self.low, self.values, self.ref, self.buffer = low, values, ref, buffer
        self.node = low.call.node
        self.trips = value_at(self.node.trips, values)
        self.stack_of = {place: n for n, place in low.outputs.stacks.items()}
        self.results = {node.number: node for node in low.call.results}

    def parameters(self) -> tuple[Place, ...]:
        """A place for each parameter."""
        body = self.node.body
        count = len(body.carries)
        made: list[Place] = []
        for n, source in enumerate(self.low.call.sources):
            given = self.ref(*source)
            if n < count:
                base, step, _, mask = self._output(self.low.outputs.carries[n])
                made.append((given, base, step, 0 if mask == 1 else -1, mask))
            elif n < count + body.sequences:
                base, step = self._along(given, body.parameters[n])
                made.append((None, base, step, 0, -1))
            else:
                made.append((None, given, 0, 0, -1))
        return tuple(made)

    def outputs(self) -> tuple[Place, ...]:
        """A place for each output."""
        return tuple([(None, *self._output(n)) for n in range(len(self.low.outputs.nodes))])

    def _output(self, place: int) -> tuple[Ref, int, int, int]:
        """(base, step, shift, mask) of an output."""
        number = self.stack_of.get(place)
        if number is None:
            base, step = self.buffer(place)
            return base, step, 1, 1
        one = self.low.outputs.nodes[place]
        return (*self._along(self.ref(self.results[number]), one), 0, -1)

    def _along(self, ref: Ref, one: Node) -> tuple[Ref, int]:
        """The element of the first turn, and the bytes from one turn to the next."""
        step = nbytes(one, self.values)
        if not self.node.reverse:
            return ref, step
        return moved(ref, (self.trips - 1) * step), -step


def moved(ref: Ref, distance: int) -> Ref:
    """The same memory from some bytes on."""
    kind, number, offset = ref
    if kind == "arena":
        return (kind, number + distance, offset)
    return (kind, number, offset + distance)


def lowered_by_name(
    lowered: dict[int, Lowered], loops: dict[int, LoweredLoop]
) -> dict[str, Lowered]:
    """Every kernel of a program by its name."""
    found = {low.code.name: low for low in lowered.values()}
    for inner in loops.values():
        found |= {low.code.name: low for low in inner.lowerings()}
    return found


__all__: Sequence[str] = [
    "LoopUnit", "LoweredLoop", "Outputs", "Places", "lowered_by_name", "moved", "nbytes",
    "outputs_of",
]  # fmt: skip
