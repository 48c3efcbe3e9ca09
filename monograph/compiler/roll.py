"""Rolling: the turns of a loop that Python ran are expanded as one Loop.

`periods.py` finds the loops of a recording. Of each, one turn is expanded on parameters, as the
body of a `Loop`; its derivative, and how it is run, are those of any loop. What turns read from
outside, each something else, must be pieces of one array in even steps: the steps of a sequence, or
what another loop has stacked. So nothing is copied but small vectors that each turn made anew, and
layers with weights of their own stay as they are. What is read later of the results is stacked, or
carried to the end where only the last turn's is read. Turns that one kernel can compute, point by
point, stay as they are too.

Every turn has numbers of its own, which are filled in at each run. In the body they are slots with
numbers beyond all others, so that they are weak as any number is. Once derivatives are taken they
become elements of a sequence: the place in the table of slots moves with the turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir import build, index, loop
from ..ir.check import collecting
from ..ir.extent import Extent, hint
from ..ir.node import (
    Call,
    Contract,
    Loop,
    Node,
    Reduce,
    Reindex,
    Scatter,
    Slot,
    ancestors,
    axis,
    coordinates,
    enter_origin,
    make,
)
from ..ir.pieces import in_steps, joined
from .known import Plain, without_known
from .loops import Results, each_loop
from .periods import Run, Source, find_runs
from .recording import Entry, Expansion, Recording
from .simplify import substitute

POINTWISE = 2000  # nodes of all turns, up to which one kernel computes them if it can


class _NotALoop(Exception):
    """The turns of a run are expanded one after the other."""


@dataclass
class RolledExpansion(Expansion):
    """An expansion in which loops that Python ran are Loops."""

    runs: dict[int, Run] = field(default_factory=dict)
    in_row: dict[int, tuple[tuple[int, ...], int]] = field(default_factory=dict)  # leaf → place
    numbered: dict[int, Node] = field(default_factory=dict)  # slot of a body → those of all turns
    plain: Plain | None = None  # where something is known and there are loops

    def run(self) -> list[Node]:
        """Expand every entry; the nodes of the wanted results."""
        plain = without_known(self.recording)
        self.runs = find_runs(self.recording if plain is None else plain.recording)
        if plain is not None and self.runs:
            self.plain, self.recording = plain, plain.recording
        self.in_row = {n: (row, k) for row in self.recording.rows for k, n in enumerate(row)}
        wanted = super().run()
        if self.plain is not None:
            self.results = [self.results[position] for position in self.plain.positions]
        if not self.numbered:
            return wanted
        checked = [node for each in self.checks for node in (each.bad, each.value)]
        made = _bind([*wanted, *checked], self.numbered)
        rest = iter(made[len(wanted) :])
        self.checks = [replace(each, bad=next(rest), value=next(rest)) for each in self.checks]
        return made[: len(wanted)]

    def _leaf(self, number: int) -> Node:
        """A leaf that lies in a row is a piece of that row, which begins where its first does."""
        if not self.runs or number not in self.in_row:
            return super()._leaf(number)
        row, place = self.in_row[number]
        first = self.recording.leaves[row[0]]
        whole = build.buffer(row[0], (len(row), *first.shape), first.dtype)
        return _element(whole, place)

    def _recorded(self, number: int) -> int:
        return number if self.plain is None else self.plain.numbers[number]

    def _advance(self, number: int, needed: set[int], last: float) -> int:
        run = self.runs.get(number)
        if run is None:
            return self._advance_one(number, needed, last)
        enter_origin(self._recorded(number))
        held = len(self.results), self.next_slot
        try:
            _Turns(self, run, last).expand()
        except _NotALoop:
            del self.results[held[0] :]
            self.next_slot = held[1]
            return self._advance_one(number, needed, last)
        if self.plain is None:
            self.turns.append((run.first, run.turns, run.width))
        return run.stop

    def _advance_one(self, number: int, needed: set[int], last: float) -> int:
        first = len(self.results)
        following = super()._advance(number, needed, last)
        if self.plain is not None:
            for position in range(first, len(self.results)):
                self._note_known(position, self.plain.contents.get(position))
        return following

    def _note_known(self, position: int, contents: int | None) -> None:
        node = self.results[position]
        if position in self.marked:
            node = node.inputs[0]
        if contents is not None and node.inputs:
            self.known[node.id] = self._place(contents)


class _Turns:
    """One run on its way to a Loop."""

    def __init__(self, outer: RolledExpansion, run: Run, last: float) -> None:
        self.outer, self.run = outer, run
        self.cut_until = last
        self.entries = outer.recording.entries[run.start : run.start + run.period]
        self.firsts = [0]  # results of a turn before each of its entries
        for entry in self.entries:
            self.firsts.append(self.firsts[-1] + entry.results)
        self.makers = [k for k, entry in enumerate(self.entries) for _ in range(entry.results)]
        self.carried: dict[Any, Node] = {}  # by place and initial position: what it begins with
        self.sequences: dict[Any, Node] = {}
        self.shared: dict[Any, Node] = {}
        self.slots = [0]  # numbers of a turn before each of its entries
        for entry in self.entries:
            self.slots.append(self.slots[-1] + sum(isinstance(ref, type) for ref in entry.refs))

    def expand(self) -> None:
        """Add the results of all turns to those of the expansion."""
        outer, run = self.outer, self.run
        if run.unread and any(isinstance(n, Extent) for x in outer.leaves for n in x.shape):
            raise _NotALoop  # the shape of what is not expanded is not known
        nothing: Any = None
        outer.results += [nothing] * (run.turns * run.width)
        self._expand_before()
        turn = self._gather()
        ends, stacks = self._used()
        written = self._series(ends, stacks)
        carries = [place for place, _ in self.carried]
        more = [place for place in sorted(ends) if place not in carries]
        wanted = [turn.position[place] for place in (*carries, *more, *stacks)]
        sub = Expansion(turn.recording(wanted), turn.given, turn.numbers)
        outputs = sub.run()
        self._require(outputs, turn)
        count = len(carries) + len(more)
        self._stand_in(turn, sub)
        made = self._loop(turn, sub, outputs, count)
        for number, place in enumerate((*carries, *more)):
            if place in ends:
                self._give(place, run.turns - 1, loop.result(made, number))
        for number, place in enumerate(stacks):
            stack = loop.result(made, count + number)
            for n in stacks[place]:
                self._give(place, n, _element(stack, n))
        for k, place in written.items():
            stack = loop.result(made, count + list(stacks).index(place))
            self._write(k, stack)
        self._note(sub, turn, made, count + len(stacks))
        outer.rules.update(sub.rules)
        self._number(turn.numbers)

    def _loop(self, turn: _Turn, sub: Expansion, outputs: Sequence[Node], count: int) -> Loop:
        """The loop: `count` of the outputs are carried, the others and what is checked stacked.

        What is carried only to be read in the end begins with nothing.
        """
        first = len(self.carried)
        last = outputs[first:count]
        initial = [build.full(y.shape, 0, y.dtype) for y in last]
        number = len(turn.given)
        held = [loop.parameter(number + n, y.shape, y.dtype) for n, y in enumerate(last)]
        parameters = [*turn.given[:first], *held, *turn.given[first:]]
        wrong = [node for each in sub.checks for node in (each.bad, each.value)]
        stacked = [*outputs[count:], *wrong]
        body = loop.LoopBody(parameters, len(self.sequences), outputs[:count], stacked)
        inputs = [*self.carried.values(), *initial]
        inputs += [*self.sequences.values(), *self.shared.values()]
        return loop.loop(inputs, body, self.run.turns)

    def _stand_in(self, turn: _Turn, sub: Expansion) -> None:
        """What nobody reads has at least its shape."""
        for place, position in turn.position.items():
            for n in range(self.run.turns):
                self._give(place, n, sub.results[position])

    def _give(self, place: int, turn: int, node: Node) -> None:
        self.outer.results[self.run.first + turn * self.run.width + place] = node

    def _expand_before(self) -> None:
        """Views of what is there before the loop, of each turn."""
        outer, run = self.outer, self.run
        for turn in range(run.turns):
            for k in sorted(run.before):
                number = run.start + turn * run.period + k
                entry = outer.recording.entries[number]
                inputs = [outer._input(ref) for ref in entry.refs]
                ignored: list[Any] = []
                with collecting(ignored):
                    outputs = list(entry.operator.expand(inputs, entry.attributes))
                if ignored:
                    raise _NotALoop
                if entry.stop and number < self.cut_until:
                    outputs = [outer._cut(node) for node in outputs]
                for n, node in enumerate(outputs):
                    self._give(self.firsts[k] + n, turn, node)

    def _gather(self) -> _Turn:
        """One turn as a recording of its own."""
        run = self.run
        inside = run.inside
        inputs = [[self._key(source) for source in run.sources[k]] for k in inside]
        leaf = {key: -1 - n for n, key in enumerate([*self.carried, *self.sequences, *self.shared])}
        turn = _Turn()
        for node in self.carried.values():
            turn.take(node.shape, node)
        for node in self.sequences.values():
            turn.take(node.shape[1:], node)
        for node in self.shared.values():
            turn.take(node.shape, node)
        for k, keys in zip(inside, inputs, strict=True):
            refs: list[Any] = []
            place = self.outer.next_slot + self.slots[k]
            for key in keys:
                if isinstance(key, type):
                    turn.numbers.append(build.slot(loop.PARAMETERS + place, key))
                    place += 1
                if isinstance(key, tuple):
                    key = leaf[key]
                elif isinstance(key, int):
                    key = turn.position[key]
                refs.append(key)
            entry = self.entries[k]
            stop = entry.stop and run.start + k < self.cut_until
            for n in range(entry.results):
                turn.position[self.firsts[k] + n] = len(turn.position)
            turn.entries.append(replace(entry, refs=tuple(refs), stop=stop))
            turn.numbered.append(self.outer._recorded(run.start + k))
        return turn

    def _key(self, source: Any) -> Any:
        """What names an input of the turn: a place, a key of one of the tables, a type, None."""
        if not isinstance(source, Source):
            return source
        place, positions = source.place, source.positions
        if source.kind == "own" and self.makers[place] not in self.run.before:
            return place
        if source.kind == "carry":
            self.carried.setdefault((place, positions), self.outer._place(positions[0]))
            return place, positions
        if source.kind == "shared":
            self.shared.setdefault((-1, positions), self.outer._place(positions[0]))
            return -1, positions
        if source.kind == "own":  # taken before the loop
            first, width = self.run.first, self.run.width
            positions = tuple([first + t * width + place for t in range(self.run.turns)])
        key = (-1, positions)
        if key not in self.sequences and key not in self.shared:
            pieces = [self.outer._place(position) for position in positions]
            if all(piece is pieces[0] for piece in pieces):
                self.shared[key] = pieces[0]
            else:
                found = in_steps(pieces) or joined(pieces)
                if found is None:
                    raise _NotALoop
                self.sequences[key] = found
        return key

    def _used(self) -> tuple[set[int], dict[int, list[int]]]:
        """Places whose last value is read behind the loop; and those of which others are too."""
        run, recording = self.run, self.outer.recording
        low, high = run.first, run.first + run.turns * run.width
        read = {ref for ref in recording.wanted if low <= ref < high}
        for entry in recording.entries[run.stop :]:
            read.update([r for r in entry.refs if r.__class__ is int and low <= r < high])
        turns: dict[int, list[int]] = {}
        for position in sorted(read):
            turn, place = divmod(position - low, run.width)
            if self.makers[place] not in run.before:
                turns.setdefault(place, []).append(turn)
        ends = {place for place, found in turns.items() if found == [run.turns - 1]}
        return ends, {place: found for place, found in turns.items() if place not in ends}

    def _series(self, ends: set[int], stacks: dict[int, list[int]]) -> dict[int, int]:
        """Of each entry behind the loop, the place of what it takes from the turns, stacked."""
        found: dict[int, int] = {}
        for k in sorted(self.run.series):
            if self.firsts[k] in stacks:
                raise _NotALoop  # what an earlier turn made of it is read
            ends.discard(self.firsts[k])
            source = self.run.sources[k][1]
            if self.makers[source.place] not in self.run.inside:
                raise _NotALoop
            found[k] = source.place
            stacks.setdefault(source.place, [])
        return found

    def _write(self, k: int, stack: Node) -> None:
        """The result of an entry behind the loop, of all turns at once."""
        outer, run = self.outer, self.run
        calls = outer.recording.entries[run.start + k : run.stop : run.period]
        operator = calls[0].operator
        assert operator.series is not None
        base = outer._place(run.sources[k][0].positions[0])
        made = operator.series(base, stack, [call.attributes for call in calls])
        if made is None:
            raise _NotALoop
        if calls[0].stop and run.start + k < self.cut_until:
            made = outer._cut(made)
        for turn in range(run.turns):
            self._give(self.firsts[k], turn, made)

    def _require(self, outputs: Sequence[Node], turn: _Turn) -> None:
        """What is carried stays what it is, and turns are no part of one pass over memory."""
        for before, after in zip(self.carried.values(), outputs, strict=False):
            if before.shape != after.shape or before.dtype is not after.dtype:
                raise _NotALoop
        nodes = ancestors(outputs)
        if turn.numbers and any(isinstance(node, Loop) for node in nodes):
            raise _NotALoop  # the numbers of a turn are in no loop within
        if any(_has_windows(node) for node in nodes):
            raise _NotALoop  # convolutions gain more from layouts and epilogues, which loops lack
        if len(nodes) * self.run.turns <= POINTWISE:
            if _is_pointwise(nodes, turn.given[: len(self.carried)]):
                raise _NotALoop

    def _note(self, sub: Expansion, turn: _Turn, made: Loop, first: int) -> None:
        """What is wrong in any turn is said of the first."""
        for n, (each, note) in enumerate(zip(sub.checks, sub.notes, strict=True)):
            bad, value = (loop.result(made, first + 2 * n + k) for k in range(2))
            self.outer.checks.append(replace(each, bad=bad, value=value))
            self.outer.notes.append(replace(note, entry=turn.numbered[note.entry]))

    def _number(self, numbers: Sequence[Node]) -> None:
        """Note where the numbers of all turns stand."""
        width, turns = self.slots[-1], self.run.turns
        for node in numbers:
            assert isinstance(node, Slot)
            first, count = node.number - loop.PARAMETERS, (turns - 1) * width + 1
            table = make(Slot, (), (count,), node.dtype, first, node.type)
            every = build.reindex(table, (turns,), [axis(0, turns) * width])
            self.outer.numbered[node.id] = every
        self.outer.next_slot += turns * width


@dataclass
class _Turn:
    """A turn as a recording: its entries, the parameters for its leaves, and its numbers."""

    given: list[Node] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    numbers: list[Node] = field(default_factory=list)
    position: dict[int, int] = field(default_factory=dict)  # place in a turn → position here
    numbered: list[int] = field(default_factory=list)  # entry here → its number in the recording

    def take(self, shape: tuple[int, ...], like: Node) -> None:
        """Add a parameter."""
        self.given.append(loop.parameter(len(self.given), shape, like.dtype))

    def recording(self, wanted: Sequence[int]) -> Recording:
        """The turn in the compiler's terms."""
        kinds = tuple([node.type for node in self.numbers if isinstance(node, Slot)])
        return Recording(tuple(self.entries), tuple(self.given), kinds, tuple(wanted))


