"""The derivative of one flush as a recording of its own, formed from the tape.

What was recorded then is recorded once more, with what is known of it as data, a backward entry
behind it and sums with gradients that others have brought. Nothing of it goes through the recorder,
as nobody sees what lies between its ends. The next flush of the same key, reached by a pass in the
same places, has a segment of the same `Form`: then only its values are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import appending
from ..compiler.recording import BACKWARD
from ..recorder import ARGUMENT, Record, new_record
from ..signatures import backward_signature, known_signature, signature_of
from ..storage import Meta, Value

FORMS = 1 << 10  # that are remembered at most
# How to find a value: the number of a step, and of its input; then, as often as the value was made
# by a step that is recorded again, that of the step's input. Behind `RESULT` the numbers of a step
# and of its result, behind `GIVEN` and `HELD` that of a source or target whose gradient it is.
Path = tuple[int, ...]
RESULT, GIVEN, HELD = -1, -2, -3


class Unfit(Exception):
    """The pass cannot be split at flushes: it is one program then."""


class Part:
    """The steps of one flush that a pass goes over, in their order, with results that it met.

    `sources` are results whose gradients are `given`, `targets` what derivatives go on to, and
    `held` the gradients that others have brought these.
    """

    __slots__ = ("steps", "results", "sources", "given", "targets", "held", "name")

    def __init__(
        self, steps: list[Record], tapes: dict[Record, list[Value]],
        gradients: dict[int, Value | None], of: Any,
    ) -> None:  # fmt: skip
        self.steps = steps
        self.results = [tapes[step] for step in steps]
        self.sources: list[Value] = []
        targets: dict[int, Value] = {}
        name = [id(of)]  # of the form: equal where that is
        born = steps[0].born
        for number, step in enumerate(steps):
            name.append(step.place)
            for value in self.results[number]:
                reached = id(value) in gradients
                name.append(-1 - 4 * value.index - 2 * (value.memory is None) - reached)
                if reached:
                    self.sources.append(value)
            for place, v in enumerate(step.inputs):
                if v.__class__ is Value and v.requires_grad and id(v) not in targets:
                    if v.tape is None or v.tape.born != born:
                        targets[id(v)] = v
                        name.append(place)
        self.given = [gradients.pop(id(value)) for value in self.sources]
        self.targets = list(targets.values())
        self.held: list[Value | None] = []
        for each in targets:
            held = gradients.get(each)
            if held is None and each in gradients:
                raise Unfit  # a root among them, whose gradient is ones
            self.held.append(held)
        name += [held is None for held in (*self.held, *self.given)]
        self.name = tuple(name)

    def find(self, path: Path) -> Any:
        """What stands at the end of a path."""
        first, *rest = path
        if first == RESULT:
            return self.results[rest[0]][rest[1]]
        if first == GIVEN:
            return self.given[rest[0]]
        if first == HELD:
            return self.held[rest[0]]
        found = self.steps[first].inputs[rest[0]]
        for place in rest[1:]:
            found = found.record.inputs[place]
        return found

    def find_all(self, paths: Sequence[Path]) -> list[Any]:
        """What stands at the ends of many paths, most of which are a step's own input."""
        inputs = [step.inputs for step in self.steps]
        return [
            inputs[path[0]][path[1]] if len(path) == 2 and path[0] >= 0 else self.find(path)
            for path in paths
        ]

    def lines(self, form: Form) -> list[Any]:
        """For each entry of a segment a record that has the line of its call, if it has one."""
        found: list[Any] = []
        for path in form.calls:
            if path is None:
                found.append(_UNSEEN)
            else:
                found.append(self.steps[path[0]] if len(path) == 1 else self.find(path).record)
        return found


@dataclass(frozen=True, slots=True)
class Form:
    """A segment without its values: the key of its program, and where its leaves are found."""

    of: Any  # the key of the flush
    key: tuple[Any, ...]
    wanted: list[int]  # the gradients of the targets, among the results
    metas: list[Meta]
    leaves: list[Path]
    slots: list[Path]
    calls: list[Path | None]  # that the entries were recorded at


_forms: dict[tuple[int, ...], Form] = {}


class _Unseen:
    """In place of the record of an entry that no line of the user's has recorded."""

    code, offset = None, 0


_UNSEEN = _Unseen()


