"""A backward pass over the results of many flushes, with one program for each of them.

The turns of an episode whose actions were read were flushed one by one. Their derivatives are taken
flush by flush too, the latest first, so that an episode of another length runs the same programs
another number of times. What a flush recorded, and the gradients that have reached it, make a
`Segment`: a recording that is formed and run by itself. Nothing of it goes through the recorder, as
nobody sees what lies between its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from .. import appending, launches, pending, record, statistics
from ..compiler.recording import BACKWARD
from ..config import config
from ..recorder import ARGUMENT, Record, Recorder, current, new_record
from ..signatures import backward_signature, known_signature, signature_of
from ..storage import Meta, Value
from ..tensor import Tensor, from_value

REASON = "backward pass over many flushes"
Tapes = dict[Record, list[Value]]  # with those of their results that were met


class Unfit(Exception):
    """The pass cannot be split at flushes: it is one program then."""


def accumulate(
    roots: Sequence[Value], cotangents: Sequence[Tensor | None], leaves: Sequence[Value],
    retain: bool,
) -> list[Value] | None:  # fmt: skip
    """The gradients of the leaves; None if the pass must be one program."""
    recorder = current.recorder
    recorder.passing += 1
    try:
        return _gradients(recorder, roots, cotangents, leaves, retain)
    except Unfit:
        return None
    finally:
        recorder.passing -= 1


def _gradients(
    recorder: Recorder, roots: Sequence[Value], cotangents: Sequence[Tensor | None],
    leaves: Sequence[Value], retain: bool,
) -> list[Value]:  # fmt: skip
    tapes = _walk(roots)
    order = sorted(tapes, key=_time)
    gradients: dict[int, Value | None] = {}  # by the id of a value; None is ones
    for root, given in zip(roots, cotangents, strict=True):
        if id(root) in gradients:
            raise Unfit
        gradients[id(root)] = None if given is None else record.value_of(given)
    if order[-1].born == recorder.epoch:
        _pending(_latest(order), tapes, gradients)
    if recorder.records:
        record.flush(REASON)
    if recorder.owner.failure is not None:
        record.wait()
    while order:
        latest = _latest(order)
        _differentiate(recorder, latest, tapes, gradients)
        if not retain:
            _release(latest, tapes)
    return [_known(gradients[id(leaf)]) for leaf in leaves]


def _walk(roots: Sequence[Value]) -> Tapes:
    """Every record between the roots and leaves."""
    found: Tapes = {}
    stack = list(roots)
    while stack:
        value = stack.pop()
        tape = value.tape
        if tape is None:
            continue
        results = found.get(tape)
        if results is not None:
            if not any([value is other for other in results]):
                results.append(value)
            continue
        found[tape] = [value]
        if not tape.born or tape.signature.operator is BACKWARD or value.meta.absent:
            raise Unfit
        when = _time(tape)
        for v in tape.inputs:
            if v.__class__ is Value and v.requires_grad and v.tape is not None:
                if _time(v.tape) >= when:  # of another thread
                    raise Unfit
                stack.append(v)
    return found


_time = attrgetter("born", "place")


def _latest(order: list[Record]) -> list[Record]:
    """Take the records of the latest flush, in the order in which they were recorded."""
    born = order[-1].born
    begin = len(order) - 1
    while begin and order[begin - 1].born == born:
        begin -= 1
    latest = order[begin:]
    del order[begin:]
    return latest


def _border(latest: Sequence[Record]) -> list[Value]:
    """Values that the records of one flush were given, and that derivatives go on to."""
    born = latest[0].born
    found: dict[int, Value] = {}
    for tape in latest:
        for v in tape.inputs:
            if v.__class__ is Value and v.requires_grad:
                if v.tape is None or v.tape.born != born:
                    found[id(v)] = v
    return list(found.values())


def _pending(latest: list[Record], tapes: Tapes, gradients: dict[int, Value | None]) -> None:
    """Record the derivative of what is pending, and run all that is."""
    from .engine import record_pass

    recorder = current.recorder
    for tape in latest:
        for value in tapes[tape]:
            if value.epoch != recorder.epoch or value.position < 0:
                raise Unfit
            if any([_is_behind(v, value) for v in tape.inputs]):
                raise Unfit
    sources = [v for tape in latest for v in tapes[tape] if id(v) in gradients]
    given = [gradients.pop(id(v)) for v in sources]
    targets = _border(latest)
    parts = record_pass(
        sources, [None if g is None else from_value(g) for g in given], targets, False
    )
    held = []  # what has no tensor would not be computed
    for target, part in zip(targets, parts, strict=True):
        tensor = from_value(part)
        if id(target) in gradients:
            tensor = from_value(_known(gradients[id(target)])) + tensor
        held.append(tensor)
        gradients[id(target)] = tensor._value()
    record.flush(REASON)


def _is_behind(source: Any, value: Value) -> bool:
    """See `history.is_behind`."""
    return (
        source.__class__ is Value
        and source.epoch == value.epoch
        and source.position > value.position
    )


def _known(gradient: Value | None) -> Value:
    if gradient is None:
        raise Unfit
    return gradient


def _release(latest: Sequence[Record], tapes: Tapes) -> None:
    """Forget the contents of results that were kept for this pass."""
    for tape in latest:
        for value in tapes[tape]:
            owner = value.owner() if value.owner is not None else None
            if owner is None or owner.value is not value:
                value.memory = None


# --- one flush ------------------------------------------------------------------------------------


class Segment:
    """A recording in the making, in the terms of `Recorder`: what one flush recorded, once more."""

    __slots__ = ("records", "key", "leaves", "slots", "places", "first", "count")

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.key: list[Any] = []
        self.leaves: list[Value] = []
        self.slots: list[Any] = []
        self.places: dict[int, int] = {}  # by the id of a value: its position
        self.first: dict[int, int] = {}  # by the id of a record: the position of its first result
        self.count = 0

    def add(self, tape: Record, results: Sequence[Value]) -> None:
        """Record a call once more; of its results, what is known is not computed again."""
        self._append(tape)
        places, leaves, first = self.places, self.leaves, self.first[id(tape)]
        for value in results:
            place = first + value.index
            if value.memory is None:
                appending.residuals.note(value)
                places[id(value)] = place
                continue
            leaves.append(value)
            known = _known_record(value.meta)
            self.records.append(known)  # `entry`, without the call
            self.key += (known.signature.number, place, -len(leaves))
            places[id(value)] = self.count
            self.count += 1

    def entry(self, made: Record, refs: Sequence[Any]) -> int:
        """Append a record whose inputs stand at these places; the position of its first result."""
        self.records.append(made)
        self.key.append(made.signature.number)
        self.key += refs
        place = self.count
        self.count = place + len(made.signature.outputs)
        return place

    def place(self, value: Value) -> int:
        """Where a value stands: among the results, or (negative) among the leaves."""
        found = self.places.get(id(value))
        if found is None:
            if value.memory is None:
                self._again(value)
                return self.places[id(value)]
            self.leaves.append(value)
            found = self.places[id(value)] = -len(self.leaves)
        return found

    def _append(self, tape: Record) -> None:
        number = tape.signature.number
        part: list[Any] = [-number if tape.stop else number]
        places, slots = self.places, []  # those of what is recorded again come before its own
        for given in tape.inputs:
            kind = given.__class__
            if kind is Value:
                found = places.get(id(given))
                part.append(self.place(given) if found is None else found)
            elif given is None:
                part.append(None)
            elif kind is complex:
                slots += [given.real, given.imag]
                part.append(complex)
            else:
                slots.append(given)
                part.append(kind)
        self.slots += slots
        self.records.append(tape)
        self.key += part
        self.first[id(tape)] = self.count
        self.count += len(tape.signature.outputs)

    def _again(self, value: Value) -> None:
        """Record what computes a value that was not kept and has no derivative."""
        stack = [value]
        while stack:
            here = stack[-1]
            if id(here) in self.places:
                stack.pop()
                continue
            made = here.record
            if here.memory is not None or (made is not None and id(made) in self.first):
                stack.pop()
                if here.memory is not None:
                    self.place(here)
                else:
                    self.places[id(here)] = self.first[id(made)] + here.index
                continue
            if made is None:
                raise here.missing()
            if made is ARGUMENT or made.signature.operator is BACKWARD:
                raise Unfit
            missing = [v for v in made.inputs if v.__class__ is Value and id(v) not in self.places]
            if missing:
                stack += missing
            else:
                appending.residuals.note_use(here)
                self._append(made)


_known_records: dict[Meta, Record] = {}


def _known_record(meta: Meta) -> Record:
    """A record that says that a result is known: one for all of a kind, as it names no values."""
    found = _known_records.get(meta)
    if found is None:
        found = _known_records[meta] = new_record(known_signature(meta), [None, None], False)
    return found


def _differentiate(
    recorder: Recorder, latest: Sequence[Record], tapes: Tapes, gradients: dict[int, Value | None]
) -> None:
    """From the gradients at the results of one flush to those of what it was given."""
    from ..ops.math import add

    made = Segment()
    sources: list[Value] = []
    for tape in latest:
        results = tapes[tape]
        made.add(tape, results)
        for value in results:
            if id(value) in gradients:
                sources.append(value)
    given = [gradients.pop(id(value)) for value in sources]
    targets = _border(latest)
    inputs = [*sources, *given, *targets]
    signature = backward_signature(
        tuple([None if v is None else v.meta for v in inputs]), len(sources)
    )
    refs = [None if v is None else made.place(v) for v in inputs]
    first = made.entry(new_record(signature, inputs, False), refs)
    wanted, metas = [], []
    for n, target in enumerate(targets):
        place, meta = first + n, signature.outputs[n]
        held = gradients.get(id(target))
        if held is not None:
            summed = signature_of(add.operator, (), [held.meta, meta])
            place = made.entry(new_record(summed, [None, None], False), (made.place(held), place))
            meta = summed.outputs[0]
        wanted.append(place)
        metas.append(meta)
    for target, part in zip(targets, _run(recorder, made, wanted, metas), strict=True):
        gradients[id(target)] = part


def _run(recorder: Recorder, made: Segment, wanted: list[int], metas: list[Meta]) -> list[Value]:
    """Run a segment: the values that are wanted, as `record.flush` would find them."""
    statistics.note_flush(REASON, len(made.records))
    chosen = tuple(sorted(wanted))
    key = (tuple(made.key), config.backend, config.onednn, config.bounds_checks)
    executable: Any = record.programs.find(key, chosen, ())
    if executable is None:
        form = pending.form(made, chosen, ())
        executable = record.programs.make(key, form, config.backend)
    lines = [(each.code, each.offset) for each in made.records] if record.observer else []
    if record.observer is not None:
        record.observer.replay(lines)
    outcomes = dict(zip(executable.outputs, executable.run(made.leaves, made.slots), strict=True))
    values = [Value(meta) for meta in metas]
    for value, place in zip(values, wanted, strict=True):
        value.memory = outcomes[place]
    owner = recorder.owner
    if executable.watched or owner.launches or owner.failure is not None:
        launch = launches.Replayed(executable, launches.lines_of(executable.checks, made.records))
        launch.values = values
        launches.begin(owner, launch)
    return values
