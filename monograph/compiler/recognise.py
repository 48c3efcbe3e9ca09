"""Recognise: sums of products that were written by hand become contractions.

`(x[:, :, None] * w[None]).sum(1)` is a Reduce of a Map `mul` of two broadcasts. Written as a
Contract, a library takes it, and so it takes the two contractions that are its derivative, which
have the same form. A factor is read over only those coordinates that it depends on; windows that
overlap are read through their affine map, so that a sum over windows is a convolution. What moves
about as many elements as it multiplies stays as it is, and so does a product that others need.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import build, index
from ..ir.extent import hint
from ..ir.index import Expr, Var
from ..ir.node import (
    Map,
    Node,
    Reduce,
    Reindex,
    ancestors,
    axis,
    coordinates,
    enter_origin,
)
from .simplify import rebuild

Factor = tuple[Node, tuple[Expr, ...]]  # an array, and where each point of the domain reads it
TRANSPARENT = ("detach", "mark")


def recognise(outputs: Sequence[Node]) -> list[Node]:
    """The graph with every sum of products that pays as a Contract."""
    nodes = ancestors(outputs)
    shared = _shared_products(nodes, outputs)
    depends: dict[int, frozenset[Var]] = {}
    made: dict[int, Node] = {}
    for node in nodes:
        inputs = [made[source.id] for source in node.inputs]
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        fresh = rebuild(node, inputs) if changed else node
        if isinstance(fresh, Reduce) and fresh.combine == "add" and node.dtype.is_smooth:
            if not node.inputs or node.inputs[0].id not in shared:
                enter_origin(node.origin)
                fresh = _lifted(fresh, depends) or fresh
                enter_origin(-1)
        made[node.id] = fresh
    return [made[node.id] for node in outputs]


def _shared_products(nodes: Sequence[Node], outputs: Sequence[Node]) -> set[int]:
    """ids of what something other than a sum needs too: it is computed in any case."""
    shared = {node.id for node in outputs}
    for node in reversed(nodes):
        summed = isinstance(node, Reduce) and node.combine == "add"
        passed = isinstance(node, Map) and node.function in TRANSPARENT and node.id not in shared
        if not summed and not passed:
            shared.update(source.id for source in node.inputs)
    return shared


def _lifted(node: Reduce, depends: dict[int, frozenset[Var]]) -> Node | None:
    """The sum as a Contract, or None."""
    product = node.inputs[0]
    while isinstance(product, Map) and product.function in TRANSPARENT:
        product = product.inputs[0]
    if not isinstance(product, Map) or product.function != "mul":
        return None
    space = coordinates(product.shape)
    wide = {v for v in space if hint(v.extent) > 1}
    used = [_depends(x, depends) for x in product.inputs]
    if used[0] | used[1] != wide or wide in used:
        return None  # a coordinate that only repeats, or a factor as large as the product
    sizes = [_reads(x, mine) for x, mine in zip(product.inputs, used, strict=True)]
    if hint(product.size) < 2 * (hint(node.size) + sum(sizes)):
        return None
    (a, fa), (b, fb) = [_factor(x, mine) for x, mine in zip(product.inputs, used, strict=True)]
    fo = [v for k, v in enumerate(space) if k not in node.axes]
    return build.contract(a, b, node.shape, product.shape, fo, fa, fb)


def _depends(node: Node, known: dict[int, frozenset[Var]]) -> frozenset[Var]:
    """The coordinates, of extent over 1, that a node's elements differ along."""
    stack = [node]
    while stack:
        top = stack[-1]
        waiting = [n for n in top.inputs if isinstance(top, Map) and n.id not in known]
        if top.id in known or not waiting:
            known.setdefault(top.id, _own_dependence(top, known))
            stack.pop()
        else:
            stack += waiting
    return known[node.id]


def _own_dependence(node: Node, known: dict[int, frozenset[Var]]) -> frozenset[Var]:
    if isinstance(node, Map):
        return frozenset().union(*[known[n.id] for n in node.inputs])
    if isinstance(node, Reindex):
        exprs = [*node.index, *[c.expr for c in node.guard]]
        found = {v for e in exprs for v in index.variables(e)}
    else:
        found = set(coordinates(node.shape))
    return frozenset([v for v in found if hint(v.extent) > 1])


def _reads(x: Node, used: frozenset[Var]) -> int:
    """How many elements the factor has in memory."""
    return hint(x.inputs[0].size) if _has_windows(x, used) else _points(used)


def _points(used: frozenset[Var]) -> int:
    size = 1
    for v in used:
        size *= hint(v.extent)
    return size


def _has_windows(x: Node, used: frozenset[Var]) -> bool:
    """Whether x repeats elements along coordinates that it depends on, by an affine map.

    Places outside are only left out where they read 0: that is what a Contract does.
    """
    if not isinstance(x, Reindex) or len(x.inputs) > 1:
        return False
    if hint(x.inputs[0].size) >= _points(used):
        return False
    if not all(index.is_affine(e) for e in x.index):
        return False
    bounds = [
        c for e, n in zip(x.index, x.inputs[0].shape, strict=True) for c in index.within(e, n)
    ]
    return index.reduce_guard(bounds) == x.guard and x.fill == 0


def _factor(x: Node, used: frozenset[Var]) -> Factor:
    """The factor without repetition, and where it is read."""
    if _has_windows(x, used):
        assert isinstance(x, Reindex)
        return x.inputs[0], x.index
    kept = [v for v in coordinates(x.shape) if v in used]
    shape = tuple([v.extent for v in kept])
    place = {v: axis(n, v.extent) for n, v in enumerate(kept)}
    where = [place.get(v, index.ZERO) for v in coordinates(x.shape)]
    return build.reindex(x, shape, where), tuple(kept)


__all__ = ["recognise"]
