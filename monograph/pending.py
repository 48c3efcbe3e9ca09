"""What of a pending recording is to be computed, and the recording in the compiler's terms."""

from __future__ import annotations

from typing import Any, Protocol

from . import tapes
from .compiler.recording import Entry, Recording
from .recorder import Record, Recorder, held_elsewhere
from .storage import Value

ROWS = 4  # pieces that lie one behind the other, from which on a program is told

Rows = tuple[tuple[int, ...], ...]


class Recorded(Protocol):
    """Calls with what they were given, as a `Recorder` has them."""

    records: list[Record]
    key: list[Any]
    leaves: list[Value]
    slots: list[Any]


def form(recorder: Recorded, wanted: Any, writes: Any, rows: Rows = ()) -> Recording:
    """What was recorded in the compiler's terms."""
    entries = []
    at = 1  # in the key, where the inputs of the next record begin
    for record in recorder.records:
        signature = record.signature
        refs = recorder.key[at : at + len(record.inputs)]
        at += len(refs) + 1
        entries.append(
            Entry(
                signature.operator, signature.attributes, tuple(refs), record.stop,
                len(signature.outputs), record.line,
            )
        )  # fmt: skip
    leaves = tuple([value.meta for value in recorder.leaves])
    slots = tuple([type(number) for number in recorder.slots])
    shapes = tuple([meta.shape for r in recorder.records for meta in r.signature.outputs])
    return Recording(tuple(entries), leaves, slots, wanted, writes, shapes, rows)


def calls(recorder: Recorded) -> tuple[Any, ...]:
    """What was recorded but for sizes: operators, and how they are wired."""
    found: list[Any] = []
    at = 0
    for record in recorder.records:
        end = at + 1 + len(record.inputs)
        found += (record.signature.operator, record.stop, *recorder.key[at + 1 : end])
        at = end
    return tuple(found)


def rows(recorder: Recorder) -> Rows:
    """Numbers of leaves that are pieces of one array, each lying directly behind the one before.

    These are what a loop over known data reads, x[0], x[1], … Which array it is, and where they
    begin, is no part of the program; that they lie in a row is.
    """
    if len(recorder.pieces) < ROWS or recorder.hold:
        return ()
    ending: dict[Any, list[list[int]]] = {}  # by where the next piece would begin
    found: list[list[int]] = []
    for piece in recorder.pieces:
        assert piece.memory is not None
        whole, kind, begin = id(piece.memory.part_of), piece.meta, piece.locate()
        open_rows = ending.get((whole, kind, begin))
        row = open_rows.pop(0) if open_rows else []
        if not row:
            found.append(row)
        row.append(-piece.position - 1)
        end = begin + kind.size * kind.dtype.itemsize
        ending.setdefault((whole, kind, end), []).append(row)
    return tuple([tuple(row) for row in found if len(row) >= ROWS])


def live(recorder: Recorder) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Results that a storage still holds, and which of them overwrite which leaf."""
    wanted: list[int] = []
    writes: list[tuple[int, int]] = []
    taped: list[Value] = []  # results that a backward pass may follow
    epoch = recorder.epoch
    shared = held_elsewhere()
    if recorder.shared:
        shared = shared | recorder.shared
    for value in recorder.results:
        owner = value.owner
        if owner is None:
            continue
        storage = owner()
        if storage is None or storage.value is not value or value.memory is not None:
            continue
        wanted.append(value.position)
        old = value.replaces
        if old is None or old.epoch != epoch or old.position >= 0 or old.memory is None:
            tape = value.tape
            if tape is not None and not tape.walk:
                taped.append(value)
            continue
        if shared and id(old) in shared:
            continue  # another thread is to read the old contents, or a part of them is read
        if value.tape is None or old.memory.exposed:  # else a derivative may need the old
            writes.append((value.position, -old.position - 1))
    if len(recorder.open) > recorder.many:
        recorder.open = tapes.still_open(recorder.open)
        recorder.many = tapes.OPEN + 2 * len(recorder.open)
    if writes and (taped or recorder.open):
        taped += [
            root for each in recorder.open if (root := each()) is not None and tapes.is_held(root)
        ]
        known = {id(recorder.results[position]) for position in wanted}
        writes = tapes.spare(recorder.leaves, writes, taped, known)
    return tuple(wanted), tuple(writes)
