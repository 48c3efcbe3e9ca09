"""Repeats: nodes that one kernel would compute at many places are kept in memory instead.

What is computed where it is used is computed once for every place at which it is used. Reading a
node shifted, turned or rolled several times, again and again, makes those places many, in the worst
case twice as many with each step. So a walk from the results down counts them. Where a node has
more than a few, it gets memory of its own, and counting starts again below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.node import Map, Node, Random, Reduce, Reindex, coordinates
from ..ir.scalar import TABLE
from .body import Demand, inlined

PLACES = 8  # at which a node may be computed in one kernel
DEAR_PLACES = 2  # the same, of what takes many instructions


def repeated(nodes: Sequence[Node], is_boundary: Callable[[Node], bool]) -> set[int]:
    """ids of the nodes to keep in memory; `nodes` come with their inputs first."""
    if not _is_risky(nodes, is_boundary):
        return set()
    kept: set[int] = set()
    demand = Demand(lambda node: is_boundary(node) or node.id in kept)
    for node in reversed(nodes):
        places = demand.places.get(node.id, {})
        if isinstance(node, (Map, Random)) and len(places) > _most(node):
            kept.add(node.id)
        if demand.is_boundary(node):
            _ask_inputs(demand, node)
            continue
        for place in places:
            demand.step(node, place)
    return kept


def _most(node: Node) -> int:
    dear = isinstance(node, Random) or (isinstance(node, Map) and TABLE[node.function].dear)
    return DEAR_PLACES if dear else PLACES


def _ask_inputs(demand: Demand, node: Node) -> None:
    """What computing a node in memory needs, at the points of its own space."""
    if isinstance(node, Reduce):
        source = node.inputs[0]
        demand.ask(source, (coordinates(source.shape), ()))
    elif inlined(node):
        demand.step(node, (coordinates(node.shape), ()))
    else:
        for source in node.inputs:
            if inlined(source):
                demand.ask(source, (coordinates(source.shape), ()))


def _is_risky(nodes: Sequence[Node], is_boundary: Callable[[Node], bool]) -> bool:
    """Whether some node is read in several ways, within one that is too."""
    plain: dict[int, int] = {}  # readers at the same point
    moved: dict[int, int] = {}  # readers elsewhere
    depth: dict[int, int] = {}
    for node in reversed(nodes):
        several = moved.get(node.id, 0) + (1 if node.id in plain else 0) > 1
        within = 0 if is_boundary(node) else depth.get(node.id, 0) + several
        if within > 1:
            return True
        counts = moved if isinstance(node, Reindex) else plain
        for source in node.inputs[:1] if isinstance(node, Reindex) else node.inputs:
            counts[source.id] = counts.get(source.id, 0) + 1
            depth[source.id] = max(depth.get(source.id, 0), within)
    return False
