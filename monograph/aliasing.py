"""How tensors share a storage: making views, and writes that the base and all views see.

A view is one more step of the chain that leads from the storage to the tensor; where it lies in one
piece of known memory it is data at once. A write is a functional update: the storage gets a new
value, and every view that is used again is recorded anew from it.
"""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from . import errors, nested, record, sharing
from .geometry import geometry_of, memory_seen
from .recorder import ARGUMENT, Record, current
from .storage import InferenceStorage, Memory, Meta, Storage, Value, concrete, meta_of
from .tensor import Parameter, Tensor, blank, from_value
from .usual import handles
from .view import NO_GRAD, Origin, View, steps_of

# --- making views ---

_blank_view = partial(object.__new__, View)


def view_of(
    value: Value, base: Tensor, operator: Any, attributes: tuple[Any, ...], grad: bool
) -> Tensor:
    """The tensor of a recorded view; `grad` is the mode that it was made in."""
    made = blank()
    made._storage = storage = base._storage
    whole = storage.value
    before = base._view
    origin: Origin | None = None
    links: Any = None
    birth: Any = None
    if before is not None:
        origin, links, birth = before.origin, before.links, before.birth
    if (
        operator.name == "reshape"
        and whole.meta.strides is None
        and (before is None or (origin is not None and origin[1] is None and not origin[2]))
    ):  # of what lies as on a storage of its own, and so does the result
        origin = value.meta.origin
    elif before is not None:  # else its one link says where it lies, to whoever asks
        meta, strides, steps = base._origin()
        origin = (meta, strides, (*steps, (operator, attributes)))
    if not operator.smooth:
        birth = None
    elif not grad:
        birth = NO_GRAD
    made._view = view = _blank_view()  # `View(…)`, without the call
    view.links = (links, operator, attributes)
    view.version = storage.version
    view.value = value
    view.origin = origin
    view.birth = birth
    value.viewed = whole
    return made


def part_of(base: Tensor, operator: Any, attributes: tuple[Any, ...]) -> Tensor | None:
    """The view of known data as data, if it is one piece of memory.

    A slice of the data, `x[i : i + 64]`, then is a leaf like any other: where it begins is no part
    of the program.
    """
    whole = base._storage.value
    if whole.meta.strides is not None:
        return None
    # A replay reads the storage of its day.
    if base._value().requires_grad or current.recorder.hold:
        return None
    if operator.name == "index":  # programs take ever new rows of their data
        places = attributes[0]
        count = next((n for n, place in enumerate(places) if place.__class__ is not int), 0)
        if count and places[count:] == _WHOLE[: len(whole.meta.shape) - count]:
            row = row_of(base, operator, places[:count])
            if row is not None:
                return row
    step = operator, attributes
    meta, strides, steps = base._origin()
    origin: Origin = (meta, strides, (*steps, step))
    try:
        found = geometry_of(*origin)
    except (ValueError, TypeError, IndexError):
        return None  # the call says what is wrong, in its own words
    if found is None or found.reads or not found.is_contiguous:
        return None
    kind = meta_of(found.shape, found.dtype)
    data = whole.array()
    if found.dtype is not whole.meta.dtype:
        data = data.reshape(-1).view(found.dtype.numpy)
    if kind.size != data.size:
        data = data.reshape(-1)[found.offset : found.offset + kind.size]
    if found.offset == 0:
        origin = kind.origin
    return _piece(base, step, origin, kind, data.reshape(kind.shape))


def row_of(base: Tensor, operator: Any, places: tuple[int, ...]) -> Tensor | None:
    """`part_of` for x[i, j] with integers alone, if x is known data and no view of any."""
    try:
        whole = base._storage.value
    except errors.SparseOperand:
        return None
    if base._view is not None or whole.memory is None or whole.requires_grad:
        return None
    rest = len(whole.meta.shape) - len(places)
    if whole.meta.strides is not None or rest < 0 or current.recorder.hold:
        return None
    try:
        array = whole.array()[(*places, ...)]  # type: ignore[arg-type]
    except IndexError:
        return None  # the call says what is wrong
    step = operator, ((*places, *_WHOLE[:rest]),)
    kind = meta_of(array.shape, whole.meta.dtype)
    origin = (whole.meta, None, (step,)) if any(places) else kind.origin
    return _piece(base, step, origin, kind, array)


_WHOLE = ((None, None, None),) * 64  # places of axes that are taken whole


def _piece(
    base: Tensor, step: tuple[Any, Any], origin: Origin, kind: Meta, array: np.ndarray
) -> Tensor:
    """The view that a step makes, which lies there."""
    storage = base._storage
    value = Value(kind)
    value.memory = piece = Memory(array)
    piece.part_of = value.viewed = storage.value
    before, birth = (None, None) if base._view is None else (base._view.links, base._view.birth)
    if not current.recorder.grad:
        birth = NO_GRAD
    made = blank()
    made._storage = storage
    made._view = View((before, *step), storage.version, value, origin, birth)
    return made