def _is_pointwise(nodes: Sequence[Node], carried: Sequence[Node]) -> bool:
    """Whether turns follow from one another point by point: one kernel makes all of them."""
    depends = {node.id for node in carried}
    for node in nodes:
        if isinstance(node, (Reduce, Contract, Scatter, Call, Loop)):
            return False
        if any(source.id in depends for source in node.inputs):
            depends.add(node.id)
            if isinstance(node, Reindex) and hint(node.inputs[0].size) >= hint(node.size):
                return False  # what was carried is read elsewhere
    return True


def _has_windows(node: Node) -> bool:
    """Whether a node is a contraction that reads at sums of coordinates."""
    if not isinstance(node, Contract):
        return False
    places = (*node.fo, *node.fa, *node.fb)
    return not all(isinstance(place, index.Var) or not index.variables(place) for place in places)


def _element(stack: Node, turn: int) -> Node:
    shape = stack.shape[1:]
    return build.reindex(stack, shape, [index.num(turn), *coordinates(shape)])


def _bind(outputs: Sequence[Node], numbered: dict[int, Node]) -> list[Node]:
    """The graph in which the numbers of turns are elements of sequences."""

    def change(node: Loop, used: list[int]) -> Results:
        body = node.body
        found = [n for n in ancestors(body.outputs) if n.id in numbered]
        if found:
            node = _with_numbers(node, found, [numbered[n.id] for n in found])
        return {n: loop.result(node, n) for n in used}

    return each_loop(outputs, change)


def _with_numbers(node: Loop, slots: Sequence[Node], tables: Iterable[Node]) -> Loop:
    body = node.body
    first = loop.next_number(body.parameters)
    fresh = [loop.parameter(first + n, (), slot.dtype) for n, slot in enumerate(slots)]
    replaced = {slot.id: own for slot, own in zip(slots, fresh, strict=True)}
    outputs = substitute(body.outputs, replaced)
    count = len(body.carries)
    place = count + body.sequences
    parameters = [*body.parameters[:place], *fresh, *body.parameters[place:]]
    inputs = [*node.inputs[:place], *tables, *node.inputs[place:]]
    made = loop.LoopBody(parameters, body.sequences + len(fresh), outputs[:count], outputs[count:])
    return loop.loop(inputs, made, node.trips, node.reverse)
