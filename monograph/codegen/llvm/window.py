"""From a window to LLVM text: the loops over items and blocks around products and kernels.

`void name(ptr args)` lets each worker run its items. A worker has scratch of its own: the windows,
then the packed operands. A kernel's body is called for the rows of a block, with arguments such
that its usual addresses fall into the window: the pointer of a window is moved back by as many
rows as come before the block. Where items are too few, one adds only a part of the rows of a sum;
the partial sums lie behind the workers' scratch and are added up afterwards, in their order.
"""

from __future__ import annotations

from dataclasses import replace

from ..kernel import Kernel
from ..window import ALIGNMENT, GROUP, External, Inside, Multiply, Place, Rows, Window
from . import plan as planning
from .body import BodyWriter
from .machine import Machine
from .product import Pack, Product, Tile, declarations, tile_for, write_pack, write_product
from .sizes import Sizes
from .text import Text

GRAIN = 64  # rows of a sum that are worth a thread's attention


def worker_bytes(window: Window, vector_bits: int) -> int:
    """Scratch of one worker."""
    packs = packs_of(window, tile_for(vector_bits))
    return sum(map(_round, [*window.slot_bytes, *(4 * pack.elements for pack in packs.values())]))


def with_scratch(window: Window, vector_bits: int) -> Window:
    """The window with the size of its scratch memory filled in."""
    *others, scratch = window.buffers
    nbytes = window.workers * worker_bytes(window, vector_bits)
    nbytes += sum(_partial_bytes(window, m) for m in _partial(window))
    return replace(window, buffers=(*others, replace(scratch, elements=nbytes // 4)))


def _round(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def packs_of(window: Window, tile: Tile) -> dict[Multiply, Pack]:
    """Products whose second operand must be packed: its columns do not lie side by side."""
    found: dict[Multiply, Pack] = {}
    for m in window.products:
        if isinstance(m.b, External) and m.b.column != 1:
            sizes = (window.columns, m.free)
            columns, depth = sizes if m.kind == "produce" else reversed(sizes)
            found[m] = Pack(tile, m.b.column, columns, depth)
    return found


def _matrix(window: Window, m: Multiply) -> tuple[int, int]:
    """(rows, columns) of the matrix that a product sums up."""
    return (m.free, window.columns) if m.kind == "sum_rows" else (window.columns, m.free)


def _partial(window: Window) -> list[Multiply]:
    """Products whose sums are made in parts."""
    return [m for m in window.products if m.sums and window.pieces > 1]


def _partial_bytes(window: Window, m: Multiply) -> int:
    height, width = _matrix(window, m)
    return window.items * _round(4 * height * width)


def regions_of(window: Window) -> int:
    """How many times a launch splits its work over threads."""
    sums = [window.total // m.rows * _matrix(window, m)[0] for m in _partial(window)]
    return sum(units > grain for units, grain in [(window.workers, 1), *((n, GRAIN) for n in sums)])


class WindowWriter:
    """Writes the functions of one window."""

    def __init__(self, window: Window, machine: Machine) -> None:
        self.window = window
        self.machine = machine
        self.tile: Tile = tile_for(machine.vector_bits)
        self.functions: list[str] = []
        self.declarations = declarations(self.tile.lanes) | {
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare i64 @llvm.smax.i64(i64, i64)",
        }
        self.packs = packs_of(window, self.tile)
        self._names: dict[Product | Pack, str] = {}

    def write(self) -> None:
        """Fill `functions` and `declarations`."""
        window = self.window
        for number, step in enumerate(window.steps):
            if isinstance(step, Rows):
                self._kernel(step.kernel, f"{window.name}.{number}")
        self.functions.append(self._body())
        calls = [self._call(f"{window.name}.body", window.workers)]
        for number, m in enumerate(_partial(window)):
            name = f"{window.name}.sum{number}"
            self.functions.append(self._sum_up(name, m))
            units = window.total // m.rows * _matrix(window, m)[0]
            calls.append(self._call(name, units, GRAIN))
        lines = "\n".join(f"  call void {call}" for call in calls)
        self.functions.append(
            f"define void @{window.name}(ptr %args) #0 {{\n{lines}\n  ret void\n}}"
        )

    def _call(self, name: str, units: int, grain: int = 1) -> str:
        if self.window.workers > 1:
            return f"@mg_parallel(ptr @{name}, ptr %args, i64 {units}, i64 {grain})"
        return f"@{name}(ptr %args, i64 0, i64 {units})"

    def _kernel(self, kernel: Kernel, name: str) -> None:
        passed = sum(use.is_argument for use in kernel.buffers)
        sizes = Sizes(passed + self.machine.bounds)
        plan = planning.make(kernel, self.machine)
        assert plan.pieces == 1 and not plan.lanes_are_points and plan.jams == 1
        writer = BodyWriter(kernel, plan, frozenset(), sizes, self.machine.bounds)
        self.functions += [writer.write(f"@{name}"), *writer.tables]
        assert len(sizes.entries) <= 1, "columns are the only size that varies"
        self.declarations |= writer.builder.declarations

    # --- products ---

    def _name_of(self, code: Product | Pack) -> str:
        """The function that does this; equal ones are written once."""
        name = self._names.get(code)
        if name is None:
            kind = "product" if isinstance(code, Product) else "pack"
            name = self._names[code] = f"{self.window.name}.{kind}{len(self._names)}"
            if isinstance(code, Product):
                self.functions += write_product(name, code)
            else:
                self.functions.append(write_pack(name, code))
        return name

    def _product(self, m: Multiply) -> Product:
        """The strides and sizes of a product's code."""
        window = self.window
        width = window.columns
        packed = None
        b_row = m.b.row if isinstance(m.b, External) else width
        if m in self.packs:
            packed, b_row = self.packs[m].depth, self.tile.width
        a_row, a_column = (m.a.row, m.a.column) if isinstance(m.a, External) else (width, 1)
        if m.kind == "sum_columns":
            a_row, a_column = 1, width
        rows, columns = self._row_counts(), self._column_counts()
        heights, widths = {
            "produce": (rows, columns), "consume": (rows, (m.free,)),
            "sum_columns": (columns, (m.free,)), "sum_rows": ((m.free,), columns),
        }[m.kind]  # fmt: skip
        c_row = m.c.row if isinstance(m.c, External) else width
        if m in _partial(window):
            c_row = _matrix(window, m)[1]
        return Product(self.tile, a_row, a_column, b_row, c_row, packed, m.sums, heights, widths)

    def _row_counts(self) -> tuple[int, ...]:
        """How many rows a block may have."""
        window = self.window
        spans = {window.period}
        if window.item < window.period:
            spans = {window.item, window.period - (window.parts - 1) * window.item}
        counts = {min(window.block, span) for span in spans}
        counts |= {span % window.block for span in spans}
        return tuple(sorted(counts - {0}))

    def _column_counts(self) -> tuple[int, ...]:
        """How many columns a block may see: all, or whole groups."""
        whole = self.window.columns
        if self.window.visible is None:
            return (whole,)
        return (whole, *range(GROUP, whole, GROUP))

    # --- the body ---

    def _body(self) -> str:
        """What a range of workers does."""
        window = self.window
        text = self.text = Text()
        text.entry.append("  %sizes = alloca i64")
        self.pointers = [text.argument(n) for n in range(len(window.buffers))]
        self._open_kernels()
        with text.loop("%begin", "%end", 1) as worker:
            per_worker = worker_bytes(window, self.machine.vector_bits)
            self._open_scratch(text.bytes(self.pointers[-1], text.mul(worker, per_worker)))
            with text.loop(worker, window.items, window.workers) as item:
                self._item(item)
        return text.function(f"{window.name}.body", "ptr %args, i64 %begin, i64 %end")

    def _open_kernels(self) -> None:
        """An array of arguments for each kernel; what does not move is put there once."""
        bounds = self.machine.bounds
        limited = self.window.visible is not None
        for number, step in enumerate(self.window.steps):
            if not isinstance(step, Rows):
                continue
            count = len(step.arguments) + bounds + limited
            self.text.entry.append(f"  %args{number} = alloca [{count} x ptr]")
            for place, (kind, which) in enumerate(step.arguments):
                if kind == "buffer":
                    self._set(number, place, self.pointers[which])
            if bounds:
                status = self.text.argument(len(self.window.buffers))
                self._set(number, len(step.arguments), status)
            if limited:  # a table with one entry: how many columns there are
                self._set(number, count - 1, "%sizes")

    def _set(self, number: int, place: int, pointer: str) -> None:
        at = self.text.emit(f"getelementptr ptr, ptr %args{number}, i64 {place}")
        self.text.do(f"store ptr {pointer}, ptr {at}")

    def _open_scratch(self, base: str) -> None:
        window = self.window
        offset = 0
        slots = []
        for nbytes in window.slot_bytes:
            slots.append(self.text.bytes(base, offset))
            offset += _round(nbytes)
        self.inside = [slots[slot] for slot in window.slots]
        self.packed: dict[Multiply, str] = {}
        for m, pack in self.packs.items():
            self.packed[m] = self.text.bytes(base, offset)
            offset += _round(4 * pack.elements)

    def _item(self, item: str) -> None:
        window, text = self.window, self.text
        if window.item >= window.period:
            low = text.mul(item, window.item)
            high = text.add(low, window.item)
        else:
            first = text.mul(text.div(item, window.parts), window.period)
            low = text.add(first, text.mul(text.rem(item, window.parts), window.item))
            end = text.add(first, window.period)
            high = text.least(text.add(low, window.item), end)
        self.sums = {m: self._cleared(m, item, low) for m in window.products if m.sums}
        periods = max(1, window.item // window.period)
        with text.loop("0", periods, 1) as number:
            row = text.add(low, text.mul(number, window.period))
            first = text.sub(row, text.rem(row, window.period))
            end = text.least(text.add(first, window.period), high)
            for m, pointer in self.packed.items():
                assert isinstance(m.b, External)
                source = self._address(m.b, row, None)
                text.do(f"call void @{self._name_of(self.packs[m])}(ptr {pointer}, ptr {source})")
            with text.loop(row, end, window.block) as block:
                self._block(block, end, first)

    def _cleared(self, m: Multiply, item: str, row: str) -> str:
        """Where the sums of an item lie; they begin at 0."""
        assert isinstance(m.c, External)
        text = self.text
        height, width = _matrix(self.window, m)
        if m in _partial(self.window):
            start = self._partial_at(self.pointers[-1], m, item)
            text.zero(start, 4 * width * height)
            return start
        start = self._address(m.c, row, None)
        with text.loop("0", height, 1) as at:
            text.zero(text.floats(start, text.mul(at, m.c.row)), 4 * width)
        return start

    def _partial_at(self, scratch: str, m: Multiply, item: str) -> str:
        """Where an item's part of a sum lies: behind the scratch of all workers."""
        window, text = self.window, self.text
        offset = window.workers * worker_bytes(window, self.machine.vector_bits)
        for other in _partial(window):
            if other == m:
                break
            offset += _partial_bytes(window, other)
        height, width = _matrix(window, m)
        return text.bytes(scratch, text.add(text.mul(item, _round(4 * height * width)), offset))

    def _address(self, place: External, row: str, along: tuple[int, int] | None) -> str:
        """Where the operand's matrix begins for a row; `along` (rows of a matrix, stride): the
        row's own place in it."""
        text = self.text
        offset = str(place.offset)
        for batch in place.batch:
            at = text.rem(text.div(row, batch.radix), batch.extent)
            offset = text.add(offset, text.mul(at, batch.stride))
        if along is not None:
            offset = text.add(offset, text.mul(text.rem(row, along[0]), along[1]))
        return text.floats(self.pointers[place.buffer], offset)

    def _block(self, row: str, end: str, first: str) -> None:
        """All steps for the rows of one block."""
        window, text = self.window, self.text
        count = text.least(text.sub(end, row), window.block)
        columns = str(window.columns)
        if window.visible is not None:
            seen = text.add(text.add(text.sub(row, first), count), window.visible)
            groups = text.div(text.add(seen, GROUP - 1), GROUP)
            columns = text.least(text.mul(groups, GROUP), window.columns)
            text.do(f"store i64 {columns}, ptr %sizes")
        for number, step in enumerate(window.steps):
            if isinstance(step, Rows):
                self._call_kernel(number, step, row, count)
            else:
                self._multiply(step, row, count, columns)

    def _call_kernel(self, number: int, step: Rows, row: str, count: str) -> None:
        text = self.text
        uses = [use for use in step.kernel.buffers if use.is_argument]
        for place, ((kind, which), use) in enumerate(zip(step.arguments, uses, strict=True)):
            if kind == "inside":
                before = text.mul(row, self.window.columns * use.dtype.itemsize)
                self._set(number, place, text.bytes(self.inside[which], text.sub(0, before)))
        last = text.add(row, count)
        name = f"{self.window.name}.{number}"
        text.do(f"call void @{name}(ptr %args{number}, i64 {row}, i64 {last})")

    def _multiply(self, m: Multiply, row: str, count: str, columns: str) -> None:
        free = str(m.free)
        sizes = {
            "produce": (count, columns, free), "consume": (count, free, columns),
            "sum_columns": (columns, free, count), "sum_rows": (free, columns, count),
        }[m.kind]  # fmt: skip
        a = self._operand(m, m.a, 0, row)
        b = self.packed[m] if m in self.packed else self._operand(m, m.b, 1, row)
        c = self.sums[m] if m.sums else self._operand(m, m.c, 2, row)
        told = ", ".join(f"i64 {size}" for size in sizes)
        name = self._name_of(self._product(m))
        self.text.do(f"call void @{name}(ptr {a}, ptr {b}, ptr {c}, {told})")

    def _operand(self, m: Multiply, place: Place, position: int, row: str) -> str:
        if isinstance(place, Inside):
            return self.inside[place.number]
        # How it steps with the rows of the space, if it does.
        stride = {
            ("produce", 0): place.row, ("consume", 2): place.row,
            ("sum_columns", 1): place.row, ("sum_rows", 0): place.column,
        }.get((m.kind, position))  # fmt: skip
        return self._address(place, row, None if stride is None else (m.rows, stride))

    # --- sums in parts ---

    def _sum_up(self, name: str, m: Multiply) -> str:
        """Add the parts of a sum; a unit is one row of one matrix."""
        assert isinstance(m.c, External)
        text = self.text = Text()
        window, lanes = self.window, self.tile.lanes
        self.pointers = [text.argument(n) for n in range(len(window.buffers))]
        vector, mask = f"<{lanes} x float>", f"<{lanes} x i1>"
        numbers = ", ".join(f"i64 {n}" for n in range(lanes))
        height, width = _matrix(window, m)
        text.entry.append(f"  %total = alloca {vector}")
        with text.loop("%begin", "%end", 1) as unit:
            matrix, row = text.div(unit, height), text.rem(unit, height)
            target = self._address(m.c, text.mul(matrix, m.rows), None)
            target = text.floats(target, text.mul(row, m.c.row))
            first = text.mul(matrix, window.pieces)
            with text.loop("0", width, lanes) as column:
                left = text.emit(
                    f"insertelement <{lanes} x i64> poison, i64 {text.sub(width, column)}, i64 0"
                )
                left = text.emit(
                    f"shufflevector <{lanes} x i64> {left}, <{lanes} x i64> poison, "
                    f"<{lanes} x i32> zeroinitializer"
                )
                inside = text.emit(f"icmp slt <{lanes} x i64> <{numbers}>, {left}")
                text.do(f"store {vector} zeroinitializer, ptr %total")
                with text.loop("0", window.pieces, 1) as piece:
                    part = self._partial_at(self.pointers[-1], m, text.add(first, piece))
                    at = text.floats(part, text.add(text.mul(row, width), column))
                    more = text.emit(
                        f"call {vector} @llvm.masked.load.v{lanes}f32.p0(ptr {at}, i32 4, "
                        f"{mask} {inside}, {vector} zeroinitializer)"
                    )
                    held = text.emit(f"load {vector}, ptr %total")
                    total = text.emit(f"fadd {vector} {held}, {more}")
                    text.do(f"store {vector} {total}, ptr %total")
                total = text.emit(f"load {vector}, ptr %total")
                at = text.floats(target, column)
                text.do(
                    f"call void @llvm.masked.store.v{lanes}f32.p0({vector} {total}, ptr {at}, "
                    f"i32 4, {mask} {inside})"
                )
        return text.function(name, "ptr %args, i64 %begin, i64 %end")
