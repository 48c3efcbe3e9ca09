"""Products out of the turns: before a loop what depends on no carry, behind it what none needs.

x·W of all turns at once is one product of matrices instead of one a turn, and so is the gradient of
W: the sum over turns of products of what is stacked. `transform/batching.py` gives the body's nodes
the axis of turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir import build
from ..ir.loop import Inputs, LoopBody, loop, next_number, parameter, result
from ..ir.node import (
    Contract,
    Loop,
    LoopResult,
    Map,
    Node,
    Random,
    Reduce,
    Reindex,
    ancestors,
    axis,
)
from ..ir.scalar import TABLE
from ..transform.batching import Batching, example
from .simplify import substitute

Results = Mapping[int, Node]


class _Turns:
    """A loop from outside: its body's values for all turns at once.

    Parameters that all turns share get other names first: a loop around this one may use the same
    ones for something else.
    """

    def __init__(self, node: Loop) -> None:
        self.node, self.body = node, node.body
        self.batching = Batching(node.trips, "same", {}, frozenset())
        inputs = Inputs(node)
        for one, whole in zip(self.body.elements, inputs.sequences, strict=True):
            self.batching.bind(one, whole)
        self._names = {p.id: example(p.shape, p) for p in self.body.shared}
        pairs = zip(self.body.shared, inputs.shared, strict=True)
        self._shared = {self._names[p.id].id: x for p, x in pairs}

    def _named(self, node: Node) -> Node:
        return substitute([node], self._names)[0]

    def _outside(self, node: Node) -> Node:
        return substitute([node], self._shared)[0]

    def bind(self, node: Node, stack: Node) -> None:
        """The value of all turns is that stack."""
        self.batching.bind(self._named(node), stack)

    def shared(self, node: Node) -> Node:
        """A value that is the same in all turns."""
        return self._outside(self._named(node))

    def all(self, node: Node) -> Node:
        """The value of all turns, one behind the other."""
        return self._outside(self.batching.all(self._named(node)))

    def total(self, node: Node) -> Node:
        """The sum of the value over all turns."""
        return self._outside(self._total(self._named(node)))

    def _total(self, node: Node) -> Node:
        """Sums of sums part by part, and views of sums as sums of views."""
        result: Node | None = None
        stack: list[tuple[Node, tuple[Reindex, ...]]] = [(node, ())]
        while stack:
            here, views = stack.pop()
            if isinstance(here, Map) and here.function == "add":
                stack += [(source, views) for source in here.inputs]
            elif isinstance(here, Reindex) and _is_view(here):
                stack.append((here.inputs[0], (here, *views)))
            else:
                part = self._total_part(here)
                for view in views:
                    part = build.reindex(part, view.shape, view.index)
                result = part if result is None else result + part
        assert result is not None
        return result

    def _total_part(self, node: Node) -> Node:
        if isinstance(node, Contract):
            return self._total_product(node)
        if isinstance(node, Reduce) and node.combine == "add":
            many = self.batching.all(node.inputs[0])
            return build.reduce("add", many, [0, *[k + 1 for k in node.axes]])
        return build.reduce("add", self.batching.all(node), [0])

    def _total_product(self, node: Contract) -> Node:
        """The contraction in which turns are one more axis to sum over."""
        batching = self.batching
        here = axis(0, self.node.trips)
        fo, fa, fb = (
            [batching.outward(e, node.domain, ()) for e in f] for f in (node.fo, node.fa, node.fb)
        )
        operands = []
        for f, source in zip((fa, fb), node.inputs, strict=True):
            whole = batching.of(source)
            operands.append(source if whole is None else whole)
            if whole is not None:
                f.insert(0, here)
        a, b = operands
        return build.contract(a, b, node.shape, (self.node.trips, *node.domain), fo, fa, fb)


def _is_view(node: Reindex) -> bool:
    return not node.guard and len(node.inputs) == 1


# --- before the loop ------------------------------------------------------------------------------


def hoist(node: Loop, used: list[int]) -> Results:
    """Products, and dear values that all turns share, that depend on no carry."""
    body = node.body
    chosen = _chosen(body)
    if not chosen:
        return {n: result(node, n) for n in used}
    turns = _Turns(node)
    number = next_number(body.parameters)
    elements, shared, replaced = [], [], {}
    for n, (here, varies) in enumerate(chosen):
        fresh = replaced[here.id] = parameter(number + n, here.shape, here.dtype)
        if varies:
            elements.append((fresh, turns.all(here)))
        else:
            shared.append((fresh, turns.shared(here)))
    outputs = substitute(body.outputs, replaced)
    count = len(body.carries)
    place = count + body.sequences
    parameters = [*body.parameters[:place], *[p for p, _ in elements], *body.parameters[place:],
                  *[p for p, _ in shared]]  # fmt: skip
    inputs = [*node.inputs[:place], *[x for _, x in elements], *node.inputs[place:],
              *[x for _, x in shared]]  # fmt: skip
    fresh_body = LoopBody(
        parameters, body.sequences + len(elements), outputs[:count], outputs[count:]
    )
    made = loop(inputs, fresh_body, node.trips, node.reverse)
    return {n: result(made, n) for n in used}


def _chosen(body: LoopBody) -> list[tuple[Node, bool]]:
    """What to compute before the loop, and whether it varies from turn to turn."""
    carried = {p.id for p in body.carried}
    elements = {p.id for p in body.elements}
    stays: set[int] = set()  # ids of what depends on a carry, or on another loop, or draws
    varies: set[int] = set()
    dear: set[int] = set()  # ids of what all turns share and takes some work
    users: dict[int, list[Node]] = {}
    order = ancestors(body.outputs)
    for here in order:
        inside = {n.id for n in here.inputs}
        for source in here.inputs:
            users.setdefault(source.id, []).append(here)
        if here.id in carried or inside & stays or isinstance(here, (Random, Loop, LoopResult)):
            stays.add(here.id)
        elif here.id in elements or inside & varies:
            varies.add(here.id)
        elif inside & dear or _is_dear(here):
            dear.add(here.id)
    asked = {node.id for node in body.outputs}
    chosen: list[tuple[Node, bool]] = []
    for here in order:
        if here.id in stays:
            continue
        if here.id in varies:
            if isinstance(here, Contract):
                chosen.append((here, True))
        elif here.id in dear:  # the last of such values
            mine = users.get(here.id, [])
            last = here.id in asked or any(n.id in stays or n.id in varies for n in mine)
            if last and not isinstance(here, Reindex) or last and not _is_dear(here.inputs[0]):
                chosen.append((here, False))
    return chosen


def _is_dear(node: Node) -> bool:
    if isinstance(node, Map):
        return TABLE[node.function].dear
    return isinstance(node, (Contract, Reduce))


# --- behind the loop ------------------------------------------------------------------------------


def sink(node: Loop, used: list[int]) -> Results:
    """Sums over turns, and products that are only stacked, from stacks of what they are made of."""
    sinking = _Sinking(node, used)
    return sinking.results()


class _Sinking:
    """A loop whose last products are moved behind it."""

    def __init__(self, node: Loop, used: list[int]) -> None:
        self.node, self.body, self.used = node, node.body, used
        self.count = len(self.body.carries)
        self.users: dict[int, list[Node]] = {}
        for here in ancestors(self.body.outputs):
            for source in here.inputs:
                self.users.setdefault(source.id, []).append(here)
        self.asked: dict[int, int] = {}  # id → how often it is an output
        for y in self.body.outputs:
            self.asked[y.id] = self.asked.get(y.id, 0) + 1
        self.stacked = {self.body.outputs[n].id for n in used if n >= self.count}
        self.added: dict[int, Node] = {}  # what is stacked in place of what sinks
        free = {p.id for p in (*self.body.elements, *self.body.shared)}
        self.at_hand = free | self.stacked

    def results(self) -> Results:
        """The results that are used, and the loop without what was moved."""
        sums = {k: part for k in self.used if k < self.count and (part := self._summed(k))}
        stacks = [n for n in self.used if n >= self.count and self._only_stacked(n)]
        moved: dict[int, Node] = {}
        for products in (True, False):  # sums that need no stacks of their own come last
            for k, part in sums.items():
                leaves = _operands(part)
                if (_has_product(part) if products else self._free(leaves)) and k not in moved:
                    self._add(leaves)
                    moved[k] = part
        for n in stacks:
            y = self.body.outputs[n]
            leaves = _operands(y)
            if self._free(leaves) or self._pays(y, leaves):
                self._add(leaves)
                moved[n] = y
        if not moved:
            return {n: result(self.node, n) for n in self.used}
        return self._assembled(moved)

    def _assembled(self, moved: Mapping[int, Node]) -> Results:
        node, body = self.node, self.body
        more = LoopBody(
            body.parameters, body.sequences, body.carries, [*body.stacked, *self.added.values()]
        )
        made = loop(node.inputs, more, node.trips, node.reverse)
        turns = _Turns(node)
        first = len(body.outputs)
        places = {y: first + n for n, y in enumerate(self.added)}
        for n in range(self.count, first):
            places.setdefault(body.outputs[n].id, n)
        inputs = {p.id for p in (*body.elements, *body.shared)}
        for part in moved.values():
            for leaf in _operands(part):
                if leaf.id not in inputs and leaf.id in places:
                    turns.bind(leaf, result(made, places[leaf.id]))
        found: dict[int, Node] = {}
        for n in self.used:
            if n not in moved:
                found[n] = result(made, n)
            elif n < self.count:
                total = turns.total(moved[n])
                start = node.inputs[n]
                found[n] = total if build.constant_value(start) == 0 else start + total
            else:
                found[n] = turns.all(moved[n])
        return found

    def _summed(self, k: int) -> Node | None:
        """The other term of a carry that each turn only adds to."""
        held, after = self.body.carried[k], self.body.carries[k]
        if not isinstance(after, Map) or after.function != "add" or self.asked[after.id] != 1:
            return None
        if self.users.get(after.id) or held not in after.inputs:
            return None
        if len(self.users[held.id]) != 1 or self.asked.get(held.id):
            return None
        a, b = after.inputs
        part = b if a is held else a
        return None if part is held else part

    def _only_stacked(self, n: int) -> bool:
        y = self.body.outputs[n]
        if self.users.get(y.id) or self.body.outputs[: self.count].count(y):
            return False
        return _has_product(y)

    def _free(self, leaves: Sequence[Node]) -> bool:
        """Whether all of these are at hand outside, without another stack."""
        return all(leaf.id in self.at_hand or leaf.id in self.added for leaf in leaves)

    def _pays(self, y: Node, leaves: Sequence[Node]) -> bool:
        new = [n for n in leaves if n.id not in self.at_hand and n.id not in self.added]
        return sum(n.size for n in new) <= 2 * y.size

    def _add(self, leaves: Sequence[Node]) -> None:
        for leaf in leaves:
            if leaf.id not in self.at_hand:
                self.added.setdefault(leaf.id, leaf)


def _passes(node: Node) -> bool:
    """Whether a sum over turns of the node is one of its inputs' sums: views and sums of parts."""
    if isinstance(node, Reindex):
        return _is_view(node)
    return isinstance(node, Map) and node.function == "add"


def _combines(node: Node) -> bool:
    """Whether the node is worth more behind the loop: it takes in the axis of turns."""
    return isinstance(node, Contract) or (isinstance(node, Reduce) and node.combine == "add")


def _operands(node: Node) -> list[Node]:
    """What must be stacked to compute a node behind the loop."""
    found: dict[int, Node] = {}
    stack = [node]
    while stack:
        here = stack.pop()
        if here.id in found or _is_constant(here):
            continue
        if _combines(here):
            for source in here.inputs:
                base = _base(source)
                if not _is_constant(base):
                    found[base.id] = base
        elif _passes(here):
            stack.extend(here.inputs)
        else:
            found[here.id] = here
    return list(found.values())


def _base(node: Node) -> Node:
    """What a node is a view of."""
    while isinstance(node, Reindex) and _is_view(node):
        node = node.inputs[0]
    return node


def _is_constant(node: Node) -> bool:
    return build.constant_value(node) is not None


def _has_product(node: Node) -> bool:
    """Whether a product stands among what is computed behind the loop."""
    stack = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, Contract):
            return True
        if _passes(here):
            stack.extend(here.inputs)
    return False
