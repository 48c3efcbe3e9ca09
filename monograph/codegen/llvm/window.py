"""From a window to LLVM text: the loops over items and blocks around products and kernels.

`void name(ptr args)` lets each worker run its items. A worker has scratch of its own: the windows,
then the packed operands. A kernel's body is called for the rows of a block, with arguments such
that its usual addresses fall into the window: the pointer of a window is moved back by as many
rows as come before the block. Where items are too few, one adds only a part of the rows of a sum;
the partial sums lie behind the workers' scratch and are added up afterwards, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...ir.extent import Extent
from ..kernel import Kernel
from ..window import ALIGNMENT, GROUP, External, Inside, Multiply, Place, Rows, Window
from . import plan as planning
from .body import BodyWriter
from .machine import Machine
from .product import (
    Pack,
    Product,
    Stride,
    Tile,
    declarations,
    packed_elements,
    tile_for,
    write_pack,
    write_product,
)
from .sizes import Sizes
from .text import Text

GRAIN = 64  # rows of a sum that are worth a thread's attention
GIVEN = "%given."  # before the names of arguments for sizes that vary


def worker_bytes(window: Window, vector_bits: int) -> int:
    """Scratch of one worker."""
    tile = tile_for(vector_bits, window.dtype.itemsize)
    packs = [_packed_bytes(tile, pack) for pack in packs_of(window).values()]
    return sum(map(_round, [*window.slot_bytes, *packs]))


def with_scratch(window: Window, vector_bits: int) -> Window:
    """The window with the size of its scratch memory filled in."""
    *others, scratch = window.buffers
    nbytes = window.workers * worker_bytes(window, vector_bits)
    nbytes += sum(_partial_bytes(window, m) for m in _partial(window))
    return replace(window, buffers=(*others, replace(scratch, elements=nbytes // 4)))


def _round(nbytes: int) -> int:
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


@dataclass(frozen=True)
class Packed:
    """An operand that is packed: how far its columns lie apart, and its sizes."""

    step: int
    columns: int
    depth: int


def packs_of(window: Window) -> dict[Multiply, Packed]:
    """Products whose second operand must be packed: its columns do not lie side by side."""
    found: dict[Multiply, Packed] = {}
    for m in window.products:
        if isinstance(m.b, External) and m.b.column != 1:
            columns, depth = window.columns, m.free
            if m.kind not in ("produce", "plain"):
                columns, depth = depth, columns
            found[m] = Packed(m.b.column, columns, depth)
    return found


def _packed_bytes(tile: Tile, pack: Packed) -> int:
    return tile.itemsize * packed_elements(tile, pack.columns, pack.depth)


def _named(sizes: dict[str, int]) -> dict[str, Stride]:
    """Sizes as they stand in code: those that vary are arguments."""
    return {name: f"{GIVEN}{name}" if isinstance(n, Extent) else n for name, n in sizes.items()}


def _matrix(window: Window, m: Multiply) -> tuple[int, int]:
    """(rows, columns) of the matrix that a product sums up."""
    return (m.free, window.columns) if m.kind == "sum_rows" else (window.columns, m.free)


def _partial(window: Window) -> list[Multiply]:
    """Products whose sums are made in parts."""
    return [m for m in window.products if m.sums and window.pieces != 1]


def _partial_bytes(window: Window, m: Multiply) -> int:
    height, width = _matrix(window, m)
    return window.items * _round(window.dtype.itemsize * height * width)


def regions_of(window: Window) -> int:
    """How many times a launch splits its work over threads."""
    sums = [window.total // m.rows * _matrix(window, m)[0] for m in _partial(window)]
    return sum(units > grain for units, grain in [(window.workers, 1), *((n, GRAIN) for n in sums)])


class WindowWriter:
    """Writes the functions of one window."""

    def __init__(self, window: Window, machine: Machine) -> None:
        self.window = window
        self.machine = machine
        self.tile: Tile = tile_for(machine.vector_bits, window.dtype.itemsize)
        self.sizes = Sizes(len(window.buffers) + machine.bounds)
        self.functions: list[str] = []
        self.declarations = declarations(self.tile) | {
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "declare i64 @llvm.smax.i64(i64, i64)",
        }
        self.packs = packs_of(window)
        self.tables: dict[int, list[Extent]] = {}  # by step, the sizes that its kernel reads
        self._names: dict[Product | Pack, str] = {}

    def write(self) -> None:
        """Fill `functions` and `declarations`."""
        window = self.window
        for number, step in enumerate(window.steps):
            if isinstance(step, Rows):
                self._kernel(step.kernel, number)
        self.functions.append(self._body())
        calls: list[tuple[str, int, int]] = [(f"{window.name}.body", window.workers, 1)]
        for number, m in enumerate(_partial(window)):
            name = f"{window.name}.sum{number}"
            self.functions.append(self._sum_up(name, m))
            calls.append((name, window.total // m.rows * _matrix(window, m)[0], GRAIN))
        text = Text(self.sizes)
        for name, units, grain in calls:
            count = text.number(units)
            if window.workers > 1:
                called = f"@mg_parallel(ptr @{name}, ptr %args, i64 {count}, i64 {grain})"
            else:
                called = f"@{name}(ptr %args, i64 0, i64 {count})"
            text.do(f"call void {called}")
        self.functions.append(text.function(window.name, "ptr %args", linkage=""))

    def _kernel(self, kernel: Kernel, number: int) -> None:
        passed = sum(use.is_argument for use in kernel.buffers)
        sizes = Sizes(passed + self.machine.bounds)
        plan = planning.make(kernel, self.machine)
        assert plan.pieces == 1 and not plan.lanes_are_points and plan.jams == 1
        writer = BodyWriter(kernel, plan, frozenset(), sizes, self.machine.bounds)
        self.functions += [writer.write(f"@{self.window.name}.{number}"), *writer.tables]
        self.tables[number] = list(sizes.entries)
        self.declarations |= writer.builder.declarations

    # --- products ---

    def _call_code(self, code: Product | Pack, pointers: str, numbers: dict[str, int]) -> None:
        """Call the function that does this; equal ones are written once."""
        name = self._names.get(code)
        if name is None:
            kind = "product" if isinstance(code, Product) else "pack"
            name = self._names[code] = f"{self.window.name}.{kind}{len(self._names)}"
            if isinstance(code, Product):
                self.functions += write_product(name, code)
            else:
                self.functions.append(write_pack(name, code))
        told = [
            f", i64 {self.text.number(numbers[each.removeprefix(GIVEN)])}"
            for each in code.arguments
        ]
        self.text.do(f"call void @{name}({pointers}{''.join(told)})")

    def _product(self, m: Multiply) -> tuple[Product, dict[str, int]]:
        """The code of a product, and its strides."""
        window = self.window
        width = window.columns
        a_row, a_column = (m.a.row, m.a.column) if isinstance(m.a, External) else (width, 1)
        if m.kind == "sum_columns":
            a_row, a_column = 1, width
        strides = {
            "a_row": a_row, "a_column": a_column,
            "b_row": m.b.row if isinstance(m.b, External) else width,
            "c_row": m.c.row if isinstance(m.c, External) else width,
        }  # fmt: skip
        if m in self.packs:
            strides |= {"packed": self.packs[m].depth, "b_row": self.tile.width}
        if m in _partial(window):
            strides["c_row"] = _matrix(window, m)[1]
        rows, columns = self._row_counts(), self._column_counts()
        free = None if isinstance(m.free, Extent) else (m.free,)
        heights, widths = {
            "produce": (rows, columns), "plain": (rows, columns), "consume": (rows, free),
            "sum_columns": (columns, free), "sum_rows": (free, columns),
        }[m.kind]  # fmt: skip
        named = _named(strides)
        product = Product(
            self.tile, named["a_row"], named["a_column"], named["b_row"], named["c_row"],
            named.get("packed"), m.sums, heights, widths,
        )  # fmt: skip
        return product, strides

    def _row_counts(self) -> tuple[int, ...] | None:
        """How many rows a block may have; None: any number."""
        window = self.window
        if any(isinstance(n, Extent) for n in (window.period, window.item, window.block)):
            return None
        spans = {window.period}
        if window.split:
            spans = {window.item, window.period - (window.parts - 1) * window.item}
        counts = {min(window.block, span) for span in spans}
        counts |= {span % window.block for span in spans}
        return tuple(sorted(counts - {0}))

    def _column_counts(self) -> tuple[int, ...] | None:
        """How many columns a block may see: all, or whole groups; None: any number."""
        whole = self.window.columns
        if isinstance(whole, Extent):
            return None
        if self.window.visible is None:
            return (whole,)
        return (whole, *range(GROUP, whole, GROUP))

    # --- the body ---

    def _body(self) -> str:
        """What a range of workers does."""
        window = self.window
        text = self.text = Text(self.sizes)
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
        self.limits: list[str] = []  # places of tables that hold how many columns there are
        for number, step in enumerate(self.window.steps):
            if not isinstance(step, Rows):
                continue
            table = self.tables[number]
            count = len(step.arguments) + bounds + bool(table)
            self.text.entry.append(f"  %args{number} = alloca [{count} x ptr]")
            for place, (kind, which) in enumerate(step.arguments):
                if kind == "buffer":
                    self._set(number, place, self.pointers[which])
            if bounds:
                status = self.text.argument(len(self.window.buffers))
                self._set(number, len(step.arguments), status)
            if table:
                self._set(number, count - 1, self._table(number, step.kernel, table))

    def _table(self, number: int, kernel: Kernel, table: Sequence[Any]) -> str:
        """The sizes that a kernel reads. How many columns a block sees is filled in for each."""
        name = f"%sizes{number}"
        self.text.entry.append(f"  {name} = alloca [{len(table)} x i64]")
        limit = None
        if self.window.visible is not None:
            assert kernel.schedule.vector is not None
            limit = kernel.schedule.vector.extent
        for place, size in enumerate(table):
            at = self.text.emit(f"getelementptr i64, ptr {name}, i64 {place}")
            if size == limit:
                self.limits.append(at)
                continue
            if isinstance(limit, Extent) and size.mentions(limit):
                raise TypeError("a number that depends on how many columns a block sees")
            self.text.do(f"store i64 {self.text.number(size)}, ptr {at}")
        return name

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
            offset += _round(_packed_bytes(self.tile, pack))

    def _item(self, item: str) -> None:
        window, text = self.window, self.text
        periods = 1
        if not window.split:
            periods = window.item // window.period
            low = text.mul(item, window.item)
            high = text.add(low, window.item)
        else:
            first = text.mul(text.div(item, window.parts), window.period)
            low = text.add(first, text.mul(text.rem(item, window.parts), window.item))
            end = text.add(first, window.period)
            high = text.least(text.add(low, window.item), end)
        self.sums = {m: self._cleared(m, item, low) for m in window.products if m.sums}
        with text.loop("0", periods, 1) as number:
            row = text.add(low, text.mul(number, window.period))
            first = text.sub(row, text.rem(row, window.period))
            end = text.least(text.add(first, window.period), high)
            for m, pointer in self.packed.items():
                assert isinstance(m.b, External)
                source = self._address(m.b, row, None)
                pack = self.packs[m]
                sizes = {"step": pack.step, "columns": pack.columns, "depth": pack.depth}
                code = Pack(self.tile, **_named(sizes))
                self._call_code(code, f"ptr {pointer}, ptr {source}", sizes)
            with text.loop(row, end, window.block) as block:
                self._block(block, end, first)

    def _cleared(self, m: Multiply, item: str, row: str) -> str:
        """Where the sums of an item lie; they begin at 0."""
        assert isinstance(m.c, External)
        text, tile = self.text, self.tile
        height, width = _matrix(self.window, m)
        if m in _partial(self.window):
            start = self._partial_at(self.pointers[-1], m, item)
            text.zero(start, tile.itemsize * width * height)
            return start
        start = self._address(m.c, row, None)
        with text.loop("0", height, 1) as at:
            there = text.elements(start, tile.element, text.mul(at, m.c.row))
            text.zero(there, tile.itemsize * width)
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
        nbytes = _round(self.tile.itemsize * height * width)
        return text.bytes(scratch, text.add(text.mul(item, nbytes), offset))

    def _address(self, place: External, row: str, along: tuple[int, int] | None) -> str:
        """Where the operand's matrix begins for a row; `along` (rows of a matrix, stride): the
        row's own place in it."""
        text = self.text
        offset = text.number(place.offset)
        for batch in place.batch:
            at = text.rem(text.div(row, batch.radix), batch.extent)
            offset = text.add(offset, text.mul(at, batch.stride))
        if along is not None:
            offset = text.add(offset, text.mul(text.rem(row, along[0]), along[1]))
        return text.elements(self.pointers[place.buffer], self.tile.element, offset)

    def _block(self, row: str, end: str, first: str) -> None:
        """All steps for the rows of one block."""
        window, text = self.window, self.text
        count = text.least(text.sub(end, row), window.block)
        columns = text.number(window.columns)
        if window.visible is not None:
            seen = text.add(text.add(text.sub(row, first), count), window.visible)
            groups = text.div(text.add(seen, GROUP - 1), GROUP)
            columns = text.least(text.mul(groups, GROUP), window.columns)
            for place in self.limits:
                text.do(f"store i64 {columns}, ptr {place}")
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
        free = self.text.number(m.free)
        sizes = {
            "produce": (count, columns, free), "plain": (count, columns, free),
            "consume": (count, free, columns),
            "sum_columns": (columns, free, count), "sum_rows": (free, columns, count),
        }[m.kind]  # fmt: skip
        a = self._operand(m, m.a, 0, row)
        b = self.packed[m] if m in self.packed else self._operand(m, m.b, 1, row)
        c = self.sums[m] if m.sums else self._operand(m, m.c, 2, row)
        told = ", ".join(f"i64 {size}" for size in sizes)
        product, strides = self._product(m)
        self._call_code(product, f"ptr {a}, ptr {b}, ptr {c}, {told}", strides)

    def _operand(self, m: Multiply, place: Place, position: int, row: str) -> str:
        if isinstance(place, Inside):
            return self.inside[place.number]
        # How it steps with the rows of the space, if it does.
        stride = {
            ("produce", 0): place.row, ("plain", 0): place.row, ("plain", 2): place.row,
            ("consume", 2): place.row,
            ("sum_columns", 1): place.row, ("sum_rows", 0): place.column,
        }.get((m.kind, position))  # fmt: skip
        return self._address(place, row, None if stride is None else (m.rows, stride))

    # --- sums in parts ---

    def _sum_up(self, name: str, m: Multiply) -> str:
        """Add the parts of a sum; a unit is one row of one matrix."""
        assert isinstance(m.c, External)
        text = self.text = Text(self.sizes)
        window, tile, lanes = self.window, self.tile, self.tile.lanes
        self.pointers = [text.argument(n) for n in range(len(window.buffers))]
        vector, mask = tile.vector, f"<{lanes} x i1>"
        numbers = ", ".join(f"i64 {n}" for n in range(lanes))
        height, width = _matrix(window, m)
        text.entry.append(f"  %total = alloca {vector}")
        with text.loop("%begin", "%end", 1) as unit:
            matrix, row = text.div(unit, height), text.rem(unit, height)
            target = self._address(m.c, text.mul(matrix, m.rows), None)
            target = text.elements(target, tile.element, text.mul(row, m.c.row))
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
                    at = text.elements(part, tile.element, text.add(text.mul(row, width), column))
                    more = text.emit(
                        f"call {vector} @llvm.masked.load.{tile.suffix}.p0(ptr {at}, "
                        f"i32 {tile.itemsize}, {mask} {inside}, {vector} zeroinitializer)"
                    )
                    held = text.emit(f"load {vector}, ptr %total")
                    total = text.emit(f"fadd {vector} {held}, {more}")
                    text.do(f"store {vector} {total}, ptr %total")
                total = text.emit(f"load {vector}, ptr %total")
                at = text.elements(target, tile.element, column)
                text.do(
                    f"call void @llvm.masked.store.{tile.suffix}.p0({vector} {total}, ptr {at}, "
                    f"i32 {tile.itemsize}, {mask} {inside})"
                )
        return text.function(name, "ptr %args, i64 %begin, i64 %end")
