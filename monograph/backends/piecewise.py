"""Recordings run call by call: what a call means is worked out once for its kind, not each time.

A recording that was never seen is expanded, differentiated and interpreted node by node if it goes
to `reference.py`, which takes milliseconds before the first number is computed. Most of its calls
were seen before, if in other places. So here each kind of call (operator, attributes, shapes and
dtypes) is a `Closure` of NumPy calls, and so is its derivative; a backward entry walks the calls
back. An episode of another length then costs what its calls cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..compiler.checks import GROUP, Note, reductions
from ..compiler.recording import BACKWARD, KNOWN, Entry, Recording, described, placeholders
from ..compiler.simplify import substitute
from ..ir import build, dtypes
from ..ir.check import Check, collecting
from ..ir.closure import Closure, NoClosure
from ..ir.node import Map, Node, interning, make
from ..ir.operator import Operator, Rule, noting
from ..runtime import status
from ..storage import Meta, meta_of
from ..transform.derivative import vjp
from .reference import ByNumPy


class Unfit(Exception):
    """The recording must be interpreted as a whole."""


class Join:
    """In place of a `Closure`: the inputs one behind the other, in one call of NumPy's."""

    def __init__(self, count: int, along: int) -> None:
        self.inputs = range(count)
        self._along = along

    def call(self, *parts: Any) -> list[Any]:
        """The parts joined."""
        return [np.concatenate(parts, self._along)]


class Cut:
    """The derivative of a `Join`: the pieces of its cotangent for some of the parts."""

    def __init__(self, metas: Sequence[Meta], needs: Sequence[int], along: int) -> None:
        self.inputs = (len(metas) + 1,)  # behind the inputs and the result
        ends = list(accumulate([meta.shape[along] for meta in metas], initial=0))
        lead = (slice(None),) * along
        self._places = [(*lead, slice(ends[n], ends[n + 1])) for n in needs]

    def call(self, given: Any) -> list[Any]:
        """The pieces."""
        return [given[place] for place in self._places]


def _joined(operator: Operator, attributes: tuple[Any, ...], kinds: tuple[Any, ...]) -> int | None:
    """The axis along which an operator only joins what it is given, if it does."""
    if operator.joins is None or any(kind.__class__ is not Meta for kind in kinds):
        return None
    return operator.joins(kinds, attributes)


class Call:
    """What a kind of call means: its results' kinds, and how NumPy computes them.

    Behind the results stand the codes of its checks, see `compiler/checks.py`; `failures` has for
    each check, in groups that share a code, the error and what to say.
    """

    def __init__(
        self, operator: Operator, attributes: tuple[Any, ...], kinds: tuple[Any, ...]
    ) -> None:
        along = _joined(operator, attributes, kinds)
        if along is not None:
            self.closure: Any = Join(len(kinds), along)
            shape = list(kinds[0].shape)
            shape[along] = sum([kind.shape[along] for kind in kinds])
            self.metas: tuple[Meta, ...] = (meta_of(tuple(shape), kinds[0].dtype),)
            self.groups, self.failures = 0, []
            return
        checks: list[Check] = []
        with interning():
            inputs = placeholders(kinds)
            with collecting(checks):
                outputs = operator.expand(inputs, attributes)
            codes = reductions(checks)
            self.closure = Closure([*outputs, *codes])
        self.metas = tuple([meta_of(node.shape, node.dtype) for node in outputs])
        self.groups = len(codes)
        name, shown = operator.name, ", ".join([described(node) for node in inputs])
        self.failures = [(c.error, f"{name}: {c.message} (inputs: {shown})") for c in checks]
        if checks:  # each group has its full number
            self.failures += self.failures[-1:] * (GROUP * self.groups - len(checks))


class Pull:
    """The derivative of a kind of call: from cotangents of some results to those of some inputs.

    It reads inputs, results and cotangents, numbered in this order. `parts` says for each input
    that is needed which output of the closure it is, or None where nothing depends on it.
    """

    def __init__(
        self, entry: Entry, kinds: tuple[Any, ...], needs: tuple[int, ...], given: tuple[int, ...]
    ) -> None:
        along = _joined(entry.operator, entry.attributes, kinds)
        if along is not None:
            self.closure: Any = Cut(kinds, needs, along)
            self.parts: list[int | None] = list(range(len(needs)))
            return
        rules: dict[int, Rule] = {}
        with interning(), noting(rules):
            inputs = placeholders(kinds)
            for n in needs:
                node = inputs[n]
                assert node is not None
                inputs[n] = make(Map, (node,), node.shape, node.dtype, "mark", n)
            outputs = entry.operator.expand(inputs, entry.attributes)
            results = _buffers(outputs, len(kinds))
            chosen = [outputs[n] for n in given]
            cotangents = _buffers(chosen, len(kinds) + len(outputs))
            wanted = [node for n, node in enumerate(inputs) if n in needs and node is not None]
            found = vjp(chosen, cotangents, wanted, rules, through=False)
            parts = [part for part in found if part is not None]
            known = {node.id: result for node, result in zip(outputs, results) if node.inputs}
            self.closure = Closure(substitute(parts, known))
        places = iter(range(len(parts)))
        self.parts = [None if part is None else next(places) for part in found]


