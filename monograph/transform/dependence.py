"""What depends on what, where operators bring derivatives of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.node import Node
from ..ir.operator import Rule


def _sources(node: Node, rules: Mapping[int, Rule]) -> tuple[Node, ...]:
    """What a node is computed from, and what its rule differentiates by.

    The two may differ: a constructor may have seen through an operator's input, a view for
    instance, so that the input is no longer an ancestor of the output.
    """
    return (*node.inputs, *rules[node.id][0]) if node.id in rules else node.inputs


def sources_of(outputs: Sequence[Node], rules: Mapping[int, Rule]) -> list[Node]:
    """All that the outputs and the rules of what they need depend on, in topological order."""
    seen: dict[int, Node] = {}
    stack = list(outputs)
    while stack:
        node = stack.pop()
        if node.id not in seen:
            seen[node.id] = node
            stack.extend(_sources(node, rules))
    return [seen[k] for k in sorted(seen)]


def feeds(node: Node, depends: set[int], rules: Mapping[int, Rule]) -> bool:
    """Whether any of what a node is differentiated by is among the ids."""
    return any(source.id in depends for source in _sources(node, rules))


def dependents(
    order: Sequence[Node], wanted: Sequence[Node], rules: Mapping[int, Rule]
) -> set[int]:
    """ids of what depends on any of the wanted nodes, themselves included."""
    depends = {node.id for node in wanted}
    for node in order:
        if feeds(node, depends, rules):
            depends.add(node.id)
    return depends
