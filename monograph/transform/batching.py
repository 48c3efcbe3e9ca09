"""Batching: the graph of one example becomes the graph of many, into the same kinds of nodes.

`Batching` is told which nodes of the graph stand for one example of an array (`bind`), and `of`
gives any node that depends on them with a batch axis in front. Each kind of node has one rule. What
depends on no example stays as it is: it is computed once. Derivatives that operators brought for
the graph of one example hold for the batch too (`carry`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from .. import errors
from ..ir import build, index, loop
from ..ir.index import Condition, Expr, Guard, Read
from ..ir.node import (
    Call,
    Contract,
    Loop,
    LoopResult,
    Map,
    Move,
    Node,
    Random,
    Reduce,
    Reindex,
    Scatter,
    Shape,
    ancestors,
    axis,
    coordinates,
    make,
)
from ..ir.operator import Rule, noted, noting

RANDOMNESS = ("error", "different", "same")
_placeholders = itertools.count(-1_000_000, -1)


def example(shape: Shape, node: Node) -> Node:
    """A node that stands for one example of `node`, until it is bound."""
    return build.buffer(next(_placeholders), shape, node.dtype)


class Batching:
    """From nodes of one example to nodes of `size` examples."""

    def __init__(
        self, size: int, randomness: str, rules: Mapping[int, Rule], draws: frozenset[int]
    ) -> None:
        self.size = size
        self.randomness = randomness
        self.draws = draws  # ids of the numbers that the function itself draws with
        self.rules = dict(rules)  # own derivatives, by the id of a node of one example
        self._made: dict[int, Node | None] = {}  # None: the same for all examples
        self._differ: dict[int, list[bool]] = {}  # id of a loop → which results have examples

    def bind(self, one: Node, many: Node) -> None:
        """`one` stands for an example of `many`, whose first axis counts the examples."""
        self._made[one.id] = many

    def of(self, node: Node) -> Node | None:
        """The node for all examples, or None if it depends on no example."""
        for here in self._missing(node):
            inputs = [self._made[source.id] for source in here.inputs]
            self._made[here.id] = self._batch(here, inputs)
        return self._made[node.id]

    def all(self, node: Node) -> Node:
        """The node with a batch axis, repeated if it is the same for all examples."""
        return self._repeat(node, self.of(node))

    def _missing(self, root: Node) -> list[Node]:
        """What is to be made for root, inputs first; inputs of own derivatives are inputs too."""
        found: dict[int, Node] = {}
        stack = [root]
        while stack:
            node = stack.pop()
            if node.id not in found and node.id not in self._made:
                found[node.id] = node
                stack.extend(node.inputs)
                if node.id in self.rules:
                    stack.extend(self.rules[node.id][0])
        return [found[k] for k in sorted(found)]

    def _repeat(self, node: Node, many: Node | None) -> Node:
        if many is not None:
            return many
        where = [axis(k + 1, extent) for k, extent in enumerate(node.shape)]
        return build.reindex(node, (self.size, *node.shape), where)

    def _batch(self, node: Node, inputs: list[Node | None]) -> Node | None:
        if isinstance(node, Random):
            return self._batch_random(node, inputs)
        if all(many is None for many in inputs):
            return None
        rule = RULES.get(type(node), _batch_each)
        return rule(self, node, inputs)

    def _batch_random(self, node: Node, inputs: list[Node | None]) -> Node | None:
        if any(many is not None for many in inputs):
            raise errors.TransformError("vmap: a seed cannot differ from example to example")
        if not any(source.id in self.draws for source in ancestors(node.inputs)):
            return None  # drawn outside
        if self.randomness == "error":
            raise errors.TransformError(
                "vmap: the function draws random numbers; say whether examples share them: "
                "randomness='different' or randomness='same'"
            )
        if self.randomness == "same":
            return None
        return build.random_bits((self.size, *node.shape), *node.inputs)

    # --- index expressions ---

    def outward(self, e: Expr, shape: Shape, reads: Sequence[Node | None]) -> Expr:
        """An expression over the coordinates of one example, over those of the batch."""
        shift: dict[Expr, Expr] = {
            v: axis(k + 1, v.extent) for k, v in enumerate(coordinates(shape))
        }
        return self._read_at(index.substitute(e, shift), reads)

    def _read_at(self, e: Expr, reads: Sequence[Node | None]) -> Expr:
        """Reads of index arrays that have a batch axis look at their own example."""
        if isinstance(e, index.Sum):
            terms = [index.scale(self._read_at(atom, reads), c) for atom, c in e.terms]
            return index.total([e.const, *terms])
        if isinstance(e, Read):
            place = tuple([self._read_at(part, reads) for part in e.index])
            if reads[e.source] is not None:
                place = (index.wrap(self.coordinate), *place)
            return Read(e.source, place, e.extent)
        return index.rebuild_atom(e, lambda part: self._read_at(part, reads))

    def outward_guard(self, guard: Guard, shape: Shape, reads: Sequence[Node | None]) -> Guard:
        """A guard over the coordinates of one example, over those of the batch."""
        return tuple([Condition(self.outward(c.expr, shape, reads), c.equal) for c in guard])

    @property
    def coordinate(self) -> Expr:
        """The batch axis."""
        return axis(0, self.size) if self.size > 1 else index.ZERO

    # --- derivatives ---

    def carry(self, rules: Mapping[int, Rule]) -> None:
        """Note own derivatives of the graph of one example for the graph of the batch."""
        target = noted()
        if target is None:
            return
        self.rules.update(rules)
        for number, rule in rules.items():
            if number not in self._made:
                continue
            many = self._made[number]
            if many is None:
                target.setdefault(number, rule)
                continue
            sources = tuple([self._made.get(s.id) or s for s in rule[0]])
            # A node may be older than a source that its constructor saw through: then the rule of
            # its kind must do, since derivatives are taken from the youngest to the oldest.
            if all(source.id < many.id for source in sources):
                target.setdefault(many.id, (sources, self._pull(rule)))

    def _pull(self, rule: Rule) -> Callable[[Node], tuple[Node | None, ...]]:
        inputs, pull_one = rule

        def pull(many: Node) -> tuple[Node | None, ...]:
            one = example(many.shape[1:], many)
            self.bind(one, many)
            fresh: dict[int, Rule] = {}
            with noting(fresh):
                parts = pull_one(one)
            self.rules.update(fresh)
            made = [
                None if part is None else self._share(source, part)
                for source, part in zip(inputs, parts, strict=True)
            ]
            self.carry(fresh)
            return tuple(made)

        return pull

    def _share(self, source: Node, part: Node) -> Node:
        """The cotangent of a source: summed over examples if they share the source."""
        whole = self.all(part)
        return whole if self.of(source) is not None else build.reduce("add", whole, [0])


def _batch_map(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    assert isinstance(node, Map)
    operands = [to._repeat(*pair) for pair in zip(node.inputs, inputs, strict=True)]
    if len(node.attributes) > 1:  # a mark
        return make(Map, tuple(operands), operands[0].shape, node.dtype, *node.attributes)
    return build.apply(node.function, *operands, dtype=node.dtype)


def _batch_reindex(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    assert isinstance(node, Reindex)
    source, *reads = inputs
    where = [to.outward(e, node.shape, reads) for e in node.index]
    if source is not None:
        where = [to.coordinate, *where]
    return build.reindex(
        node.inputs[0] if source is None else source, (to.size, *node.shape), where,
        to.outward_guard(node.guard, node.shape, reads), node.fill, _either(node.inputs[1:], reads),
    )  # fmt: skip


def _either(ones: Sequence[Node], many: Sequence[Node | None]) -> list[Node]:
    return [a if b is None else b for a, b in zip(ones, many, strict=True)]


def _batch_reduce(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    assert isinstance(node, Reduce) and inputs[0] is not None
    return build.reduce(node.combine, inputs[0], [k + 1 for k in node.axes])


def _batch_scatter(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    assert isinstance(node, Scatter)
    source, *reads = inputs
    domain = node.inputs[0].shape
    where = [to.coordinate, *[to.outward(e, domain, reads) for e in node.index]]
    return build.scatter(
        node.combine, to._repeat(node.inputs[0], source), (to.size, *node.shape), where,
        to.outward_guard(node.guard, domain, reads), _either(node.inputs[1:], reads),
    )  # fmt: skip


def _batch_contract(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    assert isinstance(node, Contract)
    rows = _row_axis(node, inputs)
    if rows is not None:
        return _merge_rows(to, node, inputs, rows)
    here = axis(0, to.size)
    maps = [[to.outward(e, node.domain, ()) for e in f] for f in (node.fo, node.fa, node.fb)]
    maps[0].insert(0, here)
    for f, many in zip(maps[1:], inputs, strict=True):
        if many is not None:
            f.insert(0, here)
    a, b = _either(node.inputs, inputs)
    return build.contract(a, b, (to.size, *node.shape), (to.size, *node.domain), *maps)


def _row_axis(node: Contract, inputs: list[Node | None]) -> int | None:
    """The axis of the domain that counts rows of the one operand with examples, and of the result.

    Examples are then more rows, so that a convolution stays one, and products of vectors with a
    matrix become one product of matrices. Other products take a batch axis as it is.
    """
    if all(many is not None for many in inputs) or not node.fo:
        return None
    windows = any(not isinstance(e, index.Var) for e in (*node.fo, *node.fa, *node.fb))
    mine, other = (node.fa, node.fb) if inputs[0] is not None else (node.fb, node.fa)
    if not mine or mine[0] != node.fo[0]:
        return None
    for k, v in enumerate(coordinates(node.domain)):
        if v == mine[0]:
            elsewhere = [*mine[1:], *other, *node.fo[1:]]
            free = not any(v in index.variables(e) for e in elsewhere)
            whole = node.inputs[0 if inputs[0] is not None else 1].shape[0] == v.extent
            useful = windows or v.extent == 1
            return k if free and whole and useful and node.shape[0] == v.extent else None
    return None


def _merge_rows(to: Batching, node: Contract, inputs: list[Node | None], rows: int) -> Node:
    count = to.size * node.domain[rows]
    domain = (*node.domain[:rows], count, *node.domain[rows + 1 :])
    swap: dict[Expr, Expr] = {axis(rows, node.domain[rows]): axis(rows, count)}
    maps = [[index.substitute(e, swap) for e in f] for f in (node.fo, node.fa, node.fb)]
    a, b = (
        one if many is None else build.reshape(many, (count, *one.shape[1:]))
        for one, many in zip(node.inputs, inputs, strict=True)
    )
    made = build.contract(a, b, (count, *node.shape[1:]), domain, *maps)
    return build.reshape(made, (to.size, *node.shape))


def _batch_call(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    """Native functions take leading axes as a batch, where their operands have the same ones."""
    assert isinstance(node, Call)
    if len({one.ndim for one in node.inputs}) > 1:
        return _batch_each(to, node, inputs)
    operands = [to._repeat(*pair) for pair in zip(node.inputs, inputs, strict=True)]
    made = build.call(node.function, *operands, options=node.options)
    fits = made.shape == (to.size, *node.shape)
    return made if fits else _batch_each(to, node, inputs)


def _batch_move(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    assert isinstance(node, Move) and inputs[0] is not None
    return build.move(inputs[0], node.device)


def _batch_loop(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    """A loop over all examples: its body is batched, where it depends on them."""
    assert isinstance(node, Loop)
    body = node.body
    count = len(body.carries)
    differs = [many is not None for many in inputs]
    while True:  # what is carried may come to differ in a later turn
        inner, parameters = _batched_body(to, body.parameters, differs)
        late = [k for k in range(count) if not differs[k] and inner.of(body.carries[k]) is not None]
        if not late:
            break
        for k in late:
            differs[k] = True
    given = []
    for n, (one, many) in enumerate(zip(node.inputs, inputs, strict=True)):
        whole = to._repeat(one, many) if differs[n] else one
        if differs[n] and count <= n < count + body.sequences:
            whole = build.permute(whole, [1, 0, *range(2, whole.ndim)])
        given.append(whole)
    carries = [inner.all(y) if differs[k] else y for k, y in enumerate(body.carries)]
    stacked = _either(body.stacked, [inner.of(y) for y in body.stacked])
    inner.carry(to.rules)
    made = loop.loop(
        given, loop.LoopBody(parameters, body.sequences, carries, stacked), node.trips, node.reverse
    )
    shown = [inner.of(y) is not None for y in body.stacked]
    to._differ[made.id] = [*differs[:count], *shown]
    return made


def _batched_body(
    to: Batching, parameters: Sequence[Node], differs: Sequence[bool]
) -> tuple[Batching, list[Node]]:
    """A batching for a body, and the parameters of the batched body."""
    inner = Batching(to.size, to.randomness, to.rules, to.draws)
    made = []
    for one, many in zip(parameters, differs, strict=True):
        if many:
            whole = build.buffer(one.attributes[0], (to.size, *one.shape), one.dtype)
            inner.bind(one, whole)
            one = whole
        made.append(one)
    return inner, made


def _batch_loop_result(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    assert isinstance(node, LoopResult) and inputs[0] is not None
    made = loop.result(inputs[0], node.number)
    if not to._differ[inputs[0].id][node.number]:
        return to._repeat(made, None)
    source = node.inputs[0]
    assert isinstance(source, Loop)
    if node.number < len(source.body.carries):
        return made
    return build.permute(made, [1, 0, *range(2, made.ndim)])


def _batch_each(to: Batching, node: Node, inputs: list[Node | None]) -> Node:
    """A kind without a rule: one node per example, side by side."""
    shape = (to.size, *node.shape)
    position = build.coordinate(shape, 0)
    result: Node | None = None
    for n in range(to.size):
        operands = [
            one if many is None else _slice(many, n)
            for one, many in zip(node.inputs, inputs, strict=True)
        ]
        made = make(type(node), tuple(operands), node.shape, node.dtype, *node.attributes)
        part = build.broadcast_to(build.expand_dims(made, [0]), shape)
        result = part if result is None else build.select(position < n, result, part)
    return build.full(shape, 0, node.dtype) if result is None else result


def _slice(many: Node, n: int) -> Node:
    shape = many.shape[1:]
    return build.reindex(many, shape, [index.num(n), *coordinates(shape)])


RULES: dict[type[Node], Callable[[Batching, Node, list[Node | None]], Node]] = {
    Map: _batch_map,
    Reindex: _batch_reindex,
    Reduce: _batch_reduce,
    Scatter: _batch_scatter,
    Contract: _batch_contract,
    Call: _batch_call,
    Loop: _batch_loop,
    LoopResult: _batch_loop_result,
    Move: _batch_move,
}

__all__ = ["RANDOMNESS", "Batching", "example"]
