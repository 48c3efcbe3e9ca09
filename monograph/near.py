"""Reads of what lies a call or two behind known data, without a flush.

`if mask.any():` and `int(draw < chance)` ask for a number that follows from data that is known by
one small exact call. All else that is pending has nothing to do with it and stays pending, so that
a loop that looks at its data is cut into fewer programs. Only calls whose results are exact are
computed here, comparisons, counts, indices and views: the program that they stand in computes them
again, and must find the same. Most were recorded last, to be read, and are taken off the recording,
so that a program does not depend on how often a loop has looked at its data.
"""

from __future__ import annotations

import ctypes
import operator
import threading
from contextvars import Context, copy_context
from functools import partial
from typing import Any

import numpy as np

from .config import config
from .recorder import Record, Recorder, Signature
from .storage import Memory, Value

CALLS = 4  # behind known data
ELEMENTS = 1 << 12  # that they read, altogether
FAR = 1 << 12  # the length of a key from which on nothing is taken off it: finding out takes longer

_calls: dict[int, Any] = {}  # `calls.Call` by the number of a signature; None if there is none


def is_near(recorder: Recorder, value: Value) -> list[Record] | None:
    """The calls that compute a pending value from known data, if they are few and exact."""
    if value.tape is not None or value.replaces is not None or recorder.hold:
        return None
    if config.backend != "cpu" or not config.tier0_limit:
        return None
    order: list[Record] = []
    if _gather(value, recorder.epoch, order, ELEMENTS, CALLS) < 0:
        return None
    return order


def _gather(value: Value, epoch: int, order: list[Record], left: int, depth: int) -> int:
    """Put the calls that a value needs into order; how many elements are left, or -1."""
    made = value.record
    if value.epoch != epoch or made.__class__ is not Record or not depth or len(order) == CALLS:
        return -1
    if made in order:
        return left
    if not _may_be_exact(made.signature):
        return -1
    for given in made.inputs:
        if given.__class__ is not Value:
            continue
        if given.memory is None:
            left = _gather(given, epoch, order, left, depth - 1)
        else:
            left -= given.meta.size
        if left < 0:
            return -1
    if not _is_exact(made.signature):
        return -1
    order.append(made)
    return left if len(order) <= CALLS else -1


def _may_be_exact(signature: Signature) -> bool:
    """Whether a call rounds nothing: all that is known before its function is put together."""
    return signature.operator.view or not any([meta.smooth for meta in signature.outputs])


def _is_exact(signature: Signature) -> bool:
    """Whether NumPy's results are those of kernels to the bit."""
    number = signature.number
    if number not in _calls:
        _calls[number] = _call_of(signature)
    return _calls[number] is not None


def _call_of(signature: Signature) -> Any:
    from .backends import calls  # at the first need: programs that read nothing do without

    made = calls.call_of(signature.operator, signature.attributes, signature.inputs)
    return None if made is None or made.groups else made  # what may fail is checked by a program


def compute(value: Value, order: list[Record]) -> None:
    """Give a value its contents; whatever was launched has finished."""
    if len(order) == 1 and value.meta.size == 1:
        answer = _compared(order[0])
        if answer is not None:
            value.memory = Memory(np.full(value.meta.shape, answer))
            value.record = None
            return
    found: dict[Record, list[Any]] = {}
    for made in order:
        call = _calls[made.signature.number]
        given = [_contents(made.inputs[n], found) for n in call.inputs]
        found[made] = _without_warnings(call.call, given)
    value.memory = Memory(np.array(found[order[-1]][value.index], order="C"))
    value.record = None


_COMPARISONS = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def _compared(made: Record) -> bool | None:
    """How two known numbers compare, as they mostly do in a condition; None of anything else.

    Python compares them as NumPy does, once they are of one dtype.
    """
    compare = _COMPARISONS.get(made.signature.operator.name)
    if compare is None:
        return None
    a, b = made.inputs
    if b.__class__ is not Value or a.__class__ is not Value:
        return None if a.__class__ is not Value else _compared_with(compare, a, b)
    if a.meta.dtype is not b.meta.dtype:
        return None
    return bool(compare(a.number(), b.number()))


def _compared_with(compare: Any, a: Value, b: Any) -> bool | None:
    """How a known number compares with one of Python's, which takes its dtype."""
    dtype = a.meta.dtype
    if dtype.name == "float32":
        return bool(compare(a.number(), ctypes.c_float(b).value))
    same = dtype.name == "float64" or (dtype.name == "int64" and b.__class__ is int)
    return bool(compare(a.number(), b)) if same else None


def take_back(recorder: Recorder) -> None:
    """Take calls off the end of the recording whose results were read, and are known."""
    while recorder.records and len(recorder.key) < FAR:
        made, value = recorder.records[-1], recorder.results[-1]
        if value.memory is None or value.tape is not None or len(made.signature.outputs) > 1:
            return
        if value.record is not None:
            return  # it was known before it was recorded
        _take_last(recorder, made, value)


def _take_last(recorder: Recorder, made: Record, value: Value) -> None:
    """Make the recording what it was before its last call."""
    inputs, leaves = made.inputs, recorder.leaves
    start = len(recorder.key) - len(inputs) - 1
    recorder.records.pop()
    while leaves and _is_only_read_by(made, leaves[-1], recorder, start):
        leaf = leaves.pop()
        leaf.epoch = 0
        if recorder.pieces and recorder.pieces[-1] is leaf:
            recorder.pieces.pop()
    recorder.results.pop()
    value.epoch = 0
    del recorder.key[start:]
    count = len(recorder.slots)
    for given in inputs:
        if given.__class__ is not Value and given is not None:
            count -= 2 if given.__class__ is complex else 1
    del recorder.slots[count:]
    while recorder.live_slots and recorder.live_slots[-1][0] >= count:
        recorder.live_slots.pop()


def _is_only_read_by(made: Record, leaf: Value, recorder: Recorder, start: int) -> bool:
    """Whether nothing but the last call reads a leaf; `start` is where it stands in the key.

    Places in the key stand beside numbers of signatures, so what looks as if it was read before is
    looked for among the inputs.
    """
    for given in made.inputs:
        if given is leaf:
            break
    else:
        return False
    if recorder.key.index(leaf.position) >= start:
        return True
    return not any([given is leaf for each in recorder.records for given in each.inputs])


_quiet = threading.local()


def _without_warnings(call: Any, given: list[Any]) -> Any:
    """What a call gives, in a context in which NumPy does not warn.

    To enter one that is kept takes less than `np.errstate`.
    """
    context: Context | None = getattr(_quiet, "context", None)
    if context is None:
        context = _quiet.context = copy_context()
        context.run(partial(np.seterr, all="ignore"))
    return context.run(call, *given)


def _contents(given: Any, found: dict[Record, list[Any]]) -> Any:
    if given.__class__ is not Value:
        return given
    if given.memory is None:
        return found[given.record][given.index]
    return given.array()
