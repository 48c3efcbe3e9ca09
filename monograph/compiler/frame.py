"""Frames: the iteration space that the parts of one kernel share.

A frame is a shape in the order of memory with a role for each axis: outer axes are rows, which run
in parallel, inner axes are what a stage loops over. A node fits a frame if it has as many elements
as the frame (one per point) or as many as the frame has rows (one per row). Which coordinates of
the node a point stands for follows from the flat position in both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from ..ir import index
from ..ir.extent import divided, hint
from ..ir.index import Expr, Guard, Var
from ..ir.node import Node, Reduce
from .layout import Layouts

Runs = tuple[tuple[bool, int], ...]


@dataclass(frozen=True)
class Frame:
    """Extents in the order of memory, which of them are inner, and (if padded) the true size."""

    shape: tuple[int, ...]
    inner: tuple[bool, ...]
    limit: int | None = None

    @cached_property
    def axes(self) -> tuple[Var, ...]:
        return tuple(Var(f"a{k}", extent) for k, extent in enumerate(self.shape))

    @cached_property
    def outer_axes(self) -> tuple[Var, ...]:
        return tuple(v for v, inside in zip(self.axes, self.inner, strict=True) if not inside)

    @cached_property
    def inner_axes(self) -> tuple[Var, ...]:
        return tuple(v for v, inside in zip(self.axes, self.inner, strict=True) if inside)

    @cached_property
    def rows(self) -> int:
        return prod(v.extent for v in self.outer_axes)

    @cached_property
    def size(self) -> int:
        return prod(self.shape) if self.limit is None else self.limit

    @cached_property
    def runs(self) -> Runs:
        """Roles with adjacent equal ones merged: frames with equal runs are the same space."""
        merged: list[tuple[bool, int]] = []
        for extent, inside in zip(self.shape, self.inner, strict=True):
            if extent == 1:
                continue
            if merged and merged[-1][0] == inside:
                merged[-1] = (inside, merged[-1][1] * extent)
            else:
                merged.append((inside, extent))
        return tuple(merged)

    @cached_property
    def flat(self) -> Expr:
        """The position of a point in the order of memory."""
        return index.flatten(_moving(self.axes), index.contiguous_strides(self.shape))

    @cached_property
    def flat_row(self) -> Expr:
        """The position of a row among the rows."""
        outer = self.outer_axes
        return index.flatten(_moving(outer), index.contiguous_strides([v.extent for v in outer]))

    @cached_property
    def guard(self) -> Guard:
        """What holds for points that are not padding."""
        return () if self.limit is None else index.within(self.flat, self.limit)

    def place(self, node: Node, layouts: Layouts) -> tuple[Expr, ...] | None:
        """The node's coordinates at a point of the frame, or None if it does not fit."""
        order = layouts.order_of(node)
        if node.size == self.size:
            return ordered(self.flat, node.shape, order)
        if node.size == self.rows:
            return ordered(self.flat_row, node.shape, order)
        return None


def _moving(axes: tuple[Var, ...]) -> list[Expr]:
    """Coordinates, 0 for axes of one element, so that views along them compare as equal."""
    return [index.ZERO if v.extent == 1 else v for v in axes]


def ordered(flat: Expr, shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[Expr, ...]:
    """Coordinates in `shape` of a flat position that counts axes in `order`."""
    found = index.unflatten(flat, tuple(shape[k] for k in order))
    where: list[Expr] = [index.ZERO] * len(shape)
    for position, k in enumerate(order):
        where[k] = found[position]
    return tuple(where)


def input_order(node: Node, layouts: Layouts) -> tuple[int, ...]:
    """In which order a reduction walks its input: kept axes as the result lies, if it can."""
    assert isinstance(node, Reduce)
    shape = node.inputs[0].shape
    if shape in layouts.channels_last:
        return layouts.order(shape)
    kept = [k for k in range(len(shape)) if k not in node.axes]
    if tuple(shape[k] for k in kept) in layouts.channels_last:
        inner = layouts.order(node.shape)
        return (*[kept[k] for k in inner], *node.axes)
    return tuple(range(len(shape)))


SPLIT = 4096  # elements per row when one long reduction is cut into rows


def reduction_frame(node: Node, layouts: Layouts) -> tuple[Frame, str]:
    """The frame a reduction wants, and its form there: "row", "column" or "split"."""
    assert isinstance(node, Reduce)
    source = node.inputs[0]
    order = input_order(node, layouts)
    shape = tuple(source.shape[k] for k in order)
    reduced = tuple(k in node.axes for k in order)
    if _is_column(node, shape, reduced):
        return Frame(shape, tuple(not r for r in reduced)), "column"
    long = node.size == 1 and hint(source.size) >= 4 * SPLIT
    if long and node.combine in ("add", "max", "min", "mul", "and", "or"):
        rows = (source.size + SPLIT - 1) // SPLIT
        limit = source.size if divided(source.size, SPLIT) is None else None
        return Frame((rows, SPLIT), (False, True), limit), "split"
    return Frame(shape, reduced), "row"


def _is_column(node: Node, shape: tuple[int, ...], reduced: tuple[bool, ...]) -> bool:
    """Reduced axes first, kept axes last and long: rows are summed side by side."""
    assert isinstance(node, Reduce)
    if node.combine not in ("add", "mul", "max", "min", "and", "or") or node.size == 1:
        return False
    kept = [k for k, gone in enumerate(reduced) if not gone and shape[k] not in (0, 1)]
    gone = [k for k, r in enumerate(reduced) if r and shape[k] not in (0, 1)]
    return bool(kept) and bool(gone) and min(kept) > max(gone)


def pointwise_frame(node: Node, layouts: Layouts) -> Frame:
    """Rows along the last axis in memory."""
    shape = tuple(node.shape[k] for k in layouts.order_of(node))
    if not shape:
        return Frame((1,), (True,))
    return Frame(shape, (*([False] * (len(shape) - 1)), True))
