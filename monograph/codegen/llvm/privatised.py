"""Privatised outputs: a chunk accumulates into its own row of partial results.

A row starts as the identity. An output of one place is accumulated in registers over the whole
chunk and written when the chunk ends. Others are updated in memory, a vector at a time where lanes
are neighbours; jammed copies are joined first, and lanes that may meet in one place take turns.
"""

from __future__ import annotations

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.index import constant
from ..combine import identity
from ..kernel import Privatised
from . import combine
from .accumulator import Accumulators, Names
from .combine import Accumulator
from .flow import Flow
from .memory import Memory
from .place import Copy
from .scope import Pointer, Ref, Scope
from .types import MEMORY
from .values import Body


class Privates:
    """Writes the privatised outputs of a kernel."""

    def __init__(self, memory: Memory, flow: Flow, accumulators: Accumulators) -> None:
        self.memory = memory
        self.flow = flow
        self.accumulators = accumulators
        self.builder = memory.builder
        self.place = memory.place
        self._chunk: Scope = memory.place.scope
        self._held: dict[Privatised, dict[Copy, Names]] = {}
        self._lanes: dict[Privatised, int] = {}

    def _dtype(self, private: Privatised) -> DType:
        return self.memory.buffers[private.partials].dtype

    # --- chunks --------------------------------------------------------------------------------
    def open(self, outputs: list[Privatised], chunk: Ref) -> None:
        """Begin a chunk: set its row of partial results to the identity."""
        self._chunk = self.place.scope
        for private in outputs:
            self._open_row(private, chunk)

    def _open_row(self, private: Privatised, chunk: Ref) -> None:
        builder, dtype = self.builder, self._dtype(private)
        size = builder.const(private.size, dtypes.int64)
        base = self.place.pointers[private.partials]
        row = builder.offset(base, MEMORY[dtype], builder.mul(chunk, size))
        self.place.pointers[private.partials] = row
        total = self._limit(private, row)
        start = identity(private.combine, dtype)
        if start == 0:
            call = f"call void @llvm.memset.p0.i64(ptr {row.text}, i8 0, i64 {total}, i1 false)"
            self.place.scope.section.append(f"  {call}")
            return
        with self.flow.loop(builder.const(0, dtypes.int64), size) as at:
            pointer = builder.offset(row, MEMORY[dtype], at)
            pointer = self.memory.inside(private.partials, pointer, None, self.memory.sink.text)
            fill = builder.fill(start, dtype, 0)
            self.place.scope.section.append(f"  store {MEMORY[dtype]} {fill}, ptr {pointer.text}")

    def _limit(self, private: Privatised, row: Pointer) -> str:
        """How many bytes a row has; where bounds are compared, they become those of the row."""
        nbytes = private.size * self._dtype(private).itemsize
        bounds = self.memory.bounds
        if bounds is None:
            return self.builder.const(nbytes, dtypes.int64).text
        inside = bounds.whole(private.partials, row, nbytes, self.place.scope)
        bounds.open(private.partials, row, inside)
        return inside.text

    def close(self) -> None:
        """End a chunk: write what registers hold."""
        for private, copies in self._held.items():
            kinds, lanes = (self._dtype(private),), self._lanes[private]
            found = [self.accumulators.fetch(names, kinds, lanes) for names in copies.values()]
            self._update_one_place(private, self.accumulators.join(private.combine, found))

    # --- points --------------------------------------------------------------------------------
    def update(self, private: Privatised, body: Body) -> None:
        """Add the values of all copies of the current point."""
        if constant(private.index) is not None:
            self._hold(private, body)
        elif self.place.varies(private.index):
            for block, joined in self._joined_blocks(private, body, 0):
                value = self.builder.widen(joined[0], self.place.lanes)
                self._update_lanes(private, Copy(0, block), value)
        else:
            blocks = self._joined_blocks(private, body, self.accumulators.lanes)
            total = self.accumulators.join(private.combine, [joined for _, joined in blocks])
            self._update_one_place(private, total)

    def _hold(self, private: Privatised, body: Body) -> None:
        """Accumulate in registers what all goes to one place."""
        accumulators, lanes = self.accumulators, self.accumulators.lanes
        kinds = (self._dtype(private),)
        copies = self._held.setdefault(private, {})
        self._lanes[private] = lanes
        for copy in self.place.copies:
            if copy not in copies:
                copies[copy] = accumulators.make(private.combine, kinds, self._chunk)
            value = self._value(private, body, copy, lanes)
            old = accumulators.fetch(copies[copy], kinds, lanes)
            merged = combine.merge(self.builder, private.combine, (value,), old)
            accumulators.keep(copies[copy], merged)

    def _joined_blocks(
        self, private: Privatised, body: Body, lanes: int
    ) -> list[tuple[int, Accumulator]]:
        """For each block the values of its jammed copies, joined."""
        found: dict[int, list[Accumulator]] = {}
        for copy in self.place.copies:
            value = self._value(private, body, copy, lanes)
            found.setdefault(copy.block, []).append((value,))
        join = self.accumulators.join
        return [(block, join(private.combine, parts)) for block, parts in found.items()]

    def _value(self, private: Privatised, body: Body, copy: Copy, lanes: int) -> Ref:
        """The value of a copy; with `lanes` as a vector in which missing lanes are neutral."""
        builder, dtype = self.builder, self._dtype(private)
        value = builder.cast(body.at(private.value, copy), dtype)
        if not lanes:
            return value
        neutral = builder.const(identity(private.combine, dtype), dtype, lanes)
        wide = builder.widen(value, lanes)
        mask = self.place.masks[copy.block]
        return combine.where(builder, mask, (wide,), (neutral,))[0]

    # --- memory --------------------------------------------------------------------------------
    def _update_one_place(self, private: Privatised, total: Accumulator) -> None:
        (value,) = combine.across(self.builder, private.combine, total)
        pointer = self.memory.address(private.partials, private.index, Copy(0, 0))
        pointer = self.memory.inside(private.partials, pointer, None, self.memory.sink.text)
        self._update_scalar(private, pointer, value)

    def _update_scalar(self, private: Privatised, pointer: Pointer, value: Ref) -> None:
        dtype, scope = self._dtype(private), self.place.scope
        name = self.builder.name()
        scope.section.append(f"  {name} = load {MEMORY[dtype]}, ptr {pointer.text}")
        old = self.builder.from_memory(Ref(name, dtype, 0, scope))
        (new,) = combine.merge(self.builder, private.combine, (value,), (old,))
        raw = self.builder.to_memory(new, dtype)
        scope.section.append(f"  store {MEMORY[dtype]} {raw.text}, ptr {pointer.text}")

    def _update_lanes(self, private: Privatised, copy: Copy, value: Ref) -> None:
        mask = self.place.masks[copy.block]
        if self.memory.coefficient(private.index) == 1:
            self._update_vector(private, copy, value, mask)
            return
        builder = self.builder
        indexes = builder.widen(self.memory.lanes(private.index, copy), self.place.lanes)
        row = self.place.pointers[private.partials]
        for lane in range(self.place.lanes):
            at = builder.cast(builder.extract(indexes, lane), dtypes.int64)
            pointer = builder.offset(row, MEMORY[self._dtype(private)], at)
            exists = None if mask is None else builder.extract(mask, lane)
            sink = self.memory.sink.text
            pointer = self.memory.inside(private.partials, pointer, exists, sink)
            if exists is not None:
                pointer = self.memory.guarded(pointer, exists, self.memory.sink.text)
            self._update_scalar(private, pointer, builder.extract(value, lane))

    def _update_vector(self, private: Privatised, copy: Copy, value: Ref, mask: Ref | None) -> None:
        pointer = self.memory.address(private.partials, private.index, copy)
        # Loaded in the innermost scope, where nothing older than the last store is remembered.
        here = Pointer(pointer.text, self.place.scope)
        old = self.memory.load_vector(private.partials, here, mask)
        (new,) = combine.merge(self.builder, private.combine, (value,), (old,))
        raw = self.builder.to_memory(new, self._dtype(private))
        self.memory.store_vector(private.partials, raw, pointer, mask)
