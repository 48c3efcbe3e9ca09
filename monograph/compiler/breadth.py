"""Breadth: a kernel reads at most so many arrays; what would read more is computed in parts.

A sum over all turns of a loop that Python ran has a term for each turn. Computed in one place it
would be one kernel, as large as the loop is long, and another one for every length. So a walk from
the leaves up counts the arrays that a node is computed from. Where they are too many, the input
that brings most of them is kept in memory. A sum added up term by term then becomes partial sums,
each the sum of the one before and of as many terms, and all of them share one kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.node import Const, Map, Node, Reindex, Slot

MOST = 32  # arrays that one node may be computed from
MOST_TOUCHED = 64  # arrays that one kernel may read and write
CROWD = 32  # units that touch an array, beyond which it does not bring two of them together

_NOTHING: frozenset[int] = frozenset()


def broad(nodes: Sequence[Node], is_boundary: Callable[[Node], bool]) -> set[int]:
    """ids of the nodes to keep in memory; `nodes` come with their inputs first."""
    kept: set[int] = set()
    loads: dict[int, frozenset[int]] = {}
    for node in nodes:
        read = _joined([loads[source.id] for source in node.inputs])
        if len(read) > MOST and not is_boundary(node):
            read = _cut(node, loads, kept)
        if isinstance(node, (Slot, Const)):
            read = _NOTHING
        elif is_boundary(node):
            read = frozenset((node.id,))
        loads[node.id] = read
    return kept


def is_broad(touched: set[int], more: set[int]) -> bool:
    """Whether two parts of a kernel together touch too many arrays."""
    if len(touched) + len(more) <= MOST_TOUCHED:
        return False
    return len(touched | more) > MOST_TOUCHED


def _cut(node: Node, loads: dict[int, frozenset[int]], kept: set[int]) -> frozenset[int]:
    """Keep inputs, those that read most first, until the node reads few arrays."""
    for source in sorted(node.inputs, key=lambda n: -len(loads[n.id])):
        if len(loads[source.id]) > 1:
            base = _seen(source)
            if not isinstance(base, Map):
                continue
            kept.add(base.id)
            loads[source.id] = loads[base.id] = frozenset((base.id,))
            read = _joined([loads[n.id] for n in node.inputs])
            if len(read) <= MOST:
                return read
    return _joined([loads[n.id] for n in node.inputs])


def _seen(node: Node) -> Node:
    """What a node is a view of."""
    while isinstance(node, Reindex):
        node = node.inputs[0]
    return node


def _joined(sets: Sequence[frozenset[int]]) -> frozenset[int]:
    """The union; the largest itself where it holds the others."""
    if not sets:
        return _NOTHING
    largest = max(sets, key=len)
    return largest if all(one <= largest for one in sets) else largest.union(*sets)
