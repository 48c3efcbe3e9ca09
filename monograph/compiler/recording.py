"""A recording as the compiler sees it, and its expansion into the meta-operator graph.

Entries name an operator, its attributes and where its inputs come from: a result of an earlier
entry (position >= 0), a leaf (negative), a number that is a run-time slot, or nothing. Expansion
runs the operators' definitions; a backward pass differentiates what has been expanded so far.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir import build
from ..ir.check import Check, collecting
from ..ir.node import Map, Node, Slot, enter_origin, make
from ..ir.operator import Operator, Rule, noting
from ..transform.derivative import vjp
from .checks import Note
from .simplify import substitute

# The operator of a backward pass. Its attribute is the number n of roots; its inputs are n roots,
# n cotangents or None, and the leaves: the values that it differentiates for and ends at.
BACKWARD = Operator("backward", lambda *inputs: inputs[2:], ())
# A result that is known already: (what it is computed by, its contents). Derivatives go through
# the former; what they read of the result is the latter.
KNOWN = Operator("known", lambda result, contents: result, ())
# (first, turns, width): results of a loop that was recorded turn by turn, so many in each turn.
Turns = tuple[int, int, int]
_marks = itertools.count(1 << 40)  # of recordings inside others; a recording's own are positions


@dataclass(frozen=True)
class Entry:
    """One recorded call. `refs` has, per input: a position, None, or the type of a number."""

    operator: Operator
    attributes: tuple[Any, ...]
    refs: tuple[Any, ...]
    stop: bool
    results: int
    line: str = ""


@dataclass(frozen=True)
class Recording:
    """Everything a program is made of. `leaves` are (shape, dtype) of the data handed in.

    `wanted` are the result positions to produce; `writes` pairs (result, leaf) say which of them
    take the place of a leaf in memory.
    """

    entries: tuple[Entry, ...]
    leaves: tuple[Any, ...]
    slots: tuple[type, ...]
    wanted: tuple[int, ...]
    writes: tuple[tuple[int, int], ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()  # of all results, as they were recorded
    rows: tuple[tuple[int, ...], ...] = ()  # leaves alike that lie one directly behind the other


def placeholders(kinds: Sequence[Any]) -> list[Node | None]:
    """Input nodes for kinds that are a Meta (shape, dtype), a number type, or None."""
    nodes: list[Node | None] = []
    for n, kind in enumerate(kinds):
        if kind is None:
            nodes.append(None)
        elif isinstance(kind, type):
            nodes.append(build.slot(n, kind))
        else:
            nodes.append(build.buffer(n, kind.shape, kind.dtype))
    return nodes


@dataclass
class Expansion:
    """The graph of a recording while it is being expanded.

    A recording inside another is expanded on nodes of the outer graph: `given` stand for its
    leaves and `numbers` for its slots.
    """

    recording: Recording
    given: Sequence[Node] | None = None
    numbers: Sequence[Node] = ()
    results: list[Node] = field(default_factory=list)
    rules: dict[int, Rule] = field(default_factory=dict)
    leaves: list[Node] = field(default_factory=list)
    marked: set[int] = field(default_factory=set)  # results that are differentiated for
    checks: list[Check] = field(default_factory=list)  # of what the wanted results depend on
    notes: list[Note] = field(default_factory=list)  # one for each check
    known: dict[int, Node] = field(default_factory=dict)  # node id → its contents
    next_slot: int = 0
    turns: list[Turns] = field(default_factory=list)  # of loops that were recorded turn by turn

    def run(self) -> list[Node]:
        """Expand every entry; the nodes of the wanted results."""
        self.marked = _differentiated(self.recording)
        for n in range(len(self.recording.leaves)):
            if self.given is None:
                self.leaves.append(self._leaf(n))
            else:
                node = self.given[n]
                self.leaves.append(self._mark(node, -1 - n) if -1 - n in self.marked else node)
        needed = needed_entries(self.recording)
        last = _last_backward(self.recording) if self.given is None else math.inf
        with noting(self.rules):
            number = 0
            while number < len(self.recording.entries):
                number = self._advance(number, needed, last)
        if self.given is None:
            enter_origin(-1)
        wanted = [self._place(position) for position in self.recording.wanted]
        return self._with_known(wanted) if self.known else wanted

    def _leaf(self, number: int) -> Node:
        """The node of a leaf."""
        leaf = self.recording.leaves[number]
        return build.buffer(number, leaf.shape, leaf.dtype)

    def _advance(self, number: int, needed: set[int], last: float) -> int:
        """Expand the entry of this number; the number of the next one."""
        found: list[Check] = []
        entry = self.recording.entries[number]
        if self.given is None:
            enter_origin(self._recorded(number))
        with collecting(found):
            inputs = self._expand(entry, entry.stop and number < last)
        # What a derivative requires, its operator did; in a turn of a loop, of nodes of the turn.
        if found and number in needed and entry.operator is not BACKWARD:
            self._note(found, number, inputs)
        return number + 1

    def _recorded(self, number: int) -> int:
        """The number that an entry has among the recorded calls."""
        return number

    def _with_known(self, wanted: list[Node]) -> list[Node]:
        """The wanted nodes, and what is checked, computed from the contents that are known."""
        checked = [node for each in self.checks for node in (each.bad, each.value)]
        made = substitute([*wanted, *checked], self.known)
        rest = made[len(wanted) :]
        pairs = zip(rest[::2], rest[1::2], strict=True)
        self.checks = [
            replace(each, bad=bad, value=value)
            for each, (bad, value) in zip(self.checks, pairs, strict=True)
        ]
        return made[: len(wanted)]

    def _note(self, found: list[Check], number: int, inputs: Sequence[Node | None]) -> None:
        """Keep the checks of an entry, each once: equal calls have the same nodes."""
        known = {(each.bad.id, each.value.id) for each in self.checks}
        name = self.recording.entries[number].operator.name
        shown = ", ".join(described(node) for node in inputs)
        for each in found:
            if (each.bad.id, each.value.id) not in known:
                message = f"{name}: {each.message} (inputs: {shown})"
                self.checks.append(each)
                self.notes.append(Note(self._recorded(number), each.error, message))

    def _expand(self, entry: Entry, cut: bool) -> list[Node | None]:
        inputs = [self._input(ref) for ref in entry.refs]
        if entry.operator is BACKWARD:
            outputs = self._differentiate(inputs, *entry.attributes)
        elif entry.operator is KNOWN:
            result, contents = inputs
            assert result is not None and contents is not None
            if result.inputs:
                self.known[result.id] = contents  # which its derivative reads
                # Marked, so that what views it is not made a view of what it was computed from:
                # that may have other contents by now.
                result = self._mark(result, len(self.results))
                self.known[result.id] = contents
            outputs = [result]
        else:
            outputs = list(entry.operator.expand(inputs, entry.attributes))
        if cut:
            outputs = [self._cut(node) for node in outputs]
        for node in outputs:
            if len(self.results) in self.marked:
                node = self._mark(node, len(self.results))
            self.results.append(node)
        return inputs

    def _input(self, ref: Any) -> Node | None:
        if ref is None:
            return None
        if isinstance(ref, type):
            place = self.next_slot
            self.next_slot += 2 if ref is complex else 1
            if self.given is None:
                return build.slot(place, ref)
            if ref is complex:  # its two parts are numbers of the outer recording
                return build.functions.complex(*self.numbers[place : place + 2])
            return self.numbers[place]
        return self._place(ref)

    def _place(self, position: int) -> Node:
        return self.results[position] if position >= 0 else self.leaves[-position - 1]

    def _mark(self, node: Node, position: int) -> Node:
        """What is differentiated for. The number keeps equal nodes apart, also those of others."""
        number = position if self.given is None else next(_marks)
        return make(Map, (node,), node.shape, node.dtype, "mark", number)

    def _differentiate(self, inputs: Sequence[Node | None], count: int) -> list[Node]:
        roots = [node for node in inputs[:count] if node is not None]
        cotangents = [
            build.full(root.shape, 1.0, root.dtype)
            if given is None
            else build.broadcast_to(given, root.shape)
            for root, given in zip(roots, inputs[count : 2 * count], strict=True)
        ]
        wanted = [leaf for leaf in inputs[2 * count :] if leaf is not None]
        found = vjp(roots, cotangents, wanted, self.rules, through=False)
        return [
            build.full(leaf.shape, 0.0, leaf.dtype) if part is None else part
            for leaf, part in zip(wanted, found, strict=True)
        ]

    @staticmethod
    def _cut(node: Node) -> Node:
        return build.apply("detach", node) if node.dtype.is_smooth else node


def _last_backward(recording: Recording) -> int:
    """The place of the last backward pass: after it, nothing needs to be cut from derivatives."""
    places = [n for n, entry in enumerate(recording.entries) if entry.operator is BACKWARD]
    return places[-1] if places else -1


def _differentiated(recording: Recording) -> set[int]:
    """Positions that some backward pass takes derivatives with respect to."""
    found: set[int] = set()
    for entry in recording.entries:
        if entry.operator is BACKWARD:
            found.update(entry.refs[2 * entry.attributes[0] :])
    return found


def needed_entries(recording: Recording) -> set[int]:
    """Numbers of the entries that the wanted results depend on."""
    maker: list[int] = []  # result → entry
    for number, entry in enumerate(recording.entries):
        maker += [number] * entry.results
    found: set[int] = set()
    stack = [maker[position] for position in recording.wanted if position >= 0]
    while stack:
        number = stack.pop()
        if number not in found:
            found.add(number)
            refs = recording.entries[number].refs
            stack += [maker[ref] for ref in refs if ref.__class__ is int and ref >= 0]
    return found


def described(node: Node | None) -> str:
    """An input of a call, as errors show it."""
    if node is None or isinstance(node, Slot):
        return "None" if node is None else node.type.__name__
    return f"{node.dtype.name}{list(node.shape)}"
