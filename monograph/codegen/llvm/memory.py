"""Loads and stores: whole vectors where lanes are neighbours, masks in tails and under guards.

Nothing is read or written where a guard does not hold. A scalar access under a guard goes to a
harmless address instead; vectors use LLVM's masked operations. Lanes that are not neighbours are
gathered and scattered.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...ir import dtypes
from ...ir.extent import divided
from ...ir.index import Expr, Sum, coefficient, split
from ..kernel import BufferUse, Load, Store
from .address import Addressing, fits
from .bounds import NOTHING
from .place import Copy, Place
from .scope import Pointer, Ref, Scope, deepest
from .types import MEMORY, memory
from .vector import Builder

STREAM = ", !nontemporal !0"
ALL_LANES = "@mg_all_lanes"
PREFETCH = "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"


class Memory(Addressing):
    """Writes loads and stores at the current place."""

    def __init__(self, builder: Builder, place: Place, buffers: tuple[BufferUse, ...]) -> None:
        super().__init__(builder, place, buffers)
        self._squares: dict[tuple[int, int, int], list[Ref]] = {}

    sink: Pointer  # where a scalar store goes whose guard does not hold
    streamed: frozenset[int] = frozenset()  # buffers whose aligned vector stores bypass the caches
    ahead: Mapping[int, int] = {}  # loads (by id) that ask for what lies so many elements ahead

    def load(self, value: Load, copy: Copy) -> Ref:
        """The value of a Load at a copy."""
        shared, varying = self.guard(value.guard, copy)
        own_lane = self.lanes_are_points and self.buffers[value.buffer].role == "row"
        if self.place.varies(value.index) or (own_lane and self.place.is_vector):
            mask = self._mask(shared, varying, copy)
            if self._neighbours(value.buffer, value.index):
                return self._load_vector(value, copy, mask)
            if mask is None and self._is_square(value):
                return self._load_square(value, copy.block)[copy.jam]
            return self._load_apart(value, copy, mask)
        if varying is not None:
            return self._load_for_some(value, copy, shared, varying)
        return self._load_uniform(value, copy, shared)

    def _neighbours(self, buffer: int, index: Expr) -> bool:
        """Whether lane after lane is element after element."""
        if self.lanes_are_points and self.buffers[buffer].role == "row":
            return not self.place.varies(index)
        return self.coefficient(index) == 1

    def _mask(self, shared: Ref | None, varying: Ref | None, copy: Copy) -> Ref | None:
        """The lanes that exist and whose guard holds; None for all."""
        mask = self.place.masks[copy.block] if self.place.is_vector else None
        for test in (varying, shared):
            if test is not None:
                mask = test if mask is None else self.builder.and_(mask, test)
        return None if mask is None else self.builder.widen(mask, self.place.lanes)

    def _load_uniform(self, value: Load, copy: Copy, shared: Ref | None) -> Ref:
        pointer = self.address(value.buffer, value.index, copy)
        pointer = self.inside(value.buffer, pointer, shared)
        if shared is None:
            return self.load_scalar(value.buffer, pointer)
        safe = self.guarded(pointer, shared, NOTHING)
        loaded = self.load_scalar(value.buffer, safe)
        fill = self.builder.const(value.fill, value.dtype)
        return self.builder.select(shared, loaded, fill)

    def guarded(self, pointer: Pointer, holds: Ref, otherwise: str) -> Pointer:
        """The address, or `otherwise` where the guard does not hold."""
        scope = deepest([pointer.scope, holds.scope])
        text = f"select i1 {holds.text}, ptr {pointer.text}, ptr {otherwise}"
        return Pointer(self.builder.emit(scope, text), scope)

    def _load_for_some(self, value: Load, copy: Copy, shared: Ref | None, varying: Ref) -> Ref:
        """One element that only some lanes may read."""
        mask = self._mask(shared, varying, copy)
        assert mask is not None
        anywhere = self.builder.any_lane(mask)
        pointer = self.address(value.buffer, value.index, copy)
        pointer = self.inside(value.buffer, pointer, anywhere)
        loaded = self.load_scalar(value.buffer, self.guarded(pointer, anywhere, NOTHING))
        fill = self.builder.const(value.fill, value.dtype)
        return self.builder.select(mask, loaded, fill)

    def _load_vector(self, value: Load, copy: Copy, mask: Ref | None) -> Ref:
        pointer = self.address(value.buffer, value.index, copy)
        if mask is None and id(value) in self.ahead:
            self._prefetch(value, pointer)
        return self.load_vector(value.buffer, pointer, mask, value.fill)

    def _prefetch(self, value: Load, pointer: Pointer) -> None:
        """Ask for a later vector: to read (0), into the second cache (2), data (1)."""
        distance = self.builder.const(self.ahead[id(value)], dtypes.int64)
        element = MEMORY[self.buffers[value.buffer].dtype]
        later = self.builder.offset(pointer, element, distance)
        self.builder.declarations.add(PREFETCH)
        text = f"  call void @llvm.prefetch.p0(ptr {later.text}, i32 0, i32 2, i32 1)"
        self.place.scope.section.append(text)

    def load_vector(
        self, buffer: int, pointer: Pointer, mask: Ref | None, fill: bool | int | float = 0
    ) -> Ref:
        """`lanes` elements from an address on."""
        builder, lanes = self.builder, self.place.lanes
        dtype = self.buffers[buffer].dtype
        kind = memory(dtype, lanes)
        scope = pointer.scope
        if mask is not None:
            scope = deepest([scope, mask.scope])
        scope = self.settled(buffer, scope)
        pointer, mask = self._within(buffer, pointer, mask, scope, NOTHING)
        scope = deepest([scope, pointer.scope] + ([] if mask is None else [mask.scope]))
        if mask is None:
            text = f"load {kind}, ptr {pointer.text}, align {dtype.itemsize}"
        else:
            text = (
                f"call {kind} @llvm.masked.load.{builder.memory_suffix(dtype, lanes)}.p0("
                f"ptr {pointer.text}, i32 {dtype.itemsize}, <{lanes} x i1> {mask.text}, "
                f"{kind} {builder.fill(fill, dtype, lanes)})"
            )
        return builder.from_memory(Ref(builder.emit(scope, text), dtype, lanes, scope))

    def _within(
        self, buffer: int, pointer: Pointer, mask: Ref | None, scope: Scope, otherwise: str
    ) -> tuple[Pointer, Ref | None]:
        """The address and mask of neighbouring elements, where bounds are compared."""
        if self.bounds is None:
            return pointer, mask
        itemsize = self.buffers[buffer].dtype.itemsize
        if mask is not None:
            return pointer, self.bounds.some(buffer, pointer, itemsize, mask, scope)
        nbytes = itemsize * self.place.lanes
        return self.bounds.one(buffer, pointer, nbytes, scope, otherwise), None

    def _is_square(self, value: Load) -> bool:
        """Whether lanes lie apart, but jammed copies are neighbours and as many as lanes."""
        jam, role = self.place.jam, self.buffers[value.buffer].role
        if jam is None or self.place.jams != self.place.lanes or role == "row":
            return False
        apart = self.coefficient(value.index) not in (None, 0)
        return apart and coefficient(value.index, jam) == 1

    def _load_square(self, value: Load, block: int) -> list[Ref]:
        """The vectors of all jammed copies: a vector of copies for each lane, transposed."""
        key = id(value), block, id(self.place.scope)
        if key not in self._squares:
            step = self.coefficient(value.index)
            assert step is not None
            element = MEMORY[self.buffers[value.buffer].dtype]
            first = self.address(value.buffer, value.index, Copy(0, block))
            rows = []
            for lane in range(self.place.lanes):
                shift = self.builder.const(step * lane, dtypes.int64)
                pointer = self.builder.offset(first, element, shift)
                rows.append(self.load_vector(value.buffer, pointer, None))
            self._squares[key] = self.builder.transpose(rows)
        return self._squares[key]

    def _load_apart(self, value: Load, copy: Copy, mask: Ref | None) -> Ref:
        base, index = self._apart(value.buffer, value.index, copy)
        return self.gather(value.buffer, base, index, copy, mask, value.fill)

    def _apart(self, buffer: int, e: Expr, copy: Copy) -> tuple[Pointer, Ref]:
        """The address of what lanes share, and each lane's distance from it."""
        builder, lanes = self.builder, self.place.lanes
        same, step, others = self.parted(e)
        base = self.address(buffer, same, copy)
        distance = Sum(0, tuple(others))
        own_lane = self.lanes_are_points and self.buffers[buffer].role == "row"
        small = fits(distance) and (abs(step) + own_lane) * lanes < 1 << 30
        dtype = dtypes.int32 if small else dtypes.int64
        total: Ref | None = None
        for atom, c in others:
            part = self.lanes(atom, copy, dtype)
            part = builder.mul(part, builder.const(c, dtype)) if c != 1 else part
            total = part if total is None else builder.add(total, part)
        if own_lane:
            if total is not None:
                total = builder.mul(total, builder.const(lanes, dtype))
            step = step * lanes + 1
        if step != 0 or total is None:
            numbers = builder.lane_numbers(step, dtype, lanes)
            total = numbers if total is None else builder.add(total, numbers)
        return base, total

    # --- stores --------------------------------------------------------------------------------
    def store(self, target: Store, value: Ref, copy: Copy) -> None:
        """Write a value to its place in memory."""
        shared, varying = self.guard(target.guard, copy)
        raw = self.builder.to_memory(value, self.buffers[target.buffer].dtype)
        if not self.place.is_vector:
            pointer = self.address(target.buffer, target.index, copy)
            pointer = self.inside(target.buffer, pointer, shared, self.sink.text)
            if shared is not None:
                pointer = self.guarded(pointer, shared, self.sink.text)
            kind = MEMORY[raw.dtype]
            self.place.scope.section.append(f"  store {kind} {raw.text}, ptr {pointer.text}")
            return
        raw = self.builder.widen_memory(raw, self.place.lanes)
        mask = self._mask(shared, varying, copy)
        if self._neighbours(target.buffer, target.index):
            pointer = self.address(target.buffer, target.index, copy)
            stream = target.buffer in self.streamed and self.is_aligned(target.index)
            self.store_vector(target.buffer, raw, pointer, mask, stream)
        else:
            base, index = self._apart(target.buffer, target.index, copy)
            self._scatter(target.buffer, raw, base, index, mask)

    def store_vector(
        self, buffer: int, raw: Ref, pointer: Pointer, mask: Ref | None, stream: bool = False
    ) -> None:
        """Write `lanes` neighbouring elements; `raw` has its memory type."""
        dtype, lanes = raw.dtype, self.place.lanes
        pointer, mask = self._within(buffer, pointer, mask, self.place.scope, self.sink.text)
        kind = memory(dtype, lanes)
        if mask is not None and not kind.endswith(("float>", "double>", "half>")):
            mask = self.builder.and_(mask, self._all_lanes())
        if mask is None:
            place = f"align {dtype.itemsize}"
            if stream:
                place = f"align {dtype.itemsize * lanes}{STREAM}"
            text = f"store {kind} {raw.text}, ptr {pointer.text}, {place}"
        else:
            text = (
                f"call void @llvm.masked.store.{self.builder.memory_suffix(dtype, lanes)}.p0("
                f"{kind} {raw.text}, ptr {pointer.text}, i32 {dtype.itemsize}, "
                f"<{lanes} x i1> {mask.text})"
            )
        self.place.scope.section.append("  " + text)

    def _all_lanes(self) -> Ref:
        """All lanes, which LLVM does not know.

        Where it knows that a mask has one lane, it stores that lane of a narrowed vector in its
        full width, over its neighbours (seen in LLVM 22.1).
        """
        builder, lanes = self.builder, self.place.lanes
        word = builder.emit(builder.root, f"load volatile i64, ptr {ALL_LANES}")
        bits = builder.emit(builder.root, f"trunc i64 {word} to i{lanes}")
        text = f"bitcast i{lanes} {bits} to <{lanes} x i1>"
        return Ref(builder.emit(builder.root, text), dtypes.bool_, lanes, builder.root)

    def _scatter(self, buffer: int, raw: Ref, base: Pointer, index: Ref, mask: Ref | None) -> None:
        builder, lanes = self.builder, self.place.lanes
        mask = mask or builder.const(True, dtypes.bool_, lanes)
        pointers = self.spread(base, MEMORY[raw.dtype], index)
        if self.bounds is not None:
            itemsize, here = raw.dtype.itemsize, self.place.scope
            mask = self.bounds.apart(buffer, pointers, itemsize, mask, here)
        kind = memory(raw.dtype, lanes)
        suffix = builder.memory_suffix(raw.dtype, lanes)
        self.place.scope.section.append(
            f"  call void @llvm.masked.scatter.{suffix}.v{lanes}p0({kind} {raw.text}, "
            f"<{lanes} x ptr> {pointers.text}, i32 {raw.dtype.itemsize}, "
            f"<{lanes} x i1> {mask.text})"
        )

    def is_aligned(self, e: Expr) -> bool:
        """Whether all vectors at e start on a multiple of their size, if the buffer itself does."""
        lanes = self.place.lanes
        const, terms = split(e)
        others = [c for atom, c in terms.items() if atom != self.place.vector]
        return all(divided(c, lanes) is not None for c in (const, *others))
