"""Layouts: in which order of axes a materialised array lies in memory.

Users see plain row-major shapes. Arrays between convolutions lie channels-last, which the library
prefers; kernels iterate in that order too, so nothing is reordered inside a chain. Leaves, results
that leave the program and what is scattered to (threads own its trailing columns) are plain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..ir import index
from ..ir.node import Buffer, LoopResult, Node, Reduce, Reindex, Scatter
from .contract import ConvolutionCall

Order = tuple[int, ...]
PLAIN = (Buffer, LoopResult, Scatter)  # nodes that never lie in another order


@dataclass
class Layouts:
    """Shapes that lie channels-last, found from the convolutions of a program."""

    channels_last: set[tuple[int, ...]] = field(default_factory=set)
    plain: set[int] = field(default_factory=set)  # ids of nodes that must be plain
    turned: set[int] = field(default_factory=set)  # ids of copies of leaves, which lie plain

    def order(self, shape: tuple[int, ...]) -> Order:
        """The order in which to iterate over an array of this shape."""
        rank = len(shape)
        if shape in self.channels_last:
            return (0, *range(2, rank), 1)
        return tuple(range(rank))

    def order_of(self, node: Node) -> Order:
        """The order in which to iterate over a node: that in which it lies."""
        if node.id in self.plain:
            return tuple(range(node.ndim))
        return self.order(node.shape)

    def strides(self, node: Node) -> tuple[int, ...]:
        """Strides of the node's buffer, per logical axis."""
        if isinstance(node, PLAIN) or node.id in self.plain:
            return index.contiguous_strides(node.shape)
        order = self.order(node.shape)
        dense = index.contiguous_strides([node.shape[k] for k in order])
        strides = [0] * node.ndim
        for position, k in enumerate(order):
            strides[k] = dense[position]
        return tuple(strides)


def choose(calls: Iterable[ConvolutionCall], nodes: Iterable[Node]) -> Layouts:
    """Channels-last for what convolutions read and write, and for what is pooled from that."""
    layouts = Layouts()
    for call in calls:
        layouts.channels_last.add(call.source.shape)
        layouts.channels_last.add(call.target.shape)
    if layouts.channels_last:
        for node in nodes:  # inputs come first, so a chain of poolings is followed
            if isinstance(node, Reduce) and _is_pooled(node, layouts.channels_last):
                layouts.channels_last.add(node.shape)
    return layouts


def _is_pooled(node: Reduce, known: set[tuple[int, ...]]) -> bool:
    """Windows of a channels-last array, reduced to one value each."""
    windows = node.inputs[0]
    if not isinstance(windows, Reindex):
        return False
    source = windows.inputs[0].shape
    same = len(source) == node.ndim and source[:2] == node.shape[:2]
    return source in known and same and max(node.shape[2:], default=1) > 1
