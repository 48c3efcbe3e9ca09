"""Kernels along an axis as functions of an LLVM module: how threads share them."""

from __future__ import annotations

from ..along import ORDERS, Along
from . import order, scan
from .text import Text


def write_along(kernel: Along) -> tuple[list[str], set[str]]:
    """All functions of a kernel, and what they declare."""
    if kernel.function not in ORDERS:
        count, grain = scan.units_of(kernel)
        functions, declared = scan.write_scan(kernel), scan.declarations(kernel)
    else:
        count, grain = kernel.workers, 1
        functions = [*order.write_order(kernel), _workers(kernel)]
        declared = order.declarations(kernel)
    body = f"@{kernel.name}.body"
    call = f"{body}(ptr %args, i64 0, i64 {count})"
    if is_split(kernel):
        call = f"@mg_parallel(ptr {body}, ptr %args, i64 {count}, i64 {grain})"
    head = f"define void @{kernel.name}(ptr %args) #0 {{"
    return [*functions, "\n".join([head, f"  call void {call}", "  ret void", "}"])], declared


def is_split(kernel: Along) -> bool:
    """Whether a launch shares its work among threads."""
    if kernel.function in ORDERS:
        return kernel.workers > 1 and kernel.rows * kernel.length > 2048
    count, grain = scan.units_of(kernel)
    return count > grain


def _workers(kernel: Along) -> str:
    """Worker w sorts its share of the rows in its part of the scratch memory."""
    text = Text()
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
            text.do(f"call void @{kernel.name}.row(ptr {x}, ptr {out}, ptr {own})")
    return text.function(f"{kernel.name}.body", "ptr %args, i64 %begin, i64 %end")