def settled(given: Tensor, value: Value) -> Value:
    """What to record of a tensor whose memory the user may change: see `sharing.py`."""
    whole = given._storage.value
    if current.recorder.capture is not None or not sharing.is_shared(whole):
        return value  # a replay reads what is there by then, before it returns
    if value.requires_grad or value.meta.size * value.meta.dtype.itemsize > sharing.SMALL:
        current.recorder.hurry("memory shared with NumPy")
        return value
    view = given._view
    if view is not None and memory_seen(whole.meta, view.chain()) is None:
        copied = sharing.snapshot(record.read(given._storage), whole)
        return _apply_chain(copied, view.chain())
    return sharing.snapshot(given._array(), value)


# --- views of what was written since ---


def renewed(seen: Tensor) -> Value:
    """What a view shows of a storage that was written since: it is recorded anew."""
    view, recorder = seen._view, current.recorder
    assert view is not None
    whole = seen._storage.value
    if recorder.captured(whole) and whole.record is not ARGUMENT:
        # A function that is traced finds it: derivatives must reach it from outside.
        with nested.outside(recorder):
            return renewed(seen)
    value = _own_history(seen)
    if value is None:
        value = _apply_chain(whole, view.chain())
    old = view.value
    if old.requires_grad and old.tape is None and old.viewed is not None:
        value.requires_grad, value.leaf = True, old.leaf  # a leaf of its own stays one
    if recorder.captured(whole):
        return value
    if view.birth is not None and value.requires_grad and value.tape is not None:
        from .autograd.births import Refused

        Refused(value, view.birth)
    view.value, view.version, view.origin = value, seen._storage.version, None
    return value


def _apply_chain(value: Value, chain: tuple[Any, ...]) -> Value:
    """The view of a storage's new value, recorded again."""
    seen = from_value(_alias(value)) if value.owner is None else object.__new__(Tensor)
    if value.owner is not None:
        storage = value.owner()
        assert storage is not None
        seen._storage, seen._view, seen._grad = storage, None, None
    return _through(seen, chain)


def _through(seen: Tensor, chain: tuple[Any, ...]) -> Value:
    """What further steps of a chain show of a tensor."""
    recorder = current.recorder
    before, recorder.grad = recorder.grad, True  # what a view shows does not depend on the mode
    try:
        for operator, attributes in chain:
            seen = record.call_view(operator, (seen,), attributes)
    finally:
        recorder.grad = before
    return seen._view.value if seen._view is not None else seen._storage.value


def _alias(value: Value) -> Value:
    twin = Value(value.meta.own, value.record, value.index, value.epoch, value.position)
    twin.memory = value.memory
    return twin


# --- writing ---


def write(written: Tensor, new: Tensor, fresh: bool = False) -> Tensor:
    """Replace the contents by `new`, of the same shape; the base and all views see it.

    A `fresh` result is held by nobody else, so its value is taken and not copied.
    """
    storage, recorder = written._storage, current.recorder
    here, old = written._value(), storage.value
    if recorder.outer is not None:
        recorder.check_write(old)
    if recorder.grad:
        if written._view is not None and written._view.birth is not None:
            _refuse_birth(written, new)
        if here.requires_grad:
            refuse_leaf(here)
    if old.meta.absent:
        return written
    if storage.__class__ is InferenceStorage and not recorder.inference:
        raise errors.GradientError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can "
            "make a clone to get a normal tensor before doing inplace update."
        )
    view, made = written._view, new
    tracked, unnoticed, history = recorder.grad, False, None
    if view is not None:
        if written._geometry().overlaps:
            raise errors.OperandError(
                "unsupported operation: more than one element of the written-to tensor refers "
                "to a single memory location. Please clone() the tensor before performing the "
                "operation."
            )
        cuts = [operator.name for operator, _ in view.chain() if not operator.smooth]
        tracked, unnoticed = tracked and not cuts, "data" in cuts
        if recorder.grad and not tracked:
            history = _history_behind_cut(written, made)
        new = _write_through(written, new, tracked)
    elif not fresh or new._view is not None:
        new = new.clone()  # type: ignore[attr-defined]
    value = new._storage.value
    if old.requires_grad and old.tape is None:
        value.requires_grad, value.leaf, value.tape = True, old.leaf, None
    if old.exposed and sharing.is_shared(old):
        if recorder.capture is None:
            value = _written_at_once(storage, value)
        else:
            recorder.capture.shared.append((storage, old))
    storage.write(value)
    if view is not None and fresh:  # the operator that wrote here may have read what was here
        made._value().version, made._value().owner = value.version, value.owner
    if unnoticed:
        old.replaced = 0
    if history is not None:
        _keep_history(storage, *history)
    if old.requires_grad and old.tape is not None:
        _continue_tape(old, value, tracked)
    return written


def refuse_leaf(here: Value) -> None:
    """Leaves that require gradients, and views of them, cannot be written to."""
    origin = here
    while origin.tape.__class__ is Record and origin.tape.signature.operator.view:
        origin = origin.tape.inputs[0]
    if origin.tape is None:
        what = "a" if origin is here else "a view of a"
        raise errors.GradientError(
            f"{what} leaf Variable that requires grad is being used in an in-place operation."
        )


