"""The body of a kernel: rows, vector loops, stages, privatised outputs, segments.

`BodyWriter` writes `void name(ptr args, i64 begin, i64 end)`. It walks the plan from the outside
in: chunks (if an output is privatised), units, jammed copies, the vector axis, and then stage after
stage the stage's own loops, with the body of values in the middle.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ...ir import dtypes
from ...ir.extent import Extent, divided
from ...ir.index import Expr, Var
from ..kernel import Kernel, Reduction, Stage, Value, postorder, stage_values
from . import combine
from .accumulator import Accumulators, Kinds, Names
from .bounds import HARMLESS_BYTES, SINK, Bounds
from .combine import Accumulator
from .flow import Flow
from .memory import Memory
from .place import Copy, Place
from .plan import TILE, Plan, stage_blocks
from .privatised import Privates
from .scope import Pointer, Ref, Scope
from .sizes import Sizes
from .values import Body
from .vector import Builder

STACK_BYTES = 64 << 10  # a row up to this size lives on the stack


class BodyWriter:
    """Writes one body function of a kernel."""

    def __init__(
        self, kernel: Kernel, plan: Plan, streamed: frozenset[int], sizes: Sizes,
        bounds: bool = False,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.plan = plan
        root = Scope(None)
        self.builder = Builder(root, sizes)
        self.place = Place(plan.lanes, plan.axis, plan.jam, root, root, {})
        self.memory = Memory(self.builder, self.place, kernel.buffers)
        self.memory.lanes_are_points = plan.lanes_are_points
        self.memory.streamed = streamed
        self.bounds = self.memory.bounds = Bounds(self.builder, self.place) if bounds else None
        self.memory.written = frozenset(
            number for number, use in enumerate(kernel.buffers) if use.role != "in"
        )
        self.flow = Flow(self.builder, self.place, "entry")
        self.tables: list[str] = []
        self._storage: list[str] = []  # allocas, which stand first in the function
        self._closing: list[str] = []
        self._results: dict[tuple[int, Copy], Ref] = {}
        self.accumulators = Accumulators(self.builder, self.place)
        self.privates = Privates(self.memory, self.flow, self.accumulators)

    def write(self, name: str, filling: Stage | None = None) -> str:
        """The text of the function; the stage `filling` runs first, once."""
        root = self.place.scope
        self.memory.sink = Pointer(SINK, root)
        self._open_buffers()
        if filling is not None:
            self._stage(filling)
        begin = Ref("%begin", dtypes.int64, 0, root)
        end = Ref("%end", dtypes.int64, 0, root)
        if self.kernel.segments:
            self._segments(name, begin, end)
        elif any(stage.privatised for stage in self.kernel.stages):
            self._chunks(begin, end)
        else:
            self._units(begin, end)
        if self.memory.streamed:
            self._closing.append("  fence seq_cst")
        lines = [
            f"define internal void {name}(ptr %args, i64 %begin, i64 %end) #0 {{",
            "entry:",
            f"  {SINK} = alloca [{HARMLESS_BYTES} x i8], align 64",
            *self._storage,
            *self.accumulators.storage,
            *root.lines(),
            *self._closing,
            "  ret void",
            "}",
        ]
        return "\n".join(lines)

    # --- buffers -------------------------------------------------------------------------------
    def _open_buffers(self) -> None:
        """Load the pointers of all buffers and make room for rows."""
        argument = 0
        for number, use in enumerate(self.kernel.buffers):
            if not use.is_argument:
                self.place.pointers[number] = self._row(number)
                self._limit(number, self._int(self._row_elements(number)))
                continue
            if not self.kernel.segments or use.shared:
                self.place.pointers[number] = self._argument(self._int(argument))
                self._limit(number, self._int(use.elements))
            argument += 1 if use.shared or not self.kernel.segments else len(self.kernel.segments)
        if self.bounds is not None:
            self.bounds.status = self._argument(self._int(argument)).text

    def _limit(self, number: int, elements: Ref) -> None:
        """Note how large a buffer is, where that is compared."""
        if self.bounds is not None:
            itemsize = self._int(self.kernel.buffers[number].dtype.itemsize)
            nbytes = self.builder.mul(elements, itemsize)
            self.bounds.open(number, self.place.pointers[number], nbytes)

    def _argument(self, number: Ref) -> Pointer:
        base = Pointer("%args", self.builder.root)
        at = self.builder.offset(base, "ptr", number)
        return Pointer(self.builder.emit(at.scope, f"load ptr, ptr {at.text}"), at.scope)

    def _row(self, number: int) -> Pointer:
        size = self._row_elements(number) * self.kernel.buffers[number].dtype.itemsize
        name = f"%row{number}"
        if isinstance(size, Extent):
            self.builder.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
            amount = self._int(size)
            self.builder.root.section.append(f"  {name} = call ptr @malloc(i64 {amount.text})")
            self._closing.append(f"  call void @free(ptr {name})")
        elif size <= STACK_BYTES:
            self._storage.append(f"  {name} = alloca [{size} x i8], align 64")
        else:
            self.builder.declarations |= {"declare ptr @malloc(i64)", "declare void @free(ptr)"}
            self._storage.append(f"  {name} = call ptr @malloc(i64 {size})")
            self._closing.append(f"  call void @free(ptr {name})")
        return Pointer(name, self.builder.root)

    def _row_elements(self, number: int) -> int:
        """Elements of a row, with a part for each copy of a point."""
        use, copies = self.kernel.buffers[number], self.plan.jams
        if use.role != "row":
            return max(use.elements, 1)
        if self.plan.lanes_are_points:
            copies *= self.plan.blocks * max(self.plan.lanes, 1)
        return max(use.elements, 1) * copies

    def _int(self, value: int) -> Ref:
        return self.builder.const(value, dtypes.int64)

    # --- chunks of privatised kernels ----------------------------------------------------------
    def _chunks(self, begin: Ref, end: Ref) -> None:
        outputs = [private for stage in self.kernel.stages for private in stage.privatised]
        chunks, units = self.kernel.schedule.chunks, self.plan.units
        builder = self.builder
        with self.flow.loop(begin, end) as chunk:
            self.privates.open(outputs, chunk)
            first = builder.mul(chunk, self._int(units))
            after = builder.add(first, self._int(units))
            first = builder.unchecked("udiv", first, self._int(chunks))
            after = builder.unchecked("udiv", after, self._int(chunks))
            if units != 0:
                self._units(first, after)
            self.privates.close()

    # --- units ---------------------------------------------------------------------------------
    def _units(self, begin: Ref, end: Ref) -> None:
        """Loop over units, and inside find the outer coordinates of each."""
        with self.flow.loop(begin, end) as unit:
            plan, builder = self.plan, self.builder
            rest = unit
            if isinstance(plan.pieces, Extent) or plan.pieces > 1:
                rest, piece = self._split(rest, plan.pieces)
                first = builder.mul(piece, self._int(plan.piece))
                assert plan.axis is not None
                limit = self._int(plan.axis.extent)
                span = first, builder.minimum(builder.add(first, self._int(plan.piece)), limit)
            else:
                span = None
            for number, (var, steps) in reversed(list(enumerate(plan.rows))):
                rest, at = (rest, rest) if number == 0 else self._split(rest, steps)
                self.place.coordinates[var] = at
            self._jam(lambda: self._points(span))
            for var, _ in plan.rows:
                del self.place.coordinates[var]

    def _split(self, x: Ref, extent: int) -> tuple[Ref, Ref]:
        """(x div extent, x mod extent) of a non-negative x."""
        if extent == 1:
            return x, self._int(0)
        quotient = self.builder.unchecked("udiv", x, self._int(extent))
        rest = self.builder.sub(x, self.builder.mul(quotient, self._int(extent)))
        return quotient, rest

    def _jam(self, write: Callable[[], None]) -> None:
        """Write the points once for a full group of jammed copies and once for a short group."""
        jam, jams = self.plan.jam, self.plan.jams
        if jam is None:
            write()
            return
        builder, coordinates = self.builder, self.place.coordinates
        first = builder.mul(coordinates[jam], self._int(jams))

        def group(count: int) -> None:
            coordinates[jam] = Ref(first.text, first.dtype, 0, self.place.scope)
            self.place.jams = count
            write()
            self.place.jams = 1

        if isinstance(jam.extent, Extent):
            self._jam_any(first, jam, jams, write, group)
            return
        short = jam.extent % jams
        if short == 0 or jam.extent < jams:
            group(short or jams)
            return
        full = builder.le(builder.add(first, self._int(jams)), self._int(jam.extent))
        self.flow.choose(full, lambda: group(jams), lambda: group(short))

    def _jam_any(
        self, first: Ref, jam: Var, jams: int, write: Callable[[], None],
        group: Callable[[int], None],
    ) -> None:  # fmt: skip
        """Groups along an axis of any length: what is left over runs copy after copy."""
        builder, limit = self.builder, self._int(jam.extent)

        def rest() -> None:
            with self.flow.loop(first, limit) as at:
                self.place.coordinates[jam] = at
                write()

        full = builder.le(builder.add(first, self._int(jams)), limit)
        self.flow.choose(full, lambda: group(jams), rest)

    def _points(self, span: tuple[Ref, Ref] | None) -> None:
        """All points of a unit."""
        plan = self.plan
        if not plan.lanes_are_points:
            self._point()
            return
        assert plan.axis is not None
        if span is None:
            self._fixed_vectors(plan.axis, plan.blocks, self._point)
        else:
            step = plan.blocks * max(plan.lanes, 1)
            whole = divided(plan.axis.extent, step) is not None
            self._ranged_vectors(plan.axis, plan.blocks, *span, whole, self._point)

    # --- the vector axis -----------------------------------------------------------------------
    def _fixed_vectors(self, axis: Var, blocks: int, write: Callable[[], None]) -> None:
        """Run over a whole axis: whole iterations, then what is left in one go."""
        lanes = max(self.plan.lanes, 1)
        step = lanes * blocks
        if isinstance(axis.extent, Extent):
            whole = divided(axis.extent, step) is not None
            zero, limit = self._int(0), self._int(axis.extent)
            self._ranged_vectors(axis, blocks, zero, limit, whole, write)
            return
        main = axis.extent // step * step
        if main:
            with self._along(axis, self._int(0), self._int(main), step, nonempty=True):
                self.place.masks = [None] * blocks
                write()
        rest = axis.extent - main
        if rest:
            self.place.masks = [None] * (rest // lanes)
            if rest % lanes:
                self.place.masks.append(self._constant_mask(rest % lanes))
            with self.flow.block() as scope:
                # A constant, but one that belongs here: what depends on it is not hoisted.
                self.place.coordinates[axis] = Ref(str(main), dtypes.int64, 0, scope)
                write()
            del self.place.coordinates[axis]
        self.place.masks = [None]

    def _ranged_vectors(
        self, axis: Var, blocks: int, begin: Ref, end: Ref, whole: bool, write: Callable[[], None]
    ) -> None:
        """Run over [begin, end): whole iterations, then vector after vector under a mask."""
        builder = self.builder
        lanes = max(self.plan.lanes, 1)
        step = lanes * blocks
        main = end
        if not whole:
            length = builder.sub(end, begin)
            main = builder.sub(end, builder.unchecked("urem", length, self._int(step)))
        with self._along(axis, begin, main, step, nonempty=whole):
            self.place.masks = [None] * blocks
            write()
        if not whole:
            with self._along(axis, main, end, lanes, nonempty=False) as at:
                self.place.masks = [self._mask_below(builder.sub(end, at))]
                write()
        self.place.masks = [None]

    @contextlib.contextmanager
    def _along(self, axis: Var, begin: Ref, end: Ref, step: int, nonempty: bool) -> Iterator[Ref]:
        with self.flow.loop(begin, end, step, nonempty) as at:
            self.place.coordinates[axis] = at
            yield at
            del self.place.coordinates[axis]

    def _constant_mask(self, count: int) -> Ref | None:
        lanes = self.plan.lanes
        if not lanes:
            return None
        bits = ", ".join(f"i1 {'true' if lane < count else 'false'}" for lane in range(lanes))
        return Ref(f"<{bits}>", dtypes.bool_, lanes, self.builder.root)

    def _mask_below(self, count: Ref) -> Ref | None:
        """The first `count` lanes."""
        lanes = self.plan.lanes
        if not lanes:
            return None
        few = self.builder.minimum(count, self._int(lanes))
        numbers = self.builder.lane_numbers(1, dtypes.int32, lanes)
        return self.builder.lt(numbers, self.builder.cast(few, dtypes.int32))

    # --- stages --------------------------------------------------------------------------------
    def _point(self) -> None:
        """All stages of an outer point (or of a vector of them)."""
        self._results.clear()
        for stage in self.kernel.stages:
            if all(var.extent for var in stage.axes):
                self._stage(stage)
            else:
                self._finish(stage, {})

    def _stage(self, stage: Stage) -> None:
        accumulators: dict[tuple[int, Copy], Names] = {}
        values = postorder(stage_values(stage))
        with self.flow.block() as scope:
            outside, self.place.stage = self.place.stage, scope
            self._nest(stage, stage.axes, lambda: self._innermost(stage, values, accumulators))
            self.place.stage = outside
        self._finish(stage, accumulators)

    def _nest(self, stage: Stage, axes: tuple[Var, ...], write: Callable[[], None]) -> None:
        """The loops of a stage over the axes that are left."""
        if not axes:
            write()
            return
        axis, inner = axes[0], axes[1:]
        if not inner and axis == self.plan.axis:
            blocks = 1
            if self.plan.unrolled:
                blocks = stage_blocks(stage, self.plan.lanes, self.place.jams, axis.extent)
            self._fixed_vectors(axis, blocks, write)
            return
        with self._along(axis, self._int(0), self._int(axis.extent), 1, nonempty=True):
            self._nest(stage, inner, write)

    def _innermost(
        self,
        stage: Stage,
        values: list[Value],
        accumulators: dict[tuple[int, Copy], Names],
    ) -> None:
        body = Body(self.memory, self._results)
        body.evaluate(values)
        for reduction in stage.reductions:
            for copy in self.place.copies:
                names = self._accumulator(reduction, copy, accumulators)
                self._accumulate(reduction, body, copy, names)
        for store in stage.stores:
            for copy in self.place.copies:
                self.memory.store(store, body.at(store.value, copy), copy)
        for private in stage.privatised:
            self.privates.update(private, body)

    # --- reductions ----------------------------------------------------------------------------
    def _accumulator(
        self,
        reduction: Reduction,
        copy: Copy,
        accumulators: dict[tuple[int, Copy], Names],
    ) -> Names:
        """The memory of an accumulator, set to the identity where its stage begins."""
        key = reduction.number, copy
        if key not in accumulators:
            accumulators[key] = self.accumulators.make(
                reduction.combine, _dtypes(reduction), self.place.stage
            )
        return accumulators[key]

    def _accumulate(self, reduction: Reduction, body: Body, copy: Copy, names: Names) -> None:
        builder, lanes = self.builder, self.accumulators.lanes
        kinds = _dtypes(reduction)
        value = builder.widen(body.at(reduction.value, copy), lanes)
        new: Accumulator = (value,)
        if reduction.position is not None:
            position = builder.cast(self.memory.lanes(reduction.position, copy), kinds[1])
            new = (value, builder.widen(position, lanes))
        old = self.accumulators.fetch(names, kinds, lanes)
        mask = self.place.masks[copy.block] if lanes else None
        neutral = combine.start(builder, reduction.combine, kinds[0], kinds[-1], lanes)
        new = combine.where(builder, mask, new, neutral)
        self.accumulators.keep(names, combine.merge(builder, reduction.combine, new, old))

    def _finish(self, stage: Stage, accumulators: dict[tuple[int, Copy], Names]) -> None:
        """Turn accumulators into results."""
        builder = self.builder
        for reduction in stage.reductions:
            kinds = _dtypes(reduction)
            lanes = self.plan.lanes if self._is_vector_stage(stage) else 0
            for copy in self.place.copies:
                found = [
                    self.accumulators.fetch(names, kinds, lanes)
                    for (number, other), names in accumulators.items()
                    if number == reduction.number and self._belongs(other, copy)
                ]
                if not found:
                    own = self.accumulators.lanes
                    start = combine.start(builder, reduction.combine, kinds[0], kinds[-1], own)
                    found = [start]
                total = self.accumulators.join(reduction.combine, found)
                if not self.place.is_vector:
                    total = combine.across(builder, reduction.combine, total)
                self._results[reduction.number, copy] = builder.cast(total[-1], _result(reduction))

    def _is_vector_stage(self, stage: Stage) -> bool:
        if self.plan.lanes_are_points:
            return True
        return bool(stage.axes) and stage.axes[-1] == self.plan.axis

    def _belongs(self, other: Copy, copy: Copy) -> bool:
        """Whether an accumulator is a part of the result of a copy."""
        return other == copy if self.plan.lanes_are_points else other.jam == copy.jam

    # --- segments ------------------------------------------------------------------------------
    def _segments(self, name: str, begin: Ref, end: Ref) -> None:
        """Tiles of all segments in a row; each tile finds its segment, which only moves on."""
        (axis,) = self.kernel.outer
        sizes = self.kernel.segments
        prefix = [0]
        for size in sizes:
            prefix.append(prefix[-1] + -(-size // TILE))
        starts = self._table(f"{name}.starts", prefix)
        lengths = self._table(f"{name}.lengths", list(sizes))
        self._storage += ["  %segment = alloca i64", "  store i64 0, ptr %segment"]
        builder = self.builder
        with self.flow.loop(begin, end) as tile:
            segment = self._find_segment(starts, tile)
            limit = self._look_up(lengths, segment)
            self._open_segment(segment, limit)
            start = self._look_up(starts, segment)
            first = builder.mul(builder.sub(tile, start), self._int(TILE))
            after = builder.minimum(builder.add(first, self._int(TILE)), limit)
            step = self.plan.blocks * max(self.plan.lanes, 1)
            whole = all(size % step == 0 for size in sizes)
            self._ranged_vectors(axis, self.plan.blocks, first, after, whole, self._point)

    def _table(self, name: str, numbers: list[int]) -> str:
        items = ", ".join(f"i64 {number}" for number in numbers)
        text = f"{name} = private unnamed_addr constant [{len(numbers)} x i64] [{items}]"
        self.tables.append(text)
        return name

    def _look_up(self, table: str, index: Ref) -> Ref:
        at = self.builder.offset(Pointer(table, self.builder.root), "i64", index)
        text = f"load i64, ptr {at.text}"
        return Ref(self.builder.emit(at.scope, text), dtypes.int64, 0, at.scope)

    def _find_segment(self, starts: str, tile: Ref) -> Ref:
        """The segment of a tile: the last one that starts at or before it."""
        scope = self.place.scope
        found = self.flow.search("%segment", starts, tile)
        return Ref(found, dtypes.int64, 0, scope)

    def _open_segment(self, segment: Ref, elements: Ref) -> None:
        argument = 0
        for number, use in enumerate(self.kernel.buffers):
            if not use.is_argument:
                continue
            if use.shared:
                argument += 1
                continue
            at = self.builder.add(segment, self._int(argument))
            self.place.pointers[number] = self._argument(at)
            self._limit(number, elements)
            argument += len(self.kernel.segments)


def _dtypes(reduction: Reduction) -> Kinds:
    """What an accumulator holds: the value and, for argmax and argmin, the position."""
    dtype = reduction.value.dtype
    if reduction.position is None:
        return (dtype,)
    return dtype, _position_dtype(reduction.position)


def _position_dtype(position: Expr) -> dtypes.DType:
    return dtypes.int32 if position.hi < (1 << 31) - 1 else dtypes.int64


def _result(reduction: Reduction) -> dtypes.DType:
    return reduction.value.dtype if reduction.position is None else dtypes.int64
