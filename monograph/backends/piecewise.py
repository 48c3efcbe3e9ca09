"""Recordings run call by call: what a call means is worked out once for its kind, not each time.

A recording that was never seen is expanded, differentiated and interpreted node by node if it goes
to `reference.py`, which takes milliseconds before the first number is computed. Most of its calls
were seen before, if in other places. So here each kind of call (operator, attributes, shapes and
dtypes) is a function, and so is its derivative: see `calls.py`. A backward entry walks the calls
back. An episode of another length then costs what its calls cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.checks import Note
from ..compiler.pipeline import Executable
from ..compiler.recording import BACKWARD, KNOWN, Entry, Recording, needed_entries
from ..runtime import status
from ..storage import Meta, meta_of
from .calls import DEAR, Call, Kind, Sum, call_of, pull_of
from .reference import ByNumPy
from .rows import Joiner

LAUNCH = 3e-4  # seconds for one call that NumPy may take without a program being worth it
FUSED = 0.6  # of the time of calls that are programs, what one program for all of them takes


class Unfit(Exception):
    """The recording must be interpreted as a whole."""


# What to call, the cells that it reads and fills, and those that nobody reads behind it.
Step = tuple[Kind, tuple[int, ...], tuple[int, ...], tuple[int, ...]]
Make = Callable[[Recording], Executable]
_sum = Sum()


class Piecewise(ByNumPy):
    """A program that runs the calls of a recording one by one. Values stand in numbered cells.

    The cells of leaves come first, then those of slots, then constants and results. `make` compiles
    the calls that are dear; without it, NumPy computes them all.
    """

    def __init__(self, recording: Recording, make: Make | None = None) -> None:
        self._make = make
        self._codes: list[int] = []  # cells that are 0 if the data is as it must be
        self._of_codes: list[int] = []  # the entries that they are of
        self._noted: list[tuple[int, Call]] = []  # the same entries, each once
        self._entries = recording.entries
        self._cells: list[Any] = [None] * (len(recording.leaves) + len(recording.slots))
        self._metas: list[Any] = [meta_of(leaf.shape, leaf.dtype) for leaf in recording.leaves]
        self._metas += recording.slots
        self._steps: list[Step] = []
        self._of: list[int] = []  # result → its cell
        self._same: dict[int, int] = {}  # results that stand for one computed before
        self._inputs: list[tuple[int | None, ...]] = []  # of each entry, the cells
        self._slot = len(recording.leaves)
        for number, entry in enumerate(recording.entries):
            self._add(number, entry)
        # As in a program, checks belong to the entries that results depend on, in whatever way.
        asked = needed_entries(recording)
        kept = {cell for cell, number in zip(self._codes, self._of_codes) if number in asked}
        self._wanted = [self._cell(position) for position in recording.wanted]
        self._kinds = [self._metas[cell] for cell in self._wanted]
        self._arrange(kept)
        super().__init__(recording.wanted, recording.writes, bool(self._noted))

    @property
    def checks(self) -> Sequence[Note]:
        """What to say of each check; there are many, and hardly ever is one asked for."""
        return [Note(number, *said) for number, call in self._noted for said in call.failures]

    # --- forming ---

    def _cell(self, ref: int) -> int:
        return self._of[ref] if ref >= 0 else -ref - 1

    def _new(self, meta: Any, constant: Any = None) -> int:
        self._cells.append(constant)
        self._metas.append(meta)
        return len(self._cells) - 1

    def _add(self, number: int, entry: Entry) -> None:
        cells: list[int | None] = []
        for ref in entry.refs:
            if ref is None:
                cells.append(None)
            elif ref.__class__ is int:
                cells.append(self._cell(ref))
            elif ref is complex:
                raise Unfit
            else:
                cells.append(self._slot)
                self._slot += 1
        self._inputs.append(tuple(cells))
        if entry.operator is BACKWARD:
            made = self._backward(number, entry, cells)
        elif entry.operator is KNOWN:
            result, contents = entry.refs
            assert contents.__class__ is int and cells[1] is not None
            self._of[result] = cells[1]
            self._same[len(self._of)] = result
            made = [cells[1]]
        else:
            kinds = self._kinds_of(cells)
            call = call_of(entry.operator, entry.attributes, kinds)
            if call is None:
                raise Unfit
            made = [self._new(meta) for meta in call.metas]
            codes = [self._new(None) for _ in range(call.groups)]
            self._step(call, cells, [*made, *codes])
            self._codes += codes
            self._of_codes += [number] * len(codes)
            if codes:
                self._noted.append((number, call))
        self._of += made

    def _kinds_of(self, cells: Sequence[int | None]) -> tuple[Any, ...]:
        return tuple([None if cell is None else self._metas[cell] for cell in cells])

    def _step(self, kind: Kind, cells: Sequence[int | None], made: Sequence[int]) -> None:
        read: Any = tuple([cells[number] for number in kind.inputs])
        self._steps.append((kind, read, tuple(made), ()))

    # --- backward ---

    def _backward(self, number: int, entry: Entry, cells: Sequence[int | None]) -> list[int]:
        """Walk the calls back from the roots, and end at what is differentiated for: the cells."""
        count = entry.attributes[0]
        refs = [self._first(ref) for ref in entry.refs]
        ends = refs[2 * count :]
        depends = self._dependents(number, ends)
        sums: dict[Any, int] = {}  # position → the cell of its cotangent
        for root, given in zip(refs[:count], cells[count : 2 * count], strict=True):
            meta = self._metas[self._cell(root)]
            if given is None:
                given = self._new(meta, np.ones(meta.shape, meta.dtype.numpy))
            elif self._metas[given] is not meta:
                raise Unfit
            self._accumulate(sums, root, given)
        place = len(self._of)
        last = set(ends)
        for earlier in range(number - 1, -1, -1):
            here = self._entries[earlier]
            place -= here.results
            outs = range(place, place + here.results)
            given_outs = [p for p in outs if p in sums and p in depends and p not in last]
            if given_outs and here.operator is BACKWARD:
                raise Unfit
            if given_outs and here.operator is not KNOWN and not here.stop:
                self._pull(earlier, here, outs, given_outs, depends, sums)
        zero = [self._metas[self._cell(end)] for end in ends]
        return [
            sums[end] if end in sums else self._new(meta, np.zeros(meta.shape, meta.dtype.numpy))
            for end, meta in zip(ends, zero, strict=True)
        ]

    def _first(self, ref: Any) -> Any:
        """The position that a result stands for."""
        while ref in self._same:
            ref = self._same[ref]
        return ref

    def _dependents(self, number: int, ends: Sequence[Any]) -> set[Any]:
        """Positions that depend on the ends, in the calls before a number."""
        found = set(ends)
        place = 0
        for entry in self._entries[:number]:
            if entry.operator is not KNOWN and not entry.stop:
                if any([self._first(ref) in found for ref in entry.refs if ref.__class__ is int]):
                    found.update(range(place, place + entry.results))
            place += entry.results
        return found

    def _pull(
        self, number: int, entry: Entry, outs: range, given: list[int], depends: set[Any],
        sums: dict[Any, int],
    ) -> None:  # fmt: skip
        cells = self._inputs[number]
        refs = [self._first(ref) if ref.__class__ is int else None for ref in entry.refs]
        kinds = self._kinds_of(cells)
        needs = tuple([
            n for n, (ref, kind) in enumerate(zip(refs, kinds, strict=True))
            if ref in depends and kind.__class__ is Meta and kind.dtype.is_smooth
        ])  # fmt: skip
        if not needs:
            return
        pull = pull_of(entry, kinds, needs, tuple([p - outs.start for p in given]))
        if pull is None:
            raise Unfit
        metas = [kinds[n] for n, part in zip(needs, pull.parts, strict=True) if part is not None]
        made = [self._new(meta) for meta in metas]
        read = [*cells, *[self._cell(p) for p in outs], *[sums[p] for p in given]]
        self._step(pull, read, made)
        for n, part in zip(needs, pull.parts, strict=True):
            if part is not None:
                self._accumulate(sums, refs[n], made[part])

    def _accumulate(self, sums: dict[Any, int], position: Any, cell: int) -> None:
        held = sums.get(position)
        if held is not None:
            meta = self._metas[cell]
            if meta.dtype.is_half:
                raise Unfit
            total = self._new(meta)
            self._step(_sum, (held, cell), (total,))
            cell = total
        sums[position] = cell

    def _arrange(self, codes: set[int]) -> None:
        """Leave out what nothing wanted depends on, and do what turns of a loop do in one step."""
        self._drop_unused(codes)
        joined = Joiner(self._metas, self._new).join([step[:3] for step in self._steps])
        if joined is not None:
            self._steps = [(*step, ()) for step in joined]
            self._drop_unused(codes)
        self._checked = [pair for pair in enumerate(self._codes) if pair[1] in codes]

    def _drop_unused(self, codes: set[int]) -> None:
        """Leave out what nothing wanted depends on; see where cells are read for the last time."""
        needed = {*self._wanted, *codes}
        kept: list[Step] = []
        for kind, read, filled, _ in reversed(self._steps):
            if not needed.isdisjoint(filled):
                free = {*read, *filled} - needed
                kept.append((kind, read, filled, tuple(free)))
                needed.update(read)
        self._steps = kept[::-1]

    # --- running ---

    def _results(
        self, arrays: list[np.ndarray], slots: Sequence[Any], owner: status.Owner
    ) -> list[np.ndarray]:
        if owner.held:
            return [np.zeros(meta.shape, meta.dtype.numpy) for meta in self._kinds]
        cells = self._cells.copy()
        cells[: len(arrays)] = arrays
        cells[len(arrays) : len(arrays) + len(slots)] = slots
        with np.errstate(all="ignore"):
            self._run(cells)
        for group, cell in self._checked:
            if cells[cell] and not owner.held:
                owner.fail(group + 1, int(cells[cell]))
        return [np.array(cells[cell], order="C") for cell in self._wanted]

    def _run(self, cells: list[Any]) -> None:
        """Fill the cells; note what a program for the whole recording would not save."""
        before = time.perf_counter()
        kept = 0.0
        for kind, read, filled, free in self._steps:
            if kind.seconds > DEAR and kind.recording is not None and self._make is not None:
                kind.compile(self._make)
                kept += time.perf_counter() - before
                before = time.perf_counter()
            made = kind.call(*[cells[cell] for cell in read])
            if len(filled) == 1:
                cells[filled[0]] = made[0]
            else:
                for cell, value in zip(filled, made, strict=True):
                    cells[cell] = value
            for cell in free:
                cells[cell] = None
            now = time.perf_counter()
            if kind.compiled:
                kept += FUSED * (now - before)
            elif now - before > LAUNCH:
                kind.seconds += now - before - LAUNCH
            before = now
        self.kept = kept


def interpreted(recording: Recording, make: Make | None = None) -> Piecewise | None:
    """A program that runs call by call; None if the recording must be interpreted as a whole."""
    try:
        return Piecewise(recording, make)
    except Unfit:
        return None
