"""Recordings inside a recording: functions that a transform or a loop traces.

Such a function is recorded by a recorder of its own. Values from outside become its leaves, known
or not. It may read values that do not depend on its arguments: they are computed outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from . import appending, errors, record
from .lines import user_line
from .recorder import ARGUMENT, Recorder, current, new_record
from .storage import Storage, Value


@contextmanager
def inner() -> Iterator[Recorder]:
    """A recorder of its own for a function that a transform traces.

    Values from outside become its leaves, known or not; when it ends they are as they were.
    """
    before = current.recorder
    fresh = Recorder()
    fresh.grad, fresh.hold, fresh.outer = before.grad, 1, before
    fresh.autocast = before.autocast
    current.recorder = fresh
    try:
        yield fresh
    finally:
        for value, epoch, position, made_by in reversed(fresh.saved):
            value.epoch, value.position, value.record = epoch, position, made_by
        current.recorder = before
        if fresh.urgent is not None:
            before.hurry(fresh.urgent)
        if before.hold:
            before.modules += fresh.modules


def read_outside(recorder: Recorder, storage: Storage) -> np.ndarray:
    """Read a value inside a traced function: it must not depend on the function's arguments."""
    with outside(recorder) as outer:
        if storage.value.epoch != recorder.epoch:
            return record.read(storage)
        copies: dict[int, Value] = {}  # what the function computed, recorded once more outside
        stack = [storage.value]
        while stack:
            here = stack[-1]
            if here.record is ARGUMENT:
                raise errors.TransformError(
                    "inside vmap a tensor has no single value to read: it stands for one value per "
                    f"example. Use mg.where or mg.cond instead of `if`{user_line()}"
                )
            known = here.epoch != recorder.epoch or id(here) in copies
            inputs = [] if known else here.record.inputs
            missing = [v for v in inputs if isinstance(v, Value) and id(v) not in copies]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if known:
                copies.setdefault(id(here), here)
                continue
            given = [copies[id(v)] if isinstance(v, Value) else v for v in inputs]
            made = appending.append(
                outer, new_record(here.record.signature, given, here.record.stop)
            )
            copies[id(here)] = made[here.index]
        return record.read(Storage(copies[id(storage.value)]))


@contextmanager
def outside(recorder: Recorder) -> Iterator[Recorder]:
    """Step out of a traced function: values that its recorder took are as the outer knows them."""
    assert recorder.outer is not None
    here = [(value, value.epoch, value.position, value.record) for value, *_ in recorder.saved]
    for value, epoch, position, made_by in reversed(recorder.saved):
        value.epoch, value.position, value.record = epoch, position, made_by
    current.recorder = recorder.outer
    try:
        yield recorder.outer
    finally:
        current.recorder = recorder
        for value, epoch, position, made_by in here:
            value.epoch, value.position, value.record = epoch, position, made_by


record.register_outside(read_outside)
