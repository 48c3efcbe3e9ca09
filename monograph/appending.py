"""Putting calls and values into the pending recording, for the first time or again.

A record reads values. Those of the same recording have a place there; data becomes a leaf. What a
flush has not computed although somebody needs it now, and what lies on the tape between a root and
its leaves, is recorded again: the same record with the same value as its result.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from . import errors, history
from .compiler.recording import BACKWARD
from .recorder import ARGUMENT, Record, Recorder, current, new_record
from .residuals import Residuals
from .signatures import known_signature
from .storage import Value, promises

NUMBERS = frozenset({float, int, bool, complex})

residuals = Residuals()


def append(recorder: Recorder, record: Record) -> list[Value]:
    """Put a record at the end of the pending list; its results, not yet known."""
    epoch, leaves, slots = recorder.epoch, recorder.leaves, recorder.slots
    first = len(slots)
    signature = record.signature
    part: list[Any] = [-signature.number if record.stop else signature.number]  # of the key
    for value in record.inputs:
        kind = value.__class__
        if kind is Value:
            if value.epoch == epoch:
                part.append(value.position)
                continue
            memory = value.memory
            if memory is not None and memory.part_of is None and recorder.outer is None:
                leaves.append(value)  # `enter`, without the call
                value.epoch = epoch
                value.position = place = -len(leaves)
                part.append(place)
            else:
                first = _enter_before(recorder, value, first)
                part.append(value.position)
        elif value is None:
            part.append(None)
        elif kind is complex:
            slots += (value.real, value.imag)
            part.append(complex)
        elif kind in NUMBERS:
            slots.append(value)
            part.append(kind)
        else:
            # The record keeps the number, so that recording it again draws no other one.
            record.inputs[len(part) - 1] = number = value.get()
            recorder.live_slots.append((len(slots), value))
            slots.append(number)
            part.append(value.kind)
    recorder.key += part
    recorder.records.append(record)
    results = recorder.results
    outputs = promises(signature.outputs, record, epoch, len(results))
    results += outputs
    return outputs


def _enter_before(recorder: Recorder, value: Value, first: int) -> int:
    """`enter`, when the slots from `first` on are those of a call that is not recorded yet.

    Calls that are recorded again for the value come before it, and so must their slots. Returns
    where its own are then.
    """
    slots, live = recorder.slots, recorder.live_slots
    own, own_live = slots[first:], [each for each in live if each[0] >= first]
    del slots[first:]
    del live[len(live) - len(own_live) :]
    enter(recorder, value)
    more = len(slots) - first
    slots += own
    live += [(place + more, number) for place, number in own_live]
    return first + more


def enter(recorder: Recorder, value: Value) -> None:
    """Give a value from outside this recording a place among the leaves."""
    if recorder.outer is not None:
        recorder.saved.append((value, value.epoch, value.position, value.record))
    elif value.memory is None:
        residuals.note_use(value)
        _record_again(recorder, value)
        return
    if value.memory is not None and value.memory.part_of is not None:
        recorder.shared.add(id(value.memory.part_of))
        recorder.pieces.append(value)
    recorder.leaves.append(value)
    value.epoch = recorder.epoch
    value.position = -len(recorder.leaves)


def _record_again(recorder: Recorder, value: Value) -> None:
    """A result that was not computed when it could have been: record its history again."""
    stack = [value]
    while stack:
        here = stack[-1]
        if here.epoch == recorder.epoch:
            stack.pop()
            continue
        if here.ready:
            enter(recorder, here)
            stack.pop()
            continue
        if here.record is None:
            raise here.missing()
        missing = [
            v for v in here.record.inputs if isinstance(v, Value) and v.epoch != recorder.epoch
        ]
        if missing:
            stack.extend(missing)
            continue
        stack.pop()
        _adopt(recorder, here)


def _adopt(recorder: Recorder, value: Value, again: dict[int, list[Value]] | None = None) -> None:
    """Append the record of `value` once more, with `value` itself as the result.

    `again` are results, by the id of their record, of records that stand there once more already.
    """
    record = value.record
    if record is ARGUMENT:
        raise errors.TransformError(
            "a tensor of a function under vmap or scan is used outside of it: return it instead"
        )
    if recorder.outer is not None and value.epoch != recorder.epoch:
        recorder.saved.append((value, value.epoch, value.position, record))
    if record.signature.operator is BACKWARD:  # it differentiates what stands in the recording
        count = record.signature.attributes[0]
        record_tape(record.inputs[:count], record.inputs[2 * count :])
    fresh = None if again is None else again.get(id(record))
    if fresh is None:
        fresh = append(recorder, record)
        if again is not None:
            again[id(record)] = fresh
    at = fresh[value.index].position
    if value.epoch == recorder.epoch and value.position >= 0:
        recorder.results[value.position] = fresh[value.index]  # nobody holds the old place now
    value.epoch = recorder.epoch
    value.position = at
    recorder.results[at] = value


def record_tape(roots: Sequence[Value], wanted: Sequence[Value]) -> None:
    """Make sure that all that lies between roots and `wanted` stands in the pending recording."""
    record_values(*history.as_called(history.between(roots, wanted)))


def record_values(order: Sequence[Value], beside: Container[int] = ()) -> None:
    """Record those of the values, inputs before results, that do not stand in what is pending.

    `beside` are ids of those that no derivative passes through.
    """
    recorder = current.recorder
    again: dict[int, list[Value]] = {}
    for value in order:
        if value.meta.absent:
            continue
        if id(value) in beside:
            if value.epoch != recorder.epoch:
                enter(recorder, value)
            continue
        pending = value.epoch == recorder.epoch and value.position >= 0
        if not pending or history.is_behind(value):
            residuals.note(value)
            value.record = value.tape
            _adopt(recorder, value, again)
            if value.ready and not recorder.hold:  # a replay would take the contents for constant
                _adopt_known(recorder, value)


def _adopt_known(recorder: Recorder, value: Value) -> None:
    """Say that the value just recorded again is known, so that it is not computed again."""
    contents = Value(value.meta)
    contents.memory = value.memory
    computed = Value(value.meta, value.record, value.index, value.epoch, value.position)
    recorder.results[value.position] = computed
    (made,) = append(recorder, new_record(known_signature(value.meta), [computed, contents], False))
    value.position = made.position
    recorder.results[made.position] = value
    recorder.known.append(value)
