"""Units seen by rows: whether a kernel or a product works on a space row by row, and in which form.

A `Space` is rows × columns: the leading axes of an array as one, and its last axis. A kernel works
by rows if its outer loops walk exactly the rows and every access to an array of the space is at the
row and the column of the loops. A product does if the array is one of its three matrices, with the
rows of the space as rows or as the axis that is summed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ..codegen import kernel as k
from ..codegen.window import Batch, External, Inside, Multiply, Place
from ..ir import index
from ..ir.extent import divided, hint, proven
from ..ir.index import Expr, Var
from ..ir.node import Node
from .contract import MatmulCall, Operand
from .lower import Lowered
from .schedule import fingerprint, map_expressions


@dataclass(frozen=True)
class Space:
    """The rows and columns of an array."""

    rows: int
    columns: int

    @staticmethod
    def of(node: Node) -> Space:
        """The space of an array: its last axis are the columns."""
        columns = node.shape[-1] if node.shape else 1
        return Space(node.size // columns, columns)


# --- kernels ------------------------------------------------------------------------------------


def by_rows(low: Lowered, windows: Mapping[int, Node], space: Space) -> Lowered | None:
    """The kernel with rows as its outer points, if it works by rows on the windows."""
    kernel = low.kernel
    if not isinstance(kernel, k.Kernel) or kernel.segments:
        return None
    if any(stage.privatised for stage in kernel.stages):
        return None
    if any(use.role in ("inout", "partials") for use in kernel.buffers):
        return None
    kernel = _with_rows(kernel, space)
    rows = 1
    for var in kernel.outer:
        rows *= var.extent
    vector, unroll = kernel.schedule.vector, kernel.schedule.unroll
    if rows != space.rows or vector is None or vector in kernel.outer:
        return None
    if unroll is not None and unroll[0] in kernel.outer and unroll[1] > 1:
        return None
    inside = {
        n for n, (_, what) in enumerate(low.pairs())
        if isinstance(what, Node) and what.id in windows
    }  # fmt: skip
    if not all(_at_own_place(kernel, stage, inside, space) for stage in kernel.stages):
        return None
    return replace(low, kernel=kernel)


def _with_rows(kernel: k.Kernel, space: Space) -> k.Kernel:
    """A pointwise kernel, whose axes are all outer ones, as one over rows and columns."""
    if len(kernel.stages) != 1 or kernel.stages[0].axes or not kernel.outer:
        return kernel
    *others, last = kernel.outer
    rows = divided(last.extent, space.columns)
    if rows is None:
        return kernel
    column = Var("column", space.columns)
    outer = tuple(others)
    whole: Expr = column
    if last.extent != space.columns:
        row = Var("row", rows)
        outer = (*outer, row)
        whole = row * space.columns + column
    swap: dict[Expr, Expr] = {last: whole}
    made = map_expressions(kernel, lambda e: index.substitute(e, swap))
    stages = (replace(made.stages[0], axes=(column,)),)
    schedule = replace(kernel.schedule, vector=column, unroll=None)
    made = replace(made, outer=outer, stages=stages, schedule=schedule)
    return replace(made, name=f"rows_{fingerprint(made)}")


def _at_own_place(kernel: k.Kernel, stage: k.Stage, inside: set[int], space: Space) -> bool:
    """Whether a stage touches the arrays inside only at its own row and column."""
    row: Expr = index.ZERO
    for var in kernel.outer:
        row = row * var.extent + var
    column: Expr = index.ZERO
    for var in stage.axes:
        column = column * var.extent + var
    place = row * space.columns + column
    full = column.hi == space.columns - 1
    found: list[tuple[Expr, bool]] = []
    for value in k.postorder(k.stage_values(stage)):
        if isinstance(value, k.Load) and value.buffer in inside:
            found.append((value.index, bool(value.guard)))
    for store in stage.stores:
        if store.buffer in inside:
            found.append((store.index, bool(store.guard)))
    return all(where == place and full and not guarded for where, guarded in found)


@dataclass(frozen=True)
class Copy:
    """A kernel that only moves all of `source` to other places: per loop (extent, step there, step
    here)."""

    source: Node
    target: Node
    steps: tuple[tuple[int, int, int], ...]

    def stride(self, extent: int, stride: int) -> int | None:
        """How an axis of the source steps in the target."""
        if extent == 1 or stride == 0:
            return stride
        for size, there, here in self.steps:
            steps = divided(stride, there) if there != 0 else None
            if steps is not None and proven(size, steps * extent):
                moved: int = steps * here
                return moved
        return None


def copy_of(low: Lowered) -> Copy | None:
    """The kernel as a copy of a whole array, if it is one."""
    kernel, given = low.kernel, [what for _, what in low.pairs()]
    if kernel.segments or len(kernel.stages) != 1 or len(given) != 2:
        return None
    (stage,) = kernel.stages
    if stage.reductions or stage.privatised or len(stage.stores) != 1:
        return None
    (store,) = stage.stores
    value = store.value
    if not isinstance(value, k.Load) or value.guard or store.guard:
        return None
    source, target = given[value.buffer], given[store.buffer]
    if not isinstance(source, Node) or not isinstance(target, Node):
        return None
    axes = [*kernel.outer, *stage.axes]
    there, here = index.split(value.index), index.split(store.index)
    plain = there[0] == here[0] == 0 and set(there[1]) == set(here[1]) == set(axes)
    if not plain or source.size != target.size or source.dtype is not target.dtype:
        return None
    return Copy(source, target, tuple([(v.extent, there[1][v], here[1][v]) for v in axes]))


# --- products -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matrix:
    """An operand: strides of its two axes, and per batch axis of the product."""

    base: Node
    offset: int
    batch: tuple[int, ...]
    row: int
    column: int

    @property
    def turned(self) -> Matrix:
        """The transposed matrix."""
        return replace(self, row=self.column, column=self.row)


@dataclass(frozen=True)
class Classified:
    """A product in one of the forms of `Multiply`, its operands still nodes."""

    kind: str
    a: Matrix
    b: Matrix
    c: Matrix
    inside: int  # which of the three is the window
    radices: tuple[int, ...]
    extents: tuple[int, ...]
    rows: int
    free: int

    def moved(self, copy: Copy, space: Space) -> Classified | None:
        """The product that stores its result where a copy would move it."""
        c, free = self.c, self.free
        sizes = {
            "consume": (self.rows, free), "sum_columns": (space.columns, free),
            "sum_rows": (free, space.columns),
        }.get(self.kind)  # fmt: skip
        if sizes is None or c.offset or c.base is not copy.source:
            return None
        row, column = (copy.stride(n, s) for n, s in zip(sizes, (c.row, c.column), strict=True))
        steps = zip(self.extents, c.batch, strict=True)
        batch = [copy.stride(extent, stride) for extent, stride in steps]
        if row is None or column != 1 or None in batch:
            return None
        known = tuple([stride for stride in batch if stride is not None])
        return replace(self, c=Matrix(copy.target, 0, known, row, 1))

    def step(self, number: Callable[[Node, str], int], inside: Callable[[Node], int]) -> Multiply:
        """The step, given the numbers of arrays in memory and of windows."""
        places: list[Place] = []
        for position, matrix in enumerate((self.a, self.b, self.c)):
            if position == self.inside:
                places.append(Inside(inside(matrix.base)))
                continue
            steps = zip(self.radices, self.extents, matrix.batch, strict=True)
            batch = tuple([Batch(r, e, stride) for r, e, stride in steps if stride])
            role = "out" if position == 2 else "in"
            places.append(
                External(number(matrix.base, role), matrix.offset, batch, matrix.row, matrix.column)
            )
        a, b, c = places
        return Multiply(self.kind, a, b, c, self.rows, self.free)


def multiply_of(call: MatmulCall, windows: Mapping[int, Node], space: Space) -> Classified | None:
    """The product as a step by rows, if exactly one of its matrices is a window."""
    found = [o.base.id in windows for o in (call.a, call.b, call.c)]
    if found.count(True) != 1 or call.epilogue:
        return None
    *batch, m, n = call.c.shape
    depth = call.a.shape[-1]
    a, b = matrix_of(call.a, batch, m, depth), matrix_of(call.b, batch, depth, n)
    c = matrix_of(call.c, batch, m, n)
    sizes = (m, n, depth)
    for turned in (False, True):  # cᵀ = bᵀ · aᵀ
        if turned:
            a, b, c = b.turned, a.turned, c.turned
            sizes = (n, m, depth)
            found = [found[1], found[0], found[2]]
        made = _classified(a, b, c, sizes, batch, found.index(True), space)
        if made is not None:
            return made
    return None


def matrix_of(o: Operand, batch: list[int], rows: int, columns: int) -> Matrix:
    """The operand as a matrix for each point of the batch axes.

    An axis of one element steps by nothing, or by 1 where that is asked for.
    """
    steps = [
        0 if size == 1 else stride
        for size, stride, extent in zip(o.shape, o.strides, batch, strict=False)
        if extent > 1
    ]
    row = o.strides[-2] if rows > 1 else 1
    column = o.strides[-1] if columns > 1 else 1
    return Matrix(o.base, o.offset, tuple(steps), row, column)


def _classified(
    a: Matrix, b: Matrix, c: Matrix, sizes: tuple[int, int, int], batch: list[int], inside: int,
    space: Space,
) -> Classified | None:  # fmt: skip
    m, n, depth = sizes
    matrix = (a, b, c)[inside]
    first, second = ((m, depth), (depth, n), (m, n))[inside]
    upright = matrix.row == space.columns and matrix.column == 1 and second == space.columns
    lying = matrix.column == space.columns and matrix.row == 1 and first == space.columns
    kind, rows, free = "", 0, 0
    if inside == 2 and upright:
        kind, rows, free = "produce", m, depth
    elif inside == 0 and upright:
        kind, rows, free = "consume", m, n
    elif inside == 0 and lying:
        kind, rows, free = "sum_columns", depth, n
    elif inside == 1 and upright:
        kind, rows, free = "sum_rows", depth, m
    if not kind or rows < 2 or matrix.offset:
        return None
    if kind in ("produce", "consume") and 1 not in (b.row, b.column):
        return None
    if kind == "sum_columns" and b.column != 1:
        return None
    if kind != "produce" and c.column != 1:
        return None
    extents = tuple([extent for extent in batch if extent > 1])
    radices = _radices(matrix.batch, extents, rows, space)
    if radices is None:
        return None
    return Classified(kind, a, b, c, inside, radices, extents, rows, free)


def _radices(
    strides: tuple[int, ...], extents: tuple[int, ...], rows: int, space: Space
) -> tuple[int, ...] | None:
    """How many rows of the space each batch axis steps; None if they do not make up all rows."""
    radices = []
    for stride in strides:
        radix = divided(stride, space.columns)
        if radix is None:
            return None
        radices.append(radix)
    expected = rows
    for radix, extent in sorted(zip(radices, extents, strict=True), key=lambda p: hint(p[0])):
        if radix != expected:
            return None
        expected *= extent
    return tuple(radices) if expected == space.rows else None