def _refuse_birth(written: Tensor, new: Tensor) -> None:
    """A write that derivatives pass through, into a view that was not made for it."""
    from .autograd.births import refuse

    view = written._view
    assert view is not None
    whole = written._storage.value.requires_grad and all(step.smooth for step, _ in view.chain())
    if whole or written.requires_grad or new.requires_grad:
        refuse(written)


def _write_through(view: Tensor, new: Tensor, tracked: bool) -> Tensor:
    """The whole storage's new contents after writing `new` through a view."""
    from .ops.shape import write_view

    assert view._view is not None
    chain = view._view.chain()
    base = object.__new__(Tensor)
    base._storage, base._view, base._grad = view._storage, None, None
    recorder = current.recorder
    before, recorder.grad = recorder.grad, tracked
    try:
        result: Tensor = write_view(base, new, chain)
    finally:
        recorder.grad = before
    return result


def _written_at_once(storage: Storage, value: Value) -> Value:
    """The value in the memory that the user's arrays see; the old contents are gone."""
    old = storage.value
    fresh = concrete(record.read(Storage(value)), value.meta)
    sharing.move(fresh, old)
    fresh.requires_grad, fresh.leaf, fresh.tape = value.requires_grad, value.leaf, value.tape
    old.memory = None
    return fresh


# --- what was detached, and written to since ---

# By storage: a tensor that was detached from it has a history of its own once something that
# derivatives pass through was written into it. By the id of its links: (links, value, version,
# the tensor whose value that is).
_histories: WeakKeyDictionary[Storage, dict[int, tuple[Any, ...]]] = WeakKeyDictionary()
HISTORIES = 8  # of one storage


def _history_behind_cut(written: Tensor, new: Tensor) -> tuple[Any, Tensor, bool] | None:
    """What a write through a detached tensor, or a view of one, does to its history.

    The links of the detached tensor, a tensor that derivatives pass through, and whether that is
    what it shows then.
    """
    view = written._view
    assert view is not None
    found = view.cut()
    if found is None:
        return None
    links, rest = found
    old = _value_behind(written._storage, links)
    if not new.requires_grad and old is None:
        return None
    if not rest:
        return links, new, False
    from .ops.shape import write_view

    base = _behind(written._storage, links, old)
    return links, write_view(base, new, rest), True


def _keep_history(storage: Storage, links: Any, source: Tensor | Value, shown: bool) -> None:
    """What was detached has a history of its own; what it shares memory with has not."""
    from .autograd.graph import Untracked

    storage.value.replaces = None  # that history may need what was there before
    value = source._value() if isinstance(source, Tensor) else source
    if not shown:
        before, value = value, _apply_chain(storage.value, steps_of(links))
        if before.requires_grad:
            Untracked(before, value)
    known = _histories.setdefault(storage, {})
    known.pop(id(links), None)
    # What shows itself is held, so that a flush computes it: the storage does not.
    known[id(links)] = links, value, storage.version, source if shown else None
    if len(known) > HISTORIES:
        del known[next(iter(known))]


def _value_behind(storage: Storage, links: Any) -> Value | None:
    """What a detached tensor with a history of its own shows now; None if it has none."""
    known = _histories.get(storage) if _histories else None
    held = None if known is None else known.get(id(links))
    if held is None:
        return None
    value = held[1]
    gone = not value.ready and value.epoch != current.recorder.epoch  # a flush did not compute it
    if gone or held[2] != storage.version:  # or written by others, unknown to derivatives
        _keep_history(storage, links, value, False)
        assert known is not None
        value = known[id(links)][1]
    return value  # type: ignore[no-any-return]


def _behind(storage: Storage, links: Any, value: Value | None) -> Tensor:
    """The detached tensor itself, showing this value."""
    if value is None:
        value = _apply_chain(storage.value, steps_of(links))
    seen = blank()
    seen._storage = storage
    seen._view = View(links, storage.version, value)
    return seen


def _own_history(seen: Tensor) -> Value | None:
    """What a view shows of a tensor that was detached and has a history of its own."""
    if not _histories or seen._storage not in _histories:
        return None
    assert seen._view is not None
    found = seen._view.cut()
    if found is None:
        return None
    value = _value_behind(seen._storage, found[0])
    if value is None:
        return None
    return _through(_behind(seen._storage, found[0], value), found[1])


def _continue_tape(old: Value, new: Value, tracked: bool) -> None:
    """After a write into a result: where its gradient goes to."""
    from .autograd import graph, hooks

    if not tracked:
        graph.Untracked(old, new)
    if hooks.in_use.python:
        hooks.follow_write(old, new)


record.register_handle(Tensor, from_value, view_of, part_of, settled)
handles.add(Parameter)
Tensor._renewed = renewed  # type: ignore[method-assign, assignment]
Tensor._write = write  # type: ignore[method-assign, assignment]
