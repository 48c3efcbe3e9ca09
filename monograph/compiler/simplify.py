"""Simplify: what may go once derivatives are taken, and contractions too small for a library.

The graph is rebuilt bottom up through the constructors of `ir/build.py`, which fold, compose and
intern; here only that is decided which needs the whole graph to be final.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir import build, index
from ..ir.dtypes import accumulator
from ..ir.extent import hint
from ..ir.node import (
    Call,
    Contract,
    Map,
    Move,
    Node,
    Random,
    Reduce,
    Reindex,
    Scatter,
    ancestors,
    coordinates,
    enter_origin,
    make,
)
from ..transform.invert import transpose_map
from .contract import view_of

Rule = Callable[[Node], Node | None]

LEAST_REUSE = 2  # products per element moved, below which a contraction is loops
THIN_REUSE = 5  # the same, of a product of matrices whose loops run along neighbours


def rebuild(node: Node, inputs: Sequence[Node]) -> Node:
    """The same node over other inputs, through its constructor."""
    before = enter_origin(node.origin)
    try:
        return _rebuilt(node, inputs)
    finally:
        enter_origin(before)


def _rebuilt(node: Node, inputs: Sequence[Node]) -> Node:
    if isinstance(node, Map) and not is_copy(node):
        return build.apply(node.function, *inputs, dtype=node.dtype)
    if isinstance(node, Reindex):
        return build.reindex(
            inputs[0], node.shape, node.index, node.guard, node.fill, tuple(inputs[1:])
        )
    if isinstance(node, Reduce):
        return build.reduce(node.combine, inputs[0], node.axes)
    if isinstance(node, Scatter):
        return build.scatter(
            node.combine, inputs[0], node.shape, node.index, node.guard, tuple(inputs[1:])
        )
    if isinstance(node, Contract):
        return build.contract(
            inputs[0], inputs[1], node.shape, node.domain, node.fo, node.fa, node.fb
        )
    if isinstance(node, Random):
        return build.random_bits(node.shape, inputs[0], inputs[1])
    return make(type(node), tuple(inputs), node.shape, node.dtype, *node.attributes)


def is_copy(node: Node) -> bool:
    """A cast to the same dtype: a place in memory of its own, asked for by a pass."""
    return isinstance(node, Map) and node.function == "cast" and (
        node.dtype is node.inputs[0].dtype
    )  # fmt: skip


def copied(node: Node) -> Node:
    """A copy of a node: its own place in memory, whatever the original's layout."""
    return make(Map, (node,), node.shape, node.dtype, "cast")


def rewrite(outputs: Sequence[Node], rules: Sequence[Rule]) -> list[Node]:
    """Apply the rules to every node, inputs first; a rule returns None to leave a node alone."""
    made: dict[int, Node] = {}
    for node in ancestors(outputs):
        inputs = [made[source.id] for source in node.inputs]
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        fresh = rebuild(node, inputs) if changed else node
        enter_origin(node.origin)
        for rule in rules:
            replaced = rule(fresh)
            if replaced is not None:
                fresh = replaced
        made[node.id] = fresh
    enter_origin(-1)
    return [made[node.id] for node in outputs]


def substitute(outputs: Sequence[Node], replaced: dict[int, Node]) -> list[Node]:
    """The graph with other nodes in the place of some."""
    made: dict[int, Node] = {}
    for node in ancestors(outputs):
        found = replaced.get(node.id)
        if found is not None:
            made[node.id] = found
            continue
        inputs = [made[source.id] for source in node.inputs]
        changed = any(a is not b for a, b in zip(inputs, node.inputs, strict=True))
        made[node.id] = rebuild(node, inputs) if changed else node
    return [made[node.id] for node in outputs]


def drop_detach(node: Node) -> Node | None:
    """detach and mark have done their work."""
    if isinstance(node, Map) and node.function in ("detach", "mark"):
        return node.inputs[0]
    return None


def drop_move(node: Node) -> Node | None:
    """A Move to where the value already is."""
    return node.inputs[0] if isinstance(node, Move) and node.device == "cpu" else None


def expand_contraction(node: Node) -> Node:
    """The meaning of a Contract in the three meta-operators, in gather form."""
    assert isinstance(node, Contract)
    a, b = node.inputs
    product = _at(a, node.fa, node.domain) * _at(b, node.fb, node.domain)
    return transpose_map(product, node.fo, _inside(node.fo, node.shape), node.shape)