def _buffers(nodes: Sequence[Node], first: int) -> list[Node]:
    return [build.buffer(first + n, node.shape, node.dtype) for n, node in enumerate(nodes)]


_calls: dict[Any, Call | None] = {}
_pulls: dict[Any, Pull | None] = {}


def call_of(operator: Operator, attributes: tuple[Any, ...], kinds: tuple[Any, ...]) -> Call | None:
    """What a kind of call means; None if only the reference can tell."""
    key = (operator, attributes, kinds, dtypes.get_default_dtype())
    if key not in _calls:
        try:
            _calls[key] = Call(operator, attributes, kinds)
        except NoClosure:
            _calls[key] = None
    return _calls[key]


def _pull_of(
    entry: Entry, kinds: tuple[Any, ...], needs: tuple[int, ...], given: tuple[int, ...]
) -> Pull:
    key = (entry.operator, entry.attributes, kinds, needs, given, dtypes.get_default_dtype())
    if key not in _pulls:
        try:
            _pulls[key] = Pull(entry, kinds, needs, given)
        except (NoClosure, NotImplementedError):
            _pulls[key] = None
    found = _pulls[key]
    if found is None:
        raise Unfit
    return found


# --- a recording ----------------------------------------------------------------------------------

Step = tuple[Any, tuple[int, ...], tuple[int, ...]]  # function, cells it reads, cells it fills


class Piecewise(ByNumPy):
    """A program that runs the calls of a recording one by one. Values stand in numbered cells.

    The cells of leaves come first, then those of slots, then constants and results.
    """

    def __init__(self, recording: Recording) -> None:
        self._codes: list[int] = []  # cells that are 0 if the data is as it must be
        self._notes: list[Note] = []
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
        self._wanted = [self._cell(position) for position in recording.wanted]
        self._kinds = [self._metas[cell] for cell in self._wanted]
        self._drop_unused()
        super().__init__(recording.wanted, recording.writes, tuple(self._notes))

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
            self._step(call.closure, cells, [*made, *codes])
            self._codes += codes
            self._notes += [Note(number, *failure) for failure in call.failures]
        self._of += made

    def _kinds_of(self, cells: Sequence[int | None]) -> tuple[Any, ...]:
        return tuple([None if cell is None else self._metas[cell] for cell in cells])

    def _step(self, closure: Any, cells: Sequence[int | None], made: Sequence[int]) -> None:
        read: Any = tuple([cells[number] for number in closure.inputs])
        self._steps.append((closure.call, read, tuple(made)))

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
        pull = _pull_of(entry, kinds, needs, tuple([p - outs.start for p in given]))
        metas = [kinds[n] for n, part in zip(needs, pull.parts, strict=True) if part is not None]
        made = [self._new(meta) for meta in metas]
        read = [*cells, *[self._cell(p) for p in outs], *[sums[p] for p in given]]
        self._step(pull.closure, read, made)
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
            self._steps.append((_add, (held, cell), (total,)))
            cell = total
        sums[position] = cell

    def _drop_unused(self) -> None:
        """Leave out what nothing wanted depends on."""
        needed = set(self._wanted)
        kept: list[Step] = []
        for step in reversed(self._steps):
            if not needed.isdisjoint(step[2]):
                kept.append(step)
                needed.update(step[1])
        self._steps = kept[::-1]
        filled = {cell for step in kept for cell in step[2]}
        self._checked = [pair for pair in enumerate(self._codes) if pair[1] in filled]

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
            for function, read, filled in self._steps:
                made = function(*[cells[cell] for cell in read])
                if len(filled) == 1:
                    cells[filled[0]] = made[0]
                else:
                    for cell, value in zip(filled, made, strict=True):
                        cells[cell] = value
        for group, cell in self._checked:
            if cells[cell] and not owner.held:
                owner.fail(group + 1, int(cells[cell]))
        return [np.array(cells[cell], order="C") for cell in self._wanted]


def _add(a: Any, b: Any) -> list[Any]:
    return [a + b]


def interpreted(recording: Recording) -> Piecewise | None:
    """A program that runs call by call; None if the recording must be interpreted as a whole."""
    try:
        return Piecewise(recording)
    except Unfit:
        return None
