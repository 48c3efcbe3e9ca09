"""Loops: a body graph, and how it hangs in the graph around it.

A body is a graph of its own. Its parameters are Buffers: first one for each value that is carried
from turn to turn, then one for the element of each sequence that this turn sees, then those that
are the same for all turns. It gives the next value of each carry, and values that are stacked, turn
by turn. Slots mean the same inside as outside. The number of the turn is no kind of its own: it is
the element of a sequence 0, 1, 2, …

    carry₀ = initial;  carryₜ₊₁, yₜ = body(carryₜ, xs[t], shared)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import build
from .dtypes import bool_
from .node import Buffer, Loop, LoopResult, Node, Shape, ancestors, make

PARAMETERS = 1 << 20  # numbers of parameters start here, so that no leaf has the same


class LoopBody:
    """What a turn computes. Equal bodies have the very same nodes."""

    __slots__ = ("parameters", "sequences", "carries", "stacked", "_key")

    def __init__(
        self,
        parameters: Sequence[Node],
        sequences: int,
        carries: Sequence[Node],
        stacked: Sequence[Node],
    ) -> None:
        self.parameters = tuple(parameters)
        self.sequences = sequences  # how many of the parameters, behind the carries, are elements
        self.carries = tuple(carries)  # the next value of each
        self.stacked = tuple(stacked)
        groups = (self.parameters, self.carries, self.stacked)
        self._key = (sequences, *[tuple([node.id for node in group]) for group in groups])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LoopBody) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"<body of {len(ancestors(self.outputs))} nodes>"

    @property
    def outputs(self) -> list[Node]:
        """Everything that the body gives: next carries, then what is stacked."""
        return [*self.carries, *self.stacked]

    @property
    def carried(self) -> tuple[Node, ...]:
        """The parameters that are carried."""
        return self.parameters[: len(self.carries)]

    @property
    def elements(self) -> tuple[Node, ...]:
        """The parameters that stand for an element of a sequence."""
        first = len(self.carries)
        return self.parameters[first : first + self.sequences]

    @property
    def shared(self) -> tuple[Node, ...]:
        """The parameters that are the same for all turns."""
        return self.parameters[len(self.carries) + self.sequences :]

    def with_outputs(self, outputs: Sequence[Node]) -> LoopBody:
        """The same parameters with other outputs in their places."""
        count = len(self.carries)
        return LoopBody(self.parameters, self.sequences, outputs[:count], outputs[count:])


def parameter(number: int, shape: Shape, dtype: Any) -> Node:
    """Parameter `number` of a body."""
    return build.buffer(PARAMETERS + number, shape, dtype)


def next_number(parameters: Iterable[Node]) -> int:
    """A number that none of the parameters has, nor any above it."""
    used = [node.number - PARAMETERS for node in parameters if isinstance(node, Buffer)]
    return max(used, default=-1) + 1


def loop(inputs: Sequence[Node], body: LoopBody, trips: int, reverse: bool = False) -> Loop:
    """A Loop over inputs in the order of the body's parameters."""
    return make(Loop, tuple(inputs), (), bool_, trips, body, reverse)


def result(node: Node, number: int) -> Node:
    """Result `number` of a Loop: the carries in the end, then the stacks."""
    assert isinstance(node, Loop)
    body = node.body
    count = len(body.carries)
    if number < count:
        final = body.carries[number]
        return make(LoopResult, (node,), final.shape, final.dtype, number)
    one = body.stacked[number - count]
    return make(LoopResult, (node,), (node.trips, *one.shape), one.dtype, number)


def results(node: Node) -> list[Node]:
    """All results of a Loop."""
    assert isinstance(node, Loop)
    count = len(node.body.carries) + len(node.body.stacked)
    return [result(node, n) for n in range(count)]


class Inputs:
    """The inputs of a Loop by their part in it."""

    __slots__ = ("initial", "sequences", "shared")

    def __init__(self, node: Node) -> None:
        assert isinstance(node, Loop)
        first = len(node.body.carries)
        rest = first + node.body.sequences
        self.initial = node.inputs[:first]
        self.sequences = node.inputs[first:rest]
        self.shared = node.inputs[rest:]
