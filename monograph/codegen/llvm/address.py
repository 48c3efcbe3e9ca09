"""Index expressions as instructions: scalars, vectors of lanes, addresses and guards.

An address is built from the outside in: the terms that only know outer coordinates are added to
the buffer's pointer where those are known, and constant offsets between copies come last, so they
become displacements. A vector of indexes is computed in 32 bits where its range allows. Floor
division by a positive number is unsigned division where the dividend cannot be negative.
"""

from __future__ import annotations

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.extent import Extent, proven
from ...ir.index import Expr, Extreme, FloorDiv, Guard, Mod, Product, Read, Sum, Var, split
from ..kernel import BufferUse
from .bounds import NOTHING, Bounds
from .place import Copy, Place
from .scope import Pointer, Ref, Scope, deepest
from .types import MEMORY, memory, register
from .vector import Builder

_INT32 = 1 << 31


class Addressing:
    """Writes index expressions at the current place."""

    def __init__(self, builder: Builder, place: Place, buffers: tuple[BufferUse, ...]) -> None:
        self.builder = builder
        self.place = place
        self.buffers = buffers
        # Loads from these must stay behind the stores of earlier stages.
        self.written: frozenset[int] = frozenset()
        self.bounds: Bounds | None = None  # compares addresses, where that was asked for

    # --- scalars -------------------------------------------------------------------------------
    def scalar(self, e: Expr, copy: Copy) -> Ref:
        """e at lane 0 of a copy, as i64."""
        if isinstance(e, Var):
            return self._coordinate(e, copy)
        if isinstance(e, Sum):
            return self._scalar_sum(e, copy)
        if isinstance(e, Read):
            return self._read(e, copy, vector=False)
        return self._operate(e, self.scalar(_left(e), copy), self.scalar(_right(e), copy))

    def _coordinate(self, var: Var, copy: Copy) -> Ref:
        base = self.place.coordinates[var]
        step = self._copy_step(var, copy)
        return self.builder.add(base, self._int(step)) if step else base

    def _copy_step(self, var: Var, copy: Copy) -> int:
        """How far a copy lies from the first one along var."""
        if var == self.place.vector:
            return copy.block * max(self.place.lanes, 1)
        return copy.jam if var == self.place.jam else 0

    def _int(self, value: int, dtype: DType = dtypes.int64) -> Ref:
        return self.builder.const(value, dtype)

    def _scalar_sum(self, e: Sum, copy: Copy) -> Ref:
        const = e.const
        parts: list[Ref] = []
        for atom, c in e.terms:
            if isinstance(atom, Var):
                const += c * self._copy_step(atom, copy)
                part = self.place.coordinates[atom]
            else:
                part = self.scalar(atom, copy)
            parts.append(self._scaled(part, c))
        parts.sort(key=lambda part: part.scope.depth)
        return self._add_up(parts, const, dtypes.int64)

    def _scaled(self, part: Ref, c: int) -> Ref:
        return part if c == 1 else self.builder.mul(part, self._int(c, part.dtype))

    def _add_up(self, parts: list[Ref], const: int, dtype: DType) -> Ref:
        if not parts:
            return self._int(const, dtype)
        total = parts[0]
        for part in parts[1:]:
            total = self.builder.add(total, part)
        return self.builder.add(total, self._int(const, dtype)) if const != 0 else total

    def _operate(self, e: Expr, a: Ref, b: Ref) -> Ref:
        builder = self.builder
        if isinstance(e, Product):
            return builder.mul(a, b)
        if isinstance(e, Extreme):
            return builder.minimum(a, b) if e.name == "min" else builder.maximum(a, b)
        assert isinstance(e, (FloorDiv, Mod)), f"no code for index {e}"
        if proven(e.a.lo, 0):
            unsigned = dtypes.uint32 if a.dtype is dtypes.int32 else dtypes.uint64
            name = "udiv" if isinstance(e, FloorDiv) else "urem"
            found = builder.unchecked(name, builder.cast(a, unsigned), builder.cast(b, unsigned))
            return builder.cast(found, a.dtype)
        quotient = self._floor_quotient(a, b)
        if isinstance(e, FloorDiv):
            return quotient
        return builder.sub(a, builder.mul(quotient, b))

    def _floor_quotient(self, a: Ref, b: Ref) -> Ref:
        builder = self.builder
        quotient = builder.unchecked("sdiv", a, b)
        rest = builder.sub(a, builder.mul(quotient, b))
        negative = builder.lt(rest, self._int(0, a.dtype))
        return builder.sub(quotient, builder.cast(negative, a.dtype))

    # --- vectors -------------------------------------------------------------------------------
    def lanes(self, e: Expr, copy: Copy, dtype: DType | None = None) -> Ref:
        """e at every lane of a copy: a vector of int32 where e's range allows, else of int64.

        An expression that is the same in all lanes stays a scalar.
        """
        if dtype is None:
            dtype = dtypes.int32 if fits(e) else dtypes.int64
        if not self.place.varies(e):
            return self.builder.cast(self.scalar(e, copy), dtype)
        if isinstance(e, Read):
            return self.builder.cast(self._read(e, copy, vector=True), dtype)
        if isinstance(e, (Sum, Var)):
            return self._lane_sum(e, copy, dtype)
        a = self.lanes(_left(e), copy, dtype)
        b = self.lanes(_right(e), copy, dtype)
        return self._operate(e, a, b)

    def _lane_sum(self, e: Expr, copy: Copy, dtype: DType) -> Ref:
        same, step, others = self.parted(e)
        base = self.builder.cast(self.scalar(same, copy), dtype)
        result = base
        for atom, c in others:
            part = self._scaled(self.lanes(atom, copy, dtype), c)
            result = self.builder.add(result, part)
        if step != 0:
            numbers = self.builder.lane_numbers(step, dtype, self.place.lanes)
            result = self.builder.add(result, numbers)
        return result

    def parted(self, e: Expr) -> tuple[Expr, int, list[tuple[Expr, int]]]:
        """(what lane 0 adds, growth per lane, other atoms that differ between lanes) of e."""
        const, terms = split(e)
        same: list[tuple[Expr, int]] = []
        others: list[tuple[Expr, int]] = []
        step = 0
        for atom, c in terms.items():
            if self.place.is_vector and atom == self.place.vector:
                step = c
                same.append((atom, c))
            elif self.place.varies(atom):
                others.append((atom, c))
            else:
                same.append((atom, c))
        return Sum(const, tuple(same)), step, others

    def coefficient(self, e: Expr) -> int | None:
        """Growth of e from lane to lane, None when it is not the same everywhere."""
        if not self.place.varies(e):
            return 0
        _, step, others = self.parted(e)
        return None if others else step

    # --- reads ---------------------------------------------------------------------------------
    def _read(self, e: Read, copy: Copy, vector: bool) -> Ref:
        """The integer that buffer `source` holds, forced into [0, extent)."""
        builder = self.builder
        (index,) = e.index
        buffer = self.buffers[e.source]
        inside = proven(index.lo, 0) and proven(buffer.elements - 1, index.hi)
        if not vector or not self.place.varies(index):
            at = self.scalar(index, copy)
            if not inside:
                at = self._clamped(at, buffer.elements)
            pointer = builder.offset(self.place.pointers[e.source], MEMORY[buffer.dtype], at)
            value = self.load_scalar(e.source, self.inside(e.source, pointer))
        else:
            lanes = self.lanes(index, copy)
            if not inside:
                lanes = self._clamped(lanes, buffer.elements)
            value = self.gather(e.source, self.place.pointers[e.source], lanes, copy)
        return self._clamped(builder.cast(value, dtypes.int64), e.extent)

    def _clamped(self, x: Ref, extent: int) -> Ref:
        low = self.builder.maximum(x, self._int(0, x.dtype))
        last = extent - 1 if isinstance(extent, Extent) else max(extent - 1, 0)
        return self.builder.minimum(low, self._int(last, x.dtype))

    def inside(
        self, buffer: int, pointer: Pointer, when: Ref | None = None, otherwise: str = NOTHING
    ) -> Pointer:
        """The address of an element that is accessed where `when` holds."""
        if self.bounds is None:
            return pointer
        itemsize = self.buffers[buffer].dtype.itemsize
        if otherwise != NOTHING:
            scope = self.place.scope
        else:
            near = pointer.scope if when is None else deepest([pointer.scope, when.scope])
            scope = self.settled(buffer, near)
        return self.bounds.one(buffer, pointer, itemsize, scope, otherwise, when)

    def load_scalar(self, buffer: int, pointer: Pointer) -> Ref:
        """The element at an address, in its register type."""
        scope = self.settled(buffer, pointer.scope)
        dtype = self.buffers[buffer].dtype
        text = f"load {MEMORY[dtype]}, ptr {pointer.text}"
        raw = Ref(self.builder.emit(scope, text), dtype, 0, scope)
        return self.builder.from_memory(raw)

    def settled(self, buffer: int, scope: Scope) -> Scope:
        """Where a load may stand: behind stores of earlier stages, or of earlier points."""
        if self.buffers[buffer].role == "inout":
            return deepest([scope, self.place.scope])
        return deepest([scope, self.place.stage]) if buffer in self.written else scope

    def gather(
        self,
        buffer: int,
        base: Pointer,
        index: Ref,
        copy: Copy,
        mask: Ref | None = None,
        fill: bool | int | float = 0,
    ) -> Ref:
        """The elements at base + index of each lane; lanes without mask get `fill`."""
        builder, lanes = self.builder, self.place.lanes
        dtype = self.buffers[buffer].dtype
        mask = mask or self.place.masks[copy.block] or builder.const(True, dtypes.bool_, lanes)
        mask = builder.widen(mask, lanes)
        pointers = self.spread(base, MEMORY[dtype], index)
        kind = memory(dtype, lanes)
        scope = self.settled(buffer, deepest([pointers.scope, mask.scope]))
        if self.bounds is not None:
            mask = self.bounds.apart(buffer, pointers, dtype.itemsize, mask, scope)
            scope = deepest([scope, mask.scope])
        arguments = (
            f"<{lanes} x ptr> {pointers.text}, i32 {dtype.itemsize}, "
            f"<{lanes} x i1> {mask.text}, {kind} {builder.fill(fill, dtype, lanes)}"
        )
        suffix = builder.memory_suffix(dtype, lanes)
        text = f"call {kind} @llvm.masked.gather.{suffix}.v{lanes}p0({arguments})"
        return builder.from_memory(Ref(builder.emit(scope, text), dtype, lanes, scope))

    def spread(self, base: Pointer, element: str, index: Ref) -> Pointer:
        """A vector of addresses, one per lane."""
        wide = self.builder.cast(index, dtypes.int64)
        wide = self.builder.widen(wide, self.place.lanes)
        scope = deepest([base.scope, wide.scope])
        kind = register(dtypes.int64, self.place.lanes)
        text = f"getelementptr {element}, ptr {base.text}, {kind} {wide.text}"
        return Pointer(self.builder.emit(scope, text), scope)

    # --- addresses -----------------------------------------------------------------------------
    def address(self, buffer: int, e: Expr, copy: Copy) -> Pointer:
        """The address of element e of a buffer at lane 0 of a copy."""
        builder, place = self.builder, self.place
        element = MEMORY[self.buffers[buffer].dtype]
        pointer = place.pointers[buffer]
        scale, const = 1, 0
        if self.buffers[buffer].role == "row":
            scale, const = self.row_layout(buffer, copy)
        own_const, terms = split(e)
        const += scale * own_const
        parts: list[tuple[Ref, int]] = []
        for atom, c in terms.items():
            if isinstance(atom, Var):
                const += scale * c * self._copy_step(atom, copy)
                parts.append((place.coordinates[atom], scale * c))
            else:
                parts.append((self.scalar(atom, copy), scale * c))
        parts.sort(key=lambda part: part[0].scope.depth)
        for ref, c in parts:
            pointer = builder.offset(pointer, element, self._scaled(ref, c))
        if const != 0:
            pointer = builder.offset(pointer, element, self._int(const))
        return pointer

    def row_layout(self, buffer: int, copy: Copy) -> tuple[int, int]:
        """(elements between neighbours, first element) of a copy's own part of a row.

        A row belongs to an outer point. When lanes are outer points, their elements interleave;
        every copy along an outer axis has a part of its own.
        """
        elements = self.buffers[buffer].elements
        if not self.lanes_are_points:
            return 1, copy.jam * elements
        lanes = max(self.place.lanes, 1)
        number = copy.jam * len(self.place.masks) + copy.block
        return lanes, number * elements * lanes

    lanes_are_points = False

    # --- guards --------------------------------------------------------------------------------
    def guard(self, conditions: Guard, copy: Copy) -> tuple[Ref | None, Ref | None]:
        """(scalar, vector) truth of a guard: what all lanes share, and what differs."""
        shared: Ref | None = None
        varying: Ref | None = None
        for condition in conditions:
            if condition.always:
                continue
            value = self.lanes(condition.expr, copy)
            zero = self._int(0, value.dtype)
            test = self.builder.eq(value, zero) if condition.equal else self.builder.ge(value, zero)
            if test.lanes:
                varying = test if varying is None else self.builder.and_(varying, test)
            else:
                shared = test if shared is None else self.builder.and_(shared, test)
        return shared, varying


def _left(e: Expr) -> Expr:
    assert isinstance(e, (FloorDiv, Mod, Extreme, Product)), f"no code for index {e}"
    return e.a


def _right(e: Expr) -> Expr:
    assert isinstance(e, (FloorDiv, Mod, Extreme, Product)), f"no code for index {e}"
    return e.b if isinstance(e, (Extreme, Product)) else e.n


def fits(e: Expr) -> bool:
    """Whether e and everything inside it lies in 32 bits."""
    if e.lo < -_INT32 or e.hi >= _INT32:
        return False
    if isinstance(e, Sum):
        return all(fits(atom) for atom, _ in e.terms)
    if isinstance(e, Var):
        return True
    if isinstance(e, Read):
        return all(fits(index) for index in e.index)
    if isinstance(e, (FloorDiv, Mod, Extreme, Product)):
        return fits(_left(e)) and fits(_right(e))
    return False
