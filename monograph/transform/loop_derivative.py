"""The derivative of a Loop: a Loop that goes the other way.

It carries the cotangents of what the loop carried, takes the cotangents of stacked results as
sequences, and stacks the cotangents of sequences. What all turns share gets a sum over the turns,
which is carried too. The body of the derivative computes again what it needs of the loop's own
turn, from the values carried into that turn, which the loop is asked to stack. Whether some of it
is kept instead is the compiler's choice (`compiler/loops.py`). All is made of the same kinds of
nodes, so derivatives can be taken again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..ir import build
from ..ir.loop import Inputs, LoopBody, loop, next_number, parameter, result
from ..ir.node import Loop, Node, ancestors
from ..ir.operator import Rule
from .dependence import dependents, sources_of

Cotangents = tuple[Node | None, ...]
# (outputs, their cotangents, what for, rules) → cotangents: `vjp`, for the body.
Pull = Callable[
    [Sequence[Node], Sequence[Node], Sequence[Node], Mapping[int, Rule]], list[Node | None]
]


def pull_loop(
    node: Loop, cotangents: Mapping[int, Node], needed: Sequence[bool], rules: Mapping[int, Rule],
    pull: Pull,
) -> Cotangents:  # fmt: skip
    """The cotangents of the inputs that are `needed`, from those of the results by number."""
    return _Reversed(node, cotangents, needed, rules).parts(pull)


class _Reversed:
    """One loop on its way to its derivative."""

    def __init__(
        self, node: Loop, cotangents: Mapping[int, Node], needed: Sequence[bool],
        rules: Mapping[int, Rule],
    ) -> None:  # fmt: skip
        self.node, self.body, self.rules = node, node.body, rules
        self.cotangents = cotangents
        self.count = len(self.body.carries)
        self.order = sources_of(self.body.outputs, rules)
        smooth = [p.dtype.is_smooth for p in self.body.parameters]
        self.needed = [a and b for a, b in zip(needed, smooth, strict=True)]
        self.carries = self._carries()

    def _depends(self, wanted: Iterable[Node]) -> set[int]:
        return dependents(self.order, list(wanted), self.rules)

    def _carries(self) -> list[int]:
        """The carries that take part: they depend on what is needed, and something hangs on them.

        Both spread from turn to turn until nothing is new.
        """
        body, count = self.body, self.count
        smooth = [k for k in range(count) if body.carries[k].dtype.is_smooth]
        active = {k for k in range(count) if self.needed[k]}
        rest = [p for p, n in zip(body.parameters, self.needed, strict=True) if n]
        while True:
            depends = self._depends([*rest, *[body.parameters[k] for k in active]])
            more = {k for k in smooth if body.carries[k].id in depends} - active
            if not more:
                break
            active |= more
        fed = {k for k in smooth if k in self.cotangents}
        shown = [body.stacked[n - count] for n in self.cotangents if n >= count]
        while True:
            heads = {node.id for node in shown} | {body.carries[k].id for k in fed}
            reach = {
                k for k in smooth if heads & self._depends([body.parameters[k]])
            }  # what flows out through k's parameter
            if reach <= fed:
                break
            fed |= reach
        return sorted(active & fed)

    def parts(self, pull: Pull) -> Cotangents:
        """A cotangent per input, None where nothing flows."""
        body, count = self.body, self.count
        number = next_number(body.parameters)
        stacks = sorted(n for n in self.cotangents if n >= count)
        heads = [*[body.carries[k] for k in self.carries], *[body.outputs[n] for n in stacks]]
        given = [parameter(number + n, head.shape, head.dtype) for n, head in enumerate(heads)]
        number += len(given)
        wanted = [
            n for n in range(len(body.parameters))
            if (n in self.carries if n < count else self.needed[n])
        ]  # fmt: skip
        targets = [body.parameters[n] for n in wanted]
        found = dict(zip(wanted, pull(heads, given, targets, self.rules), strict=True))
        carried = list(zip(self.carries, given[: len(self.carries)], strict=True))
        after = [_or_zeros(found[k], p) for k, p in carried]
        initial = [_or_zeros(self.cotangents.get(k), p) for k, p in carried]
        sums: list[int] = []  # of what all turns share
        parameters = [p for _, p in carried]
        for n in wanted:
            part = found[n]
            if n >= count + body.sequences and part is not None:
                held = parameter(number + len(sums), part.shape, part.dtype)
                sums.append(n)
                parameters.append(held)
                initial.append(build.full(part.shape, 0, part.dtype))
                after.append(held + part)
        elements = [n for n in wanted if count <= n < count + body.sequences]
        shown = [n for n in elements if found[n] is not None]
        stacked = [part for n in shown if (part := found[n]) is not None]
        dys = [(p, self.cotangents[n]) for p, n in zip(given[len(carried) :], stacks, strict=True)]
        back = self._assemble(parameters, initial, after, stacked, dys)
        parts: list[Node | None] = [None] * len(body.parameters)
        for place, n in enumerate([*self.carries, *sums, *shown]):
            if self.needed[n]:
                parts[n] = result(back, place)
        return tuple(parts)

    def _assemble(
        self, parameters: Sequence[Node], initial: Sequence[Node], after: Sequence[Node],
        stacked: Sequence[Node], dys: Sequence[tuple[Node, Node]],
    ) -> Loop:  # fmt: skip
        """The reversed loop, with what it reads of the loop itself."""
        node, body = self.node, self.body
        inside = {n.id for n in ancestors([*after, *stacked])}
        inputs = Inputs(node)
        before = [p for p in body.carried if p.id in inside]
        extended = node
        if before:  # what was carried into each turn
            asked = LoopBody(
                body.parameters, body.sequences, body.carries, [*body.stacked, *before]
            )
            extended = loop(node.inputs, asked, node.trips, node.reverse)
        first = len(body.carries) + len(body.stacked)
        sequences = [(p, result(extended, first + n)) for n, p in enumerate(before)]
        pairs = zip(body.elements, inputs.sequences, strict=True)
        sequences += [(p, xs) for p, xs in pairs if p.id in inside]
        sequences += [(p, d) for p, d in dys if p.id in inside]
        pairs = zip(body.shared, inputs.shared, strict=True)
        shared = [(p, x) for p, x in pairs if p.id in inside]
        rest = [*sequences, *shared]
        made = LoopBody([*parameters, *[p for p, _ in rest]], len(sequences), after, stacked)
        return loop([*initial, *[x for _, x in rest]], made, node.trips, not node.reverse)


def _or_zeros(part: Node | None, like: Node) -> Node:
    return build.full(like.shape, 0, like.dtype) if part is None else part
