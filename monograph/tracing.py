"""Recording without data: what a function would compute, as the compiler sees it.

`trace(function, *kinds)` calls the function with tensors that have a shape and a dtype but no
contents, and returns what it recorded: the `Recording`, and the Python numbers that stand in its
slots. Nothing is allocated or computed, so a program over gigabytes can be compiled on a small
machine.

>>> import monograph as mg
>>> recording, numbers = trace(lambda x: (x * 2).sum(), kind(1 << 20, 1 << 12))
>>> [entry.operator.name for entry in recording.entries], recording.leaves, numbers
(['mul', 'sum'], (float32[1048576, 4096],), (2,))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from . import pending, record
from .compiler.recording import Recording
from .ir.dtypes import DType, float32
from .recorder import Recorder, current
from .storage import Memory, Meta, Value, meta_of
from .tensor import from_value


class NoData:
    """Stands where the memory of a placeholder would be."""

    def numpy(self, dtype: object, shape: object) -> Any:
        raise RuntimeError("a traced function must not read the values of its arguments")


def kind(*shape: int, dtype: DType = float32) -> Meta:
    """The kind of a placeholder: `kind(8, 16)` is a float32 matrix."""
    return meta_of(tuple(shape), dtype)


def placeholder(meta: Meta) -> Any:
    """A tensor of this kind that counts as known and has no contents."""
    value = Value(meta)
    value.memory = Memory(block=NoData())
    return from_value(value)


def trace(function: Callable[..., Any], *kinds: Meta) -> tuple[Recording, tuple[Any, ...]]:
    """What the function records when called with placeholders of these kinds.

    Wanted are the results that are alive when the function returns: what it returns, and what it
    wrote into its arguments.
    """
    record.flush("trace")
    with _own_recorder() as recorder:
        arguments = [placeholder(meta) for meta in kinds]
        results = function(*arguments)
        wanted, writes = pending.live(recorder)
        recording = pending.form(recorder, wanted, writes)
        del arguments, results
    return recording, tuple(recorder.slots)


@contextmanager
def _own_recorder() -> Iterator[Recorder]:
    """A recorder that is never flushed, in place of this thread's."""
    before = current.recorder
    fresh = Recorder()
    fresh.grad, fresh.hold = before.grad, 1
    current.recorder = fresh
    try:
        yield fresh
    finally:
        current.recorder = before