class Segment:
    """A recording in the making, in the terms of `Recorder`: what one flush recorded, once more."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.key: list[Any] = []
        self.leaves: list[Value] = []
        self.slots: list[Any] = []
        self._places: dict[int, int] = {}  # by the id of a value: its position
        self._first: dict[int, int] = {}  # by the id of a record: the position of its first result
        self._count = 0
        self._paths: dict[int, Path] = {}  # by the id of a value
        self.leaf_paths: list[Path] = []
        self.slot_paths: list[Path] = []
        self.calls: list[Path | None] = []
        self.born = 0
        self.lasts = True  # whether another flush of the same key has a segment of the same form

    def add(self, number: int, step: Record, results: Sequence[Value]) -> None:
        """Record a step once more; of its results, what is known is not computed again."""
        self.born = step.born
        self._append(step, (number,))
        first = self._first[id(step)]
        for n, value in enumerate(results):
            place = first + value.index
            if value.memory is None:
                appending.residuals.note(value)
                self._places[id(value)] = place
                continue
            leaf = self._leaf(value, (RESULT, number, n))
            self._places[id(value)] = self.entry(_known_record(value.meta), (place, leaf))

    def entry(self, made: Record, refs: Sequence[Any]) -> int:
        """Append a record whose inputs stand at these places; the position of its first result."""
        self.records.append(made)
        self.calls.append(None)
        self.key.append(made.signature.number)
        self.key += refs
        place = self._count
        self._count = place + len(made.signature.outputs)
        return place

    def place(self, value: Value, path: Path) -> int:
        """Where a value stands: among the results, or (negative) among the leaves."""
        found = self._places.get(id(value))
        if found is None:
            if value.memory is None:
                self._paths[id(value)] = path
                self._again(value)
                return self._places[id(value)]
            found = self._places[id(value)] = self._leaf(value, path)
        return found

    def gradient(self, value: Value | None, path: Path) -> int | None:
        """Where a gradient stands that the pass has brought."""
        if value is None:
            return None
        if id(value) in self._places:  # by chance: the user gave it twice, or it is an operand
            self.lasts = False
        return self.place(value, path)

    def _leaf(self, value: Value, path: Path) -> int:
        self.leaves.append(value)
        self.leaf_paths.append(path)
        return -len(self.leaves)

    def _append(self, step: Record, path: Path) -> None:
        """Record a step; with the number of an input behind it, the path leads to that input."""
        number = step.signature.number
        part: list[Any] = [-number if step.stop else number]
        slots: list[Any] = []  # those of what is recorded again come before its own
        paths: list[Path] = []
        for place, given in enumerate(step.inputs):
            kind = given.__class__
            if kind is Value:
                part.append(self.place(given, (*path, place)))
            elif given is None:
                part.append(None)
            else:
                part.append(kind)
                slots += [given.real, given.imag] if kind is complex else [given]
                paths.append((*path, place))
                self.lasts = self.lasts and kind is not complex
        self.slots += slots
        self.slot_paths += paths
        self.records.append(step)
        self.calls.append(path)
        self.key += part
        self._first[id(step)] = self._count
        self._count += len(step.signature.outputs)

    def _again(self, value: Value) -> None:
        """Record what computes a value that was not kept and has no derivative."""
        stack = [value]
        while stack:
            here = stack[-1]
            if id(here) in self._places:
                stack.pop()
                continue
            made, path = here.record, self._paths[id(here)]
            if here.memory is not None:
                self.place(here, path)
            elif made is not None and id(made) in self._first:
                self._places[id(here)] = self._first[id(made)] + here.index
            elif made is None:
                raise here.missing()
            elif made is ARGUMENT or made.signature.operator is BACKWARD:
                raise Unfit
            else:
                self.lasts = self.lasts and made.born == self.born
                missing = [
                    (place, v) for place, v in enumerate(made.inputs)
                    if v.__class__ is Value and id(v) not in self._places
                ]  # fmt: skip
                for place, v in missing:
                    self._paths[id(v)] = (*path, place)
                    stack.append(v)
                if not missing:
                    appending.residuals.note_use(here)
                    self._append(made, path)


_known_records: dict[Meta, Record] = {}


def _known_record(meta: Meta) -> Record:
    """A record that says that a result is known: one for all of a kind, as it names no values."""
    found = _known_records.get(meta)
    if found is None:
        found = _known_records[meta] = new_record(known_signature(meta), [None, None], False)
    return found


def form_of(part: Part, of: Any) -> tuple[Form, list[Value], list[Any]]:
    """The form of a part's derivative, its leaves and slots; `of` is the key of the flush."""
    form = _forms.get(part.name)
    if form is not None and form.of is of:
        leaves = part.find_all(form.leaves)
        if None not in [leaf.memory for leaf in leaves]:
            return form, leaves, part.find_all(form.slots)
    form, made = formed(part, of)
    if made.lasts and of is not None:
        if len(_forms) >= FORMS:
            _forms.clear()
        _forms[part.name] = form
    return form, made.leaves, made.slots


def formed(part: Part, of: Any) -> tuple[Form, Segment]:
    """The derivative of a part, put together from its steps."""
    from ..ops.math import add

    made = Segment()
    for number, step in enumerate(part.steps):
        made.add(number, step, part.results[number])
    inputs = [*part.sources, *part.given, *part.targets]
    kinds = tuple([None if v is None else v.meta for v in inputs])
    signature = backward_signature(kinds, len(part.sources))
    refs: list[int | None] = [made.place(v, ()) for v in part.sources]
    refs += [made.gradient(v, (GIVEN, n)) for n, v in enumerate(part.given)]
    refs += [made.place(v, ()) for v in part.targets]
    first = made.entry(new_record(signature, inputs, False), refs)
    wanted, metas = [], []
    for n, held in enumerate(part.held):
        place, meta = first + n, signature.outputs[n]
        if held is not None:
            summed = signature_of(add.operator, (), [held.meta, meta])
            refs = [made.gradient(held, (HELD, n)), place]
            place = made.entry(new_record(summed, [None, None], False), refs)
            meta = summed.outputs[0]
        wanted.append(place)
        metas.append(meta)
    paths = made.leaf_paths, made.slot_paths, made.calls
    return Form(of, tuple(made.key), wanted, metas, *paths), made
