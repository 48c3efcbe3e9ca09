"""Kernels along an axis as functions of an LLVM module: how threads share them."""

from __future__ import annotations

from ...ir.extent import Extent
from ..along import ORDERS, Along
from . import order, scan
from .sizes import Sizes
from .text import Text


def write_along(kernel: Along, sizes: Sizes) -> tuple[list[str], set[str]]:
    """All functions of a kernel, and what they declare."""
    if kernel.function not in ORDERS:
        functions, declared = scan.write_scan(kernel, sizes), scan.declarations(kernel)
    else:
        functions = [*order.write_order(kernel, sizes), _workers(kernel, sizes)]
        declared = order.declarations(kernel)
    count, grain = _share(kernel)
    text, body = Text(sizes), f"@{kernel.name}.body"
    units = text.number(count)
    if is_split(kernel):
        least = text.number(grain)
        text.do(f"call void @mg_parallel(ptr {body}, ptr %args, i64 {units}, i64 {least})")
    else:
        text.do(f"call void {body}(ptr %args, i64 0, i64 {units})")
    return [*functions, text.function(kernel.name, "ptr %args", linkage="")], declared


def _share(kernel: Along) -> tuple[int, int]:
    """How many units of work there are, and the least that a thread should take."""
    return (kernel.workers, 1) if kernel.function in ORDERS else scan.units_of(kernel)


def is_split(kernel: Along) -> bool:
    """Whether a launch shares its work among threads; where sizes vary, it may."""
    count, grain = _share(kernel)
    if isinstance(kernel.rows * kernel.length, Extent):
        return kernel.workers > 1 or kernel.function not in ORDERS
    return count > grain and (kernel.function not in ORDERS or kernel.rows * kernel.length > 2048)


def _workers(kernel: Along, sizes: Sizes) -> str:
    """Worker w sorts its share of the rows in its part of the scratch memory."""
    text = Text(sizes)
    source, target = text.argument(0), text.argument(1)
    scratch = text.argument(2) if kernel.scratch else "null"
    with text.loop("%begin", "%end", 1) as worker:
        first = text.div(text.mul(worker, kernel.rows), kernel.workers)
        last = text.div(text.mul(text.add(worker, 1), kernel.rows), kernel.workers)
        own = scratch
        if kernel.scratch:
            own = text.bytes(scratch, text.mul(worker, 8 * kernel.scratch))
        with text.loop(first, last, 1) as row:
            x = text.bytes(source, text.mul(row, kernel.length * kernel.dtype.itemsize))
            out = text.bytes(target, text.mul(row, 8 * kernel.first))
            text.do(f"call void @{kernel.name}.row(ptr %args, ptr {x}, ptr {out}, ptr {own})")
    return text.function(f"{kernel.name}.body", "ptr %args, i64 %begin, i64 %end")
