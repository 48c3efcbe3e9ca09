"""Products of our own: matrix products that no library takes, by the register-tiled kernel.

Such a product is a window with one step and nothing inside (`codegen/window.py`): blocks of rows of
its result, shared by threads. float64 has no library here, and without oneDNN float32 has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..codegen import kernel as k
from ..codegen.window import Batch, External, Multiply, Window
from ..ir import dtypes
from ..ir.node import Node
from .assembly import BLOCKS, ITEMS, Fit, item_rows, named
from .contract import MatmulCall
from .fuse import Unit
from .lower import Lowered
from .plan import at_hints, step_of
from .windowed import Matrix, matrix_of

Multiplies = Callable[[str, dict[str, Any], dict[str, Any]], bool]


def form_products(
    units: Sequence[Unit], lowered: dict[int, Lowered], multiplies: Multiplies, fit: Fit
) -> None:
    """Give kernels to the products that are ours."""
    made: dict[Any, Window] = {}
    for unit in units:
        call = unit.library
        if isinstance(call, MatmulCall) and multiplies(*at_hints(step_of(call, None))):
            lowered[unit.number] = _product(call, fit, made)
            unit.library = unit.frame = None
            unit.roots = [call.node]


def _product(call: MatmulCall, fit: Fit, made: dict[Any, Window]) -> Lowered:
    *batch, m, n = call.c.shape
    depth = call.a.shape[-1]
    a, b = matrix_of(call.a, batch, m, depth), matrix_of(call.b, batch, depth, n)
    c = matrix_of(call.c, batch, m, n)
    if c.column != 1 or 1 not in (b.row, b.column):  # cᵀ = bᵀ · aᵀ
        a, b, c = b.turned, a.turned, c.turned
        m, n = n, m
    extents = [extent for extent in batch if extent != 1]
    radices: list[int] = []
    rows = m
    for extent in reversed(extents):
        radices.insert(0, rows)
        rows *= extent
    arguments: list[Node | str] = []
    buffers: list[k.BufferUse] = []
    places = []
    for matrix, role in ((a, "in"), (b, "in"), (c, "out")):
        if matrix.base not in arguments:
            arguments.append(matrix.base)
            buffers.append(k.BufferUse(matrix.base.dtype, matrix.base.size, role))
        places.append(_place(matrix, arguments.index(matrix.base), radices, extents))
    arguments.append("scratch")
    buffers.append(k.BufferUse(dtypes.float32, 0, "partials"))
    step = Multiply("plain", places[0], places[1], places[2], m, depth)
    key = step, n, rows, tuple(buffers)
    if key not in made:
        block = min(BLOCKS[0], m) if isinstance(m, int) else BLOCKS[0]
        item, split = item_rows(rows // m, m, block, ITEMS)
        window = Window(
            "", (), (), tuple(buffers), steps=(step,), total=rows, columns=n, period=m,
            block=block, item=item, split=split, dtype=call.node.dtype,
        )  # fmt: skip
        made[key] = named(fit(window), "product")
    return Lowered(made[key], arguments)


def _place(matrix: Matrix, number: int, radices: Sequence[int], extents: Sequence[int]) -> External:
    steps = zip(radices, extents, matrix.batch, strict=True)
    batch = tuple([Batch(r, e, stride) for r, e, stride in steps if stride != 0])
    return External(number, matrix.offset, batch, matrix.row, matrix.column)
