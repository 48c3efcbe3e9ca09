"""A bound on the data that pending work keeps alive.

A loop that takes new data in each turn and reads nothing would keep all of it until somebody reads.
So whoever makes tensors of data says how much it was. Once that is too much since the last flush,
pending work is looked at: arrays that nobody but the recording holds, and that calls at one line of
the user's have brought again and again, are such a loop. It is cut behind a call at that line, so
that each piece has the same program. One large array is no loop: a step that uses it is not cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .recorder import TOO_MUCH, Record, Recorder
from .storage import Value

RETAINED = 1 << 28  # bytes that a loop may keep alive
ARRAYS = 4  # of one line at least, for it to be a loop's

Line = tuple[Any, int]


def note_data(recorder: Recorder, nbytes: int) -> None:
    """Count data of which a tensor was made."""
    recorder.brought += nbytes
    if recorder.brought >= RETAINED and recorder.urgent is None:
        if not recorder.hold and recorder.outer is None:
            recorder.urgent = TOO_MUCH


def is_time_to_cut(recorder: Recorder) -> bool:
    """Whether the last call was at the line where a loop is cut.

    If nothing is kept in vain, the next as many bytes may come before this is asked again.
    """
    if recorder.cut is None:
        recorder.cut = _line_of_loop(recorder.records, recorder.leaves)
        if recorder.cut is None:
            recorder.urgent, recorder.brought = None, 0
            return False
    last = recorder.records[-1]
    return (last.code, last.offset) == recorder.cut


def _line_of_loop(records: Sequence[Record], leaves: Sequence[Value]) -> Line | None:
    """The line whose calls have brought too much that nobody else holds."""
    held: dict[int, int] = {}
    seen: set[int] = set()
    for leaf in leaves:
        whole = leaf if leaf.memory is None else leaf.memory.part_of or leaf
        owner = whole.owner() if whole.owner is not None else None
        if id(whole) not in seen and (owner is None or owner.value is not whole):
            held[id(leaf)] = whole.meta.size * whole.meta.dtype.itemsize
        seen.add(id(whole))
    brought: dict[Line, list[int]] = {}
    for record in records:
        for value in record.inputs:
            size = held.pop(id(value), None)
            if size is not None:
                brought.setdefault((record.code, record.offset), []).append(size)
    for line, sizes in brought.items():
        if len(sizes) >= ARRAYS and 2 * sum(sizes) >= RETAINED:  # the last array is not used yet
            return line
    return None
