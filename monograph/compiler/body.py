"""Bodies: what a kernel computes at one point, from nodes to scalar values.

`Demand` finds out which nodes are needed at which coordinates, walking from the results down:
Map asks its operands at the same place, Reindex at the mapped one, and the walk ends at what is in
memory (`Reference`). `Body` then builds the values bottom up. Neither is recursive.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..codegen import kernel as k
from ..ir import dtypes, index
from ..ir.build import exact
from ..ir.index import Condition, Expr, Guard, Read
from ..ir.node import Const, Coordinate, Map, Node, Random, Reindex, coordinates
from .philox_values import random_bits

Place = tuple[tuple[Expr, ...], Guard]  # coordinates, and what must hold for them to be valid


def mapped(node: Node, place: Place) -> Place:
    """Where a Reindex reads its first input."""
    assert isinstance(node, Reindex)
    where, guard = place
    mapping: dict[Expr, Expr] = dict(zip(coordinates(node.shape), where, strict=True))
    read = tuple(index.substitute(named(e, node), mapping) for e in node.index)
    own = named_guard(node.guard, node)
    more = index.substitute_guard(own, mapping)
    return read, index.reduce_guard((*guard, *more))


def named(e: Expr, node: Node) -> Expr:
    """Reads in node e refer to inputs by number; here they refer to nodes by id."""
    return index.renumber_reads(e, lambda n: node.inputs[1 + n].id)


def named_guard(guard: Guard, node: Node) -> Guard:
    """The same for a guard."""
    return tuple(Condition(named(c.expr, node), c.equal) for c in guard)


@dataclass
class Demand:
    """Nodes at places, and the references at which they end."""

    is_boundary: Callable[[Node], bool]
    places: dict[int, dict[Place, None]] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    _heap: list[int] = field(default_factory=list)

    def ask(self, node: Node, place: Place) -> None:
        """Note that the node is needed there."""
        if node.id not in self.nodes:
            self.nodes[node.id] = node
            self.places[node.id] = {}
            heapq.heappush(self._heap, -node.id)
        self.places[node.id][place] = None

    def run(self) -> Iterator[tuple[Node, Place]]:
        """Walk down; yields every reference to something in memory or to another part."""
        while self._heap:
            node = self.nodes[-heapq.heappop(self._heap)]
            for place in self.places[node.id]:
                if self.is_boundary(node):
                    yield node, place
                else:
                    self.step(node, place)

    def step(self, node: Node, place: Place) -> None:
        """Ask for what computing the node there needs."""
        if isinstance(node, Map):
            for source in node.inputs:
                self.ask(source, place)
        elif isinstance(node, Reindex):
            self.ask(node.inputs[0], mapped(node, place))
        elif isinstance(node, Random):
            for source in node.inputs:
                self.ask(source, ((), place[1]))


@dataclass
class Body:
    """Values of nodes at places, given how references are loaded."""

    load: Callable[[Node, Place], k.Value]
    buffer_of: Callable[[int], int]  # node id → buffer number, for Read
    read_strides: Callable[[int], tuple[int, ...]]
    values: dict[tuple[int, Place], k.Value] = field(default_factory=dict)

    def build(self, demand: Demand) -> None:
        """Build the value of everything demanded."""
        for number in sorted(demand.nodes):
            node = demand.nodes[number]
            for place in demand.places[number]:
                self.values[number, place] = self._value(node, place, demand)

    def _value(self, node: Node, place: Place, demand: Demand) -> k.Value:
        if demand.is_boundary(node):
            return self.load(node, place)
        if isinstance(node, Const):
            return k.Constant(node.dtype, node.value)
        if isinstance(node, Coordinate):
            return k.IndexValue(dtypes.int64, self.kernel_expr(place[0][node.axis]))
        if isinstance(node, Map):
            operands = tuple(self.values[source.id, place] for source in node.inputs)
            return k.Apply(node.dtype, node.function, operands)
        if isinstance(node, Reindex):
            return self._reindexed(node, place)
        assert isinstance(node, Random), node
        seed, offset = (self.values[source.id, ((), place[1])] for source in node.inputs)
        flat = index.flatten(place[0], index.contiguous_strides(node.shape))
        return random_bits(self.kernel_expr(flat), seed, offset)

    def _reindexed(self, node: Node, place: Place) -> k.Value:
        assert isinstance(node, Reindex)
        inner = mapped(node, place)
        value = self.values[node.inputs[0].id, inner]
        added = tuple(c for c in inner[1] if c not in place[1])
        if not added:
            return value
        if isinstance(value, k.Load) and value.guard and value.fill == 0 and not place[1]:
            return k.Load(value.dtype, value.buffer, value.index, value.guard, node.fill)
        holds = k.Holds(dtypes.bool_, self.kernel_guard(added))
        fill = k.Constant(node.dtype, exact(node.fill, node.dtype))
        return k.Apply(node.dtype, "select", (holds, value, fill))

    def kernel_expr(self, e: Expr) -> Expr:
        """The expression with Reads turned from (node id, index) to (buffer, flat index)."""
        if not any(isinstance(a, Read) for a in index.atoms(e)):
            return e
        if isinstance(e, Read):
            place = [self.kernel_expr(i) for i in e.index]
            flat = index.flatten(place, self.read_strides(e.source))
            return Read(self.buffer_of(e.source), (flat,), e.extent)
        if isinstance(e, index.Sum):
            parts = [index.scale(self.kernel_expr(a), c) for a, c in e.terms]
            return index.total([e.const, *parts])
        return index.rebuild_atom(e, self.kernel_expr)

    def kernel_guard(self, guard: Guard) -> Guard:
        """The same for a guard."""
        return tuple(Condition(self.kernel_expr(c.expr), c.equal) for c in guard)


def inlined(node: Node) -> bool:
    """Whether a node is computed where it is used, and never kept in memory by itself."""
    return isinstance(node, (Const, Coordinate, Map, Reindex, Random))
