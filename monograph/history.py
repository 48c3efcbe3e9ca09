"""What lies between roots and leaves: the part of the tape that a backward pass goes over.

After a flush it is recorded again. Here is what that takes, and in which order; `appending.py` does
it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .recorder import Record, Recorder
from .storage import Value


def between(roots: Sequence[Value], wanted: Sequence[Value]) -> list[Value]:
    """The results through which `wanted` are reached from the roots, inputs before results."""
    order: list[Value] = []
    seen: set[int] = set()
    leads = {id(value) for value in wanted}  # values that a wanted one is reached from
    stack: list[tuple[Value, bool]] = [(root, False) for root in roots]
    while stack:
        value, done = stack.pop()
        if done:
            if any(id(v) in leads for v in value.tape.inputs):
                leads.add(id(value))
                order.append(value)
            continue
        if id(value) in seen or value.tape.__class__ is not Record:
            continue
        seen.add(id(value))
        stack.append((value, True))
        stack.extend((v, False) for v in value.tape.inputs if isinstance(v, Value))
    return order


def as_called(order: list[Value]) -> tuple[list[Value], set[int]]:
    """Values of one recording in the order of Python's calls, so that turns of a loop are alike.

    With them come values that they were computed from and that are gone: a view of each turn, a
    draw, what a loop begins with. The ids of these are the second result.
    """
    found = {id(value): value.tape for value in order}
    values = list(order)
    for value in values:  # which grows on the way
        for v in found[id(value)].inputs:
            if v.__class__ is Value and v.memory is None and id(v) not in found:
                found[id(v)] = v.record
                values.append(v)
                if getattr(v.record, "born", 0) == 0:
                    return order, set()  # not computed by a call
    if len({record.born for record in found.values()}) != 1:
        return order, set()
    values.sort(key=lambda value: (found[id(value)].place, value.index))
    return values, found.keys() - {id(value) for value in order}


def is_behind(value: Value) -> bool:
    """Whether a value was recorded on an input that was data then, and has its history now.

    Such an input stands later in the recording, and the value must be recorded again behind it.
    """
    place = value.position
    for source in value.tape.inputs:
        if source.__class__ is Value and source.position > place:
            return True
    return False


def release_known(recorder: Recorder) -> None:
    """Forget the contents of results that were kept for a backward pass that has freed them."""
    read = {id(leaf) for leaf in recorder.leaves}  # by what is pending
    for value in recorder.known:
        owner = value.owner() if value.owner is not None else None
        if (
            value.tape.walk
            and id(value) not in read
            and (owner is None or owner.value is not value)
        ):
            value.memory = None