def _inside(where: Sequence[index.Expr], shape: Sequence[int]) -> index.Guard:
    return tuple(c for e, n in zip(where, shape, strict=True) for c in index.within(e, n))


def _at(x: Node, where: Sequence[index.Expr], domain: tuple[int, ...]) -> Node:
    return build.reindex(x, domain, where, _inside(where, x.shape))


def small_contraction(node: Node) -> Node | None:
    """Contractions with little reuse (matrix · a few vectors, diagonals) are better as loops."""
    if not isinstance(node, Contract):
        return None
    work = 1
    for extent in node.domain:
        work *= extent
    moved = node.size + node.inputs[0].size + node.inputs[1].size
    reuse = THIN_REUSE if _is_smooth(node) else LEAST_REUSE
    return expand_contraction(node) if hint(work) < reuse * hint(moved) else None


def _is_smooth(node: Contract) -> bool:
    """Whether a product of matrices runs along neighbours: of long rows, or of what is summed."""
    places = (node.fa, node.fb, node.fo)
    if not all(isinstance(e, index.Var) for place in places for e in place):
        return False
    if node.shape and hint(node.shape[-1]) >= 16:
        return True
    return all(_sums_along(x, f, node) for x, f in zip(node.inputs, places[:2], strict=True))


def _sums_along(x: Node, place: Sequence[index.Expr], node: Contract) -> bool:
    """Whether what is summed over lies side by side in an operand."""
    _, flat = view_of(x, lambda base: index.contiguous_strides(base.shape))
    mapping: dict[index.Expr, index.Expr] = dict(zip(coordinates(x.shape), place, strict=True))
    moved = index.substitute(flat, mapping)
    summed = [v for v in place if isinstance(v, index.Var) and v not in node.fo]
    return any(index.coefficient(moved, v) == 1 for v in summed)


def wide_scatter(node: Node) -> Node | None:
    """16-bit floats are added up in float32 and rounded once, not after every element."""
    if isinstance(node, Scatter) and node.dtype.is_half:
        wide = build.cast(node.inputs[0], accumulator(node.dtype))
        return build.cast(rebuild(node, [wide, *node.inputs[1:]]), node.dtype)
    return None


def widened_contraction(node: Node) -> Node:
    """A contraction of 16-bit floats as one of float32, which every library has."""
    wide = accumulator(node.dtype)
    return build.cast(rebuild(node, [build.cast(x, wide) for x in node.inputs]), node.dtype)


def empty(node: Node) -> Node | None:
    """Combining nothing gives the identity."""
    if isinstance(node, Reduce) and node.inputs[0].size == 0:
        if node.combine in build.IDENTITY:
            return build.full(node.shape, build.IDENTITY[node.combine](node.dtype), node.dtype)
    if isinstance(node, Scatter) and node.inputs[0].size == 0:
        return build.full(node.shape, build.IDENTITY[node.combine](node.dtype), node.dtype)
    if isinstance(node, Contract) and 0 in node.domain:
        return build.full(node.shape, 0, node.dtype)
    if isinstance(node, Call) and node.size == 0:
        return build.full(node.shape, 0, node.dtype)
    if isinstance(node, Call) and any(n.size == 0 and not _is_constant(n) for n in node.inputs):
        filled = [build.full(n.shape, 0, n.dtype) if n.size == 0 else n for n in node.inputs]
        return build.call(node.function, *filled, options=node.options)
    return None


def _is_constant(node: Node) -> bool:
    return build.constant_value(node) is not None


def running_extreme(node: Node) -> Node | None:
    """What is read where running extremes stand is the running extremes."""
    if not isinstance(node, Reindex) or node.guard or len(node.inputs) != 2:
        return None
    source, where = node.inputs
    if not isinstance(where, Call) or where.function not in ("scan_argmax", "scan_argmin"):
        return None
    if where.inputs != (source,):
        return None
    places: list[index.Expr] = list(coordinates(where.shape))
    axis = where.options[0]
    places[axis] = index.Read(0, tuple(places), source.shape[axis])
    if build.reindex(source, where.shape, places, reads=(where,)) is not node:
        return None
    return build.call(where.function.replace("arg", ""), source, options=where.options)


def simplify(outputs: Sequence[Node]) -> list[Node]:
    """The graph without detach, Move in place, and low-intensity contractions."""
    rules = (drop_detach, drop_move, empty, small_contraction, wide_scatter, running_extreme)
    return rewrite(outputs, rules)
