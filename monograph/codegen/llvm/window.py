"""From a window to LLVM text: the loops over items and blocks around products and kernels.

`void name(ptr args)` lets each worker run its items. A worker has scratch of its own: the windows,
then the packed operands. A kernel's body is called for the rows of a block, with arguments such
that its usual addresses fall into the window: the pointer of a window is moved back by as many
rows as come before the block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from ..kernel import Kernel
from ..window import (
    ALIGNMENT,
    GROUP,
    External,
    Inside,
    Multiply,
    Place,
    Rows,
    Window,
)
from . import plan as planning
from .body import BodyWriter
from .machine import Machine
from .product import Pack, Product, Tile, declarations, tile_for, write_pack, write_product
from .sizes import Sizes


def worker_bytes(window: Window, vector_bits: int) -> int:
    """Scratch of one worker."""
    packs = packs_of(window, tile_for(vector_bits))
    return sum(map(_round, [*window.slot_bytes, *(4 * pack.elements for pack in packs.values())]))


def _round(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def packs_of(window: Window, tile: Tile) -> dict[External, Pack]:
    """Second operands of products that must be packed: their columns do not lie side by side."""
    found: dict[External, Pack] = {}
    for m in window.products:
        if isinstance(m.b, External) and m.b.column != 1:
            sizes = (window.columns, m.free)
            columns, depth = sizes if m.kind == "produce" else reversed(sizes)
            found[m.b] = Pack(tile, m.b.column, columns, depth)
    return found


class WindowWriter:
    """Writes the functions of one window."""

    def __init__(self, window: Window, machine: Machine) -> None:
        self.window = window
        self.machine = machine
        self.tile: Tile = tile_for(machine.vector_bits)
        self.functions: list[str] = []
        self.declarations = declarations(self.tile.lanes) | {
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
        }
        self.lines: list[str] = []
        self.entry: list[str] = []
        self._count = 0
        self._names: dict[Product | Pack, str] = {}
        self.packs = packs_of(window, self.tile)

    def write(self) -> None:
        """Fill `functions` and `declarations`."""
        window = self.window
        for number, step in enumerate(window.steps):
            if isinstance(step, Rows):
                self._kernel(step.kernel, f"{window.name}.{number}")
            else:
                self._name_of(self._product(step))
        for pack in self.packs.values():
            self._name_of(pack)
        self.functions.append(self._body())
        body = f"@{window.name}.body"
        call = (
            f"@mg_parallel(ptr {body}, ptr %args, i64 {window.workers}, i64 1)"
            if window.workers > 1
            else f"{body}(ptr %args, i64 0, i64 1)"
        )
        self.functions.append(
            f"define void @{window.name}(ptr %args) #0 {{\n  call void {call}\n  ret void\n}}"
        )

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
        b_row = width
        if isinstance(m.b, External):
            b_row = m.b.row
            if m.b in self.packs:
                packed, b_row = self.packs[m.b].depth, self.tile.width
        a_row, a_column = (m.a.row, m.a.column) if isinstance(m.a, External) else (width, 1)
        if m.kind == "sum_columns":
            a_row, a_column = 1, width
        rows, columns = self._row_counts(), self._column_counts()
        heights, widths = {
            "produce": (rows, columns), "consume": (rows, (m.free,)),
            "sum_columns": (columns, (m.free,)), "sum_rows": ((m.free,), columns),
        }[m.kind]  # fmt: skip
        c_row = m.c.row if isinstance(m.c, External) else width
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
        """How many columns a block may see: all, or whole tiles."""
        whole = self.window.columns
        if self.window.visible is None:
            return (whole,)
        return (whole, *range(GROUP, whole, GROUP))

    # --- text ---

    def _emit(self, text: str) -> str:
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _add(self, a: str, b: str | int) -> str:
        return a if b == 0 else self._emit(f"add i64 {a}, {b}")

    def _mul(self, a: str, b: str | int) -> str:
        return a if b == 1 else self._emit(f"mul i64 {a}, {b}")

    def _least(self, a: str, b: str | int) -> str:
        return self._emit(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    @contextlib.contextmanager
    def _loop(self, begin: str, end: str, step: str | int) -> Iterator[str]:
        """A loop with its counter in memory, which LLVM moves into a register."""
        self._count += 1
        n = self._count
        self.entry.append(f"  %c{n} = alloca i64")
        self.lines += [f"  store i64 {begin}, ptr %c{n}", f"  br label %head{n}", f"head{n}:"]
        at = self._emit(f"load i64, ptr %c{n}")
        test = self._emit(f"icmp slt i64 {at}, {end}")
        self.lines += [f"  br i1 {test}, label %loop{n}, label %done{n}", f"loop{n}:"]
        yield at
        following = self._add(at, step)
        self.lines += [
            f"  store i64 {following}, ptr %c{n}", f"  br label %head{n}", f"done{n}:"
        ]  # fmt: skip

    def _float_at(self, pointer: str, elements: str) -> str:
        return self._emit(f"getelementptr float, ptr {pointer}, i64 {elements}")

    def _byte_at(self, pointer: str, nbytes: str | int) -> str:
        return self._emit(f"getelementptr i8, ptr {pointer}, i64 {nbytes}")

    # --- the body ---

    def _body(self) -> str:
        window = self.window
        self.entry.append("  %sizes = alloca i64")
        self.pointers = [self._argument(n) for n in range(len(window.buffers))]
        self._open_kernels()
        with self._loop("%begin", "%end", 1) as worker:
            per_worker = worker_bytes(window, self.machine.vector_bits)
            base = self._byte_at(self.pointers[-1], self._mul(worker, per_worker))
            self._open_scratch(base)
            with self._loop(worker, str(window.items), window.workers) as item:
                self._item(item)
        return "\n".join([
            f"define internal void @{window.name}.body(ptr %args, i64 %begin, i64 %end) #0 {{",
            "entry:", *self.entry, *self.lines, "  ret void", "}",
        ])  # fmt: skip

    def _argument(self, number: int) -> str:
        at = self._emit(f"getelementptr ptr, ptr %args, i64 {number}")
        return self._emit(f"load ptr, ptr {at}")

    def _open_kernels(self) -> None:
        """An array of arguments for each kernel; what does not move is put there once."""
        bounds = self.machine.bounds
        for number, step in enumerate(self.window.steps):
            if not isinstance(step, Rows):
                continue
            limited = self.window.visible is not None
            count = len(step.arguments) + bounds + limited
            self.entry.append(f"  %args{number} = alloca [{count} x ptr]")
            for place, (kind, which) in enumerate(step.arguments):
                if kind == "buffer":
                    self._set(number, place, self.pointers[which])
            if bounds:
                self._set(number, len(step.arguments), self._argument(len(self.window.buffers)))
            if limited:  # a table with one entry: how many columns there are
                self._set(number, count - 1, "%sizes")

    def _set(self, number: int, place: int, pointer: str) -> None:
        at = self._emit(f"getelementptr ptr, ptr %args{number}, i64 {place}")
        self.lines.append(f"  store ptr {pointer}, ptr {at}")

    def _open_scratch(self, base: str) -> None:
        window = self.window
        offset = 0
        slots = []
        for nbytes in window.slot_bytes:
            slots.append(self._byte_at(base, offset))
            offset += _round(nbytes)
        self.inside = [slots[slot] for slot in window.slots]
        self.packed: dict[External, str] = {}
        for operand, pack in self.packs.items():
            self.packed[operand] = self._byte_at(base, offset)
            offset += _round(4 * pack.elements)

    def _item(self, item: str) -> None:
        window = self.window
        if window.item >= window.period:
            low = self._mul(item, window.item)
            high = self._add(low, window.item)
        else:
            period = self._emit(f"udiv i64 {item}, {window.parts}")
            part = self._emit(f"urem i64 {item}, {window.parts}")
            first = self._mul(period, window.period)
            low = self._add(first, self._mul(part, window.item))
            end = self._add(first, window.period)
            high = self._least(self._add(low, window.item), end)
        for step in window.products:
            if step.sums:
                self._clear(step, low)
        periods = max(1, window.item // window.period)
        with self._loop("0", str(periods), 1) as number:
            row = self._add(low, self._mul(number, window.period))
            start = self._emit(f"urem i64 {row}, {window.period}")
            first = self._emit(f"sub i64 {row}, {start}")
            end = self._least(self._add(first, window.period), high)
            for operand, pointer in self.packed.items():
                name = self._name_of(self.packs[operand])
                source = self._address(operand, row, None)
                self.lines.append(f"  call void @{name}(ptr {pointer}, ptr {source})")
            with self._loop(row, end, window.block) as block:
                self._block(block, end, first)

    def _clear(self, step: Multiply, row: str) -> None:
        """Sums begin at 0."""
        assert isinstance(step.c, External)
        height, width = self.window.columns, step.free
        if step.kind == "sum_rows":
            height, width = width, height
        start = self._address(step.c, row, None)
        if step.c.row == width:
            self._zero(start, str(4 * width * height))
            return
        with self._loop("0", str(height), 1) as at:
            self._zero(self._float_at(start, self._mul(at, step.c.row)), str(4 * width))

    def _zero(self, pointer: str, nbytes: str) -> None:
        self.lines.append(
            f"  call void @llvm.memset.p0.i64(ptr {pointer}, i8 0, i64 {nbytes}, i1 false)"
        )

    def _address(self, place: External, row: str, along: tuple[int, int] | None) -> str:
        """Where the operand's matrix begins for a row; `along` (rows of a matrix, stride): the
        row's own place in it."""
        offset = str(place.offset)
        for batch in place.batch:
            at = self._emit(f"udiv i64 {row}, {batch.radix}") if batch.radix > 1 else row
            at = self._emit(f"urem i64 {at}, {batch.extent}")
            offset = self._emit(f"add i64 {self._mul(at, batch.stride)}, {offset}")
        if along is not None:
            at = self._emit(f"urem i64 {row}, {along[0]}")
            offset = self._emit(f"add i64 {self._mul(at, along[1])}, {offset}")
        return self._float_at(self.pointers[place.buffer], offset)

    def _block(self, row: str, end: str, first: str) -> None:
        """All steps for the rows of one block."""
        window = self.window
        count = self._least(self._emit(f"sub i64 {end}, {row}"), window.block)
        columns = str(window.columns)
        if window.visible is not None:
            inner = self._emit(f"sub i64 {row}, {first}")
            seen = self._add(self._add(inner, count), window.visible)
            seen = self._emit(f"call i64 @llvm.smax.i64(i64 {seen}, i64 1)")
            self.declarations.add("declare i64 @llvm.smax.i64(i64, i64)")
            width = GROUP
            tiles = self._emit(f"udiv i64 {self._add(seen, width - 1)}, {width}")
            columns = self._least(self._mul(tiles, width), window.columns)
            self.lines.append(f"  store i64 {columns}, ptr %sizes")
        for number, step in enumerate(window.steps):
            if isinstance(step, Rows):
                self._call_kernel(number, step, row, count)
            else:
                self._multiply(step, row, count, columns)

    def _call_kernel(self, number: int, step: Rows, row: str, count: str) -> None:
        uses = [use for use in step.kernel.buffers if use.is_argument]
        for place, ((kind, which), use) in enumerate(zip(step.arguments, uses, strict=True)):
            if kind == "inside":
                before = self._mul(row, self.window.columns * use.dtype.itemsize)
                back = self._emit(f"sub i64 0, {before}")
                self._set(number, place, self._byte_at(self.inside[which], back))
        last = self._add(row, count)
        self.lines.append(
            f"  call void @{self.window.name}.{number}(ptr %args{number}, i64 {row}, i64 {last})"
        )

    def _multiply(self, m: Multiply, row: str, count: str, columns: str) -> None:
        free = str(m.free)
        sizes = {
            "produce": (count, columns, free), "consume": (count, free, columns),
            "sum_columns": (columns, free, count), "sum_rows": (free, columns, count),
        }[m.kind]  # fmt: skip
        a = self._operand(m.a, row, (m.rows, self._row_stride(m, m.a, 0)))
        b = self._operand(m.b, row, (m.rows, self._row_stride(m, m.b, 1)))
        c = self._operand(m.c, row, (m.rows, self._row_stride(m, m.c, 2)))
        told = ", ".join(f"i64 {size}" for size in sizes)
        name = self._name_of(self._product(m))
        self.lines.append(f"  call void @{name}(ptr {a}, ptr {b}, ptr {c}, {told})")

    def _operand(self, place: Place, row: str, along: tuple[int, int | None]) -> str:
        if isinstance(place, Inside):
            return self.inside[place.number]
        if place in self.packed:
            return self.packed[place]
        rows, stride = along
        return self._address(place, row, None if stride is None else (rows, stride))

    @staticmethod
    def _row_stride(m: Multiply, place: Place, position: int) -> int | None:
        """How an operand in memory steps with the rows of the space, if it does."""
        if isinstance(place, Inside):
            return None
        return {
            ("produce", 0): place.row, ("consume", 2): place.row,
            ("sum_columns", 1): place.row, ("sum_rows", 0): place.column,
        }.get((m.kind, position))  # fmt: skip


def with_scratch(window: Window, vector_bits: int) -> Window:
    """The window with the size of its scratch memory filled in."""
    *others, scratch = window.buffers
    elements = window.workers * worker_bytes(window, vector_bits) // 4
    return replace(window, buffers=(*others, replace(scratch, elements=elements)))
