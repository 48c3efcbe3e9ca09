"""The window: matrix products and kernels that share rows, run for a few rows at a time.

Attention makes scores [rows, columns] by a product, turns them into weights row by row, and
sums values by a second product. Written one after the other, each array of that space goes
through memory. A `Window` runs all of it for one block of rows, then for the next: such an array
exists only for the rows of the block, in scratch memory that stays in the cache. The kernels are
those that the compiler makes anyway; they are told which rows to run.

Rows are counted through all leading axes. A product has a matrix of `rows` rows for each point of
its batch axes, so a row says which matrices it belongs to (`Batch`). An item is what one thread
does alone: rows that add to the same sums stay together. Neither items nor blocks depend on the
number of threads, and so neither do the bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..ir.dtypes import DType, float32
from .kernel import Kernel

ALIGNMENT = 64
GROUP = 64  # columns that are hidden or seen together


@dataclass(frozen=True)
class Batch:
    """One batch axis of an operand: (row // radix) % extent steps of `stride` elements."""

    radix: int
    extent: int
    stride: int


@dataclass(frozen=True)
class External:
    """An operand in memory: argument `buffer`, where its matrix begins, and the steps in it.

    `row` and `column` are the strides of the matrix in the order of the product: [m, k], [k, n] or
    [m, n].
    """

    buffer: int
    offset: int
    batch: tuple[Batch, ...]
    row: int
    column: int


@dataclass(frozen=True)
class Inside:
    """An operand that is a window: array `number` of the scratch memory, [rows, columns]."""

    number: int


Place = External | Inside


@dataclass(frozen=True)
class Multiply:
    """c[m, n] = Σ_k a[m, k] · b[k, n] for the rows of a block.

    kind says which of m, n, k are the rows and the columns of the space. "produce": c is a window,
    m are rows and n columns. "consume": a is a window, m rows and k columns. "sum_columns": k are
    rows and a is a window, turned: m are columns. "sum_rows": k are rows and b is a window, n
    columns. The last two add over all rows of an item. `free` is the size of the third axis.
    """

    kind: str
    a: Place
    b: Place
    c: Place
    rows: int  # of the space in one matrix
    free: int

    @property
    def sums(self) -> bool:
        """Whether it adds over rows."""
        return self.kind.startswith("sum")


@dataclass(frozen=True)
class Rows:
    """A kernel over rows; per argument ("buffer", number) or ("inside", number)."""

    kernel: Kernel
    arguments: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Window(Kernel):
    """A kernel that is made of steps; it has no loops of its own. The last buffer is scratch.

    Blocks of at most `block` rows lie within one `period`. An item has `item` rows: a part of a
    period (`split`), or whole periods. `slots` says which windows share memory, of `slot_bytes`
    each. All numbers but `workers` may be Extents, where sizes vary.
    `visible`: columns beyond row + visible, counted in the period, do not matter; the kernels then
    run up to a number of columns that is the one entry of their table of sizes.
    """

    steps: tuple[Multiply | Rows, ...] = ()
    total: int = 0  # rows in all
    columns: int = 0
    period: int = 0
    block: int = 0
    item: int = 0
    split: bool = False
    workers: int = 1
    dtype: DType = float32  # of the products
    slots: tuple[int, ...] = ()
    slot_bytes: tuple[int, ...] = ()
    visible: int | None = None

    @property
    def parts(self) -> int:
        """Items of a period, where items are parts of one."""
        return (self.period + self.item - 1) // self.item if self.split else 1

    @property
    def items(self) -> int:
        """How many items there are."""
        return self.total // self.period * self.parts if self.split else self.total // self.item

    @property
    def pieces(self) -> int:
        """How many items add to the same sums; 1 if each has sums of its own, or there are none."""
        rows = [m.rows for m in self.products if m.sums]
        if not rows or rows[0] == self.item:
            return 1
        return rows[0] // self.period * self.parts if self.split else rows[0] // self.item

    @property
    def flops(self) -> int:
        """Operations of all products."""
        whole = sum(2 * self.total * self.columns * s.free for s in self.products)
        return whole // 2 if self.visible is not None else whole

    @property
    def products(self) -> list[Multiply]:
        """The products among the steps."""
        return [s for s in self.steps if isinstance(s, Multiply)]


def format_window(window: Window) -> str:
    """The window as text that a person reads."""
    lines = [f"window {window.name}"]
    for number, use in enumerate(window.buffers):
        lines.append(f"  b{number}: {use.role} {use.dtype.name}[{use.elements}]")
    lines.append(
        f"  {window.total} rows of {window.columns} columns, {window.block} at a time, "
        f"{window.items} items"
        + ("" if window.visible is None else f", columns up to row + {window.visible}")
    )
    for step in window.steps:
        if isinstance(step, Rows):
            told = [f"{'b' if kind == 'buffer' else 'w'}{n}" for kind, n in step.arguments]
            lines.append(f"    {step.kernel.name}({', '.join(told)})")
        else:
            a, b, c = (_place(p) for p in (step.a, step.b, step.c))
            lines.append(f"    {c} {'+=' if step.sums else '='} {a} · {b}  ({step.kind})")
    return "\n".join(lines)


def _place(place: Place) -> str:
    return f"w{place.number}" if isinstance(place, Inside) else f"b{place.buffer}"
