"""Alike: units of the same structure are lowered once.

The layers of a model differ in nothing but their arrays. The structure of a unit is what its nodes
are, numbered in the order of the graph, with those that it finds in memory reduced to how they
lie. Two units of one structure have the same kernel, and arguments at the same numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from ..ir.node import Node, hashable
from .fuse import Fusion, Unit
from .lower import PARTIALS, Lowered


@dataclass
class Alike:
    """The units lowered so far, by structure."""

    fusion: Fusion
    needed: set[int]
    _known: dict[Hashable, tuple[Lowered, dict[int, int]]] = field(default_factory=dict)

    def find(self, unit: Unit) -> Lowered | None:
        """The kernel of a unit like this one, with this one's arguments."""
        nodes = self._nodes(unit)
        found = self._known.get(self._structure(unit, nodes))
        if found is None:
            return None
        made, numbers = found
        return Lowered(made.kernel, [_argument(a, numbers, nodes) for a in made.arguments])

    def add(self, unit: Unit, made: Lowered) -> None:
        """Remember the kernel of a unit."""
        nodes = self._nodes(unit)
        numbers = {node.id: n for n, node in enumerate(nodes)}
        self._known[self._structure(unit, nodes)] = made, numbers

    def _nodes(self, unit: Unit) -> list[Node]:
        """What a unit computes and what it reads, in the order of the graph."""
        anchors = unit.anchors
        own = {node.id for node in anchors}
        seen: dict[int, Node] = {}
        stack = list(anchors)
        while stack:
            node = stack.pop()
            if node.id in seen:
                continue
            seen[node.id] = node
            if node.id in own or not self.fusion.is_boundary(node):
                stack.extend(node.inputs)
        return [seen[n] for n in sorted(seen)]

    def _structure(self, unit: Unit, nodes: list[Node]) -> Hashable:
        numbers = {node.id: n for n, node in enumerate(nodes)}
        rows = sorted(unit.rows, key=lambda node: node.id)  # as they are lowered
        anchors = (rows, unit.columns, unit.splits, unit.totals, unit.roots)
        own = {node.id for part in anchors for node in part}
        facts: list[Hashable] = [
            unit.frame, *[tuple([numbers[node.id] for node in part]) for part in anchors]
        ]  # fmt: skip
        for node in nodes:
            lies = self.fusion.layouts.strides(node)
            if node.id not in own and self.fusion.is_boundary(node):
                facts.append((node.shape, node.dtype, lies))
                continue
            inputs = tuple([numbers[source.id] for source in node.inputs])
            what = type(node), inputs, node.shape, node.dtype, hashable(node.attributes)
            facts.append((*what, lies, node.id in self.needed, self.fusion.is_boundary(node)))
        return tuple(facts)


def _argument(given: Node | str, numbers: dict[int, int], nodes: list[Node]) -> Node | str:
    """What stands at the place of another unit's argument."""
    if isinstance(given, Node):
        return nodes[numbers[given.id]]
    if given.startswith(PARTIALS):
        return f"{PARTIALS}{nodes[numbers[int(given[len(PARTIALS) :])]].id}"
    return given
