"""The usual call, written out: of tensors and numbers of which nothing special is known.

A program makes a hundred calls a millisecond, and of what one takes a third would be the calls of
our own functions. So what `record._call_values`, `record.record_call`, `appending.append` and
`storage.promises` do one after the other stands here once more, for calls that need nothing else.
Any other call is left to them, before anything was done about it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from .ir.operator import Operator
from .lines import inside
from .recorder import Record, Recorder
from .signatures import known as known_signatures
from .storage import UNRECORDED, Value, promises

handles: set[type] = set()  # the classes of tensors whose calls nothing takes over
_NUMBERS = frozenset({float, int, bool, type(None)})
LEAST, MOST = -(1 << 63), (1 << 63) - 1  # what a slot holds of an int
_NEAREST = 3  # frames between this one and a user's: `record.call`, and the operator's function
_frame = sys._getframe
_record = partial(object.__new__, Record)
_value = partial(object.__new__, Value)


def usual(
    recorder: Recorder, operator: Operator, inputs: Sequence[Any], attributes: tuple[Any, ...]
) -> Value | list[Value] | None:
    """The result of a usual call, or its results, recorded; None of another one."""
    if recorder.outer is not None or recorder.attention:
        return None
    epoch = recorder.epoch
    key: list[Any] = [operator, attributes]
    values: list[Any] = []
    needs_grad = detached = False
    for given in inputs:
        kind = given.__class__
        if kind in handles:
            storage = given._storage
            value = storage.value
            memory = value.memory
            if memory is not None and memory.exposed:
                return None
            view = given._view
            if view is None:
                if value.requires_grad:
                    needs_grad = True
            elif view.version == storage.version:
                value = view.value
                memory = value.memory
                if value.requires_grad:
                    needs_grad = True
            elif view.version == UNRECORDED:  # it is the whole, where no derivative is asked for
                if value.requires_grad:
                    detached = True
            else:
                return None
            if memory is None and value.epoch != epoch:
                return None
            key.append(value.meta)
            values.append(value)
        elif kind in _NUMBERS:
            if kind is int and not LEAST <= given <= MOST:
                return None
            key.append(kind)
            values.append(given)
        else:
            return None
    signature = known_signatures.get(tuple(key))
    if signature is None or signature.absent:
        return None
    stop = needs_grad and not recorder.grad
    if detached:
        if needs_grad and not stop:
            return None
        stop = True

    made = _record()
    made.signature = signature
    made.inputs = values
    made.stop = stop
    made.walk = 0
    made.hooks = None
    made.born = epoch
    made.place = len(recorder.records)
    made.marked = 0
    made.code = None
    made.offset = 0
    frame: Any = _frame(_NEAREST)
    while frame is not None:
        if not inside[frame.f_code.co_filename]:
            made.code = frame.f_code
            made.offset = frame.f_lasti
            break
        frame = frame.f_back

    part: list[Any] = [-signature.number if stop else signature.number]
    for value in values:
        kind = value.__class__
        if kind is Value:
            if value.epoch != epoch:
                leaves = recorder.leaves
                leaves.append(value)
                value.epoch = epoch
                value.position = -len(leaves)
                whole = value.memory.part_of
                if whole is not None:
                    recorder.shared.add(id(whole))
                    recorder.pieces.append(value)
            part.append(value.position)
        elif value is None:
            part.append(None)
        else:
            recorder.slots.append(value)
            part.append(kind)
    recorder.key += part
    recorder.records.append(made)

    tracked = needs_grad and not stop and operator.smooth
    results = recorder.results
    if len(signature.outputs) > 1:
        several = promises(signature.outputs, made, epoch, len(results))
        results += several
        for value in several:
            if tracked and value.meta.smooth:
                value.requires_grad, value.tape = True, made
        return several
    result = _value()
    result.meta = meta = signature.outputs[0]
    result.record = made
    result.index = 0
    result.epoch = epoch
    result.position = len(results)
    result.version = 0
    result.replaced = 0
    result.needed = 0
    result.memory = None
    result.leaf = None
    result.owner = None
    result.replaces = None
    result.gradient_of = None
    result.viewed = None
    if tracked and meta.smooth:
        result.requires_grad = True
        result.tape = made
    else:
        result.requires_grad = False
        result.tape = None
    results.append(result)
    return result
