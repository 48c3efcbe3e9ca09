"""Small graphs as functions of many inputs of one kind at once: each is a row of an array.

A loop of Python's over the steps of an episode makes the same calls on other numbers. `Rows` writes
a graph out so that NumPy computes it for all of them: every value is an array with a row for each,
flat, or a column where all elements of a row are equal. So only graphs fit whose nodes are
functions of single elements, numbers that are repeated, and sums over all there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import build, index, reference
from .closure import Closure, NoClosure, spread_of
from .dtypes import accumulator
from .node import Buffer, Const, Map, Node, Reduce, Reindex, Slot, coordinates

LARGEST = 1 << 8  # elements of a row: of longer ones each is worth a call


class Rows(Closure):
    """`Closure` for many inputs at once; inputs are arrays of rows, numbers arrays of one axis.

    An output has a column if it does not depend on the place in a row.
    """

    def __init__(self, outputs: Sequence[Node]) -> None:
        if any([node.size > LARGEST or not node.size for node in outputs]):
            raise NoClosure
        super().__init__(outputs)

    def _write(self, node: Node) -> str:
        if node.size > LARGEST or not node.size:
            raise NoClosure
        if isinstance(node, Buffer):
            return f"a{node.attributes[0]}"
        if isinstance(node, Slot):
            return self._let(f"{self._slot(node)}.reshape(-1, 1)")
        if isinstance(node, Const):
            value = np.asarray(node.attributes[0], node.dtype.numpy)
            return self._constant(value.reshape(1, 1))
        if isinstance(node, Map) and node.function != "bitcast":
            return super()._write(node)
        if isinstance(node, Reindex) and len(node.inputs) == 1 and not node.attributes[1]:
            return self._moved(node)
        if isinstance(node, Reduce) and node.attributes[0] in reference.COMBINE and node.size == 1:
            return self._reduced(node)
        raise NoClosure

    def _operands(self, node: Map) -> list[str]:
        """What a function is applied to: rows, and columns that NumPy repeats."""
        return [self._name(self._before(source)) for source in node.inputs]

    def _before(self, node: Node) -> Node:
        """The number that is repeated, or the node itself."""
        if spread_of(node) is None:
            return node
        (source,) = node.inputs
        if source.size != 1:
            raise NoClosure
        return source

    def _moved(self, node: Reindex) -> str:
        """A view in which all elements stay in their order, or a number that is repeated."""
        (source,) = node.inputs
        if source.size != node.size:
            if source.size != 1:
                raise NoClosure
            return self._name(source)
        strides = index.contiguous_strides
        before = index.flatten(node.attributes[0], strides(source.shape))
        after = index.flatten(coordinates(node.shape), strides(node.shape))
        if source.size != 1 and index.split(before) != index.split(after):
            raise NoClosure
        return self._name(source)

    def _reduced(self, node: Reduce) -> str:
        (source,) = node.inputs
        combine, _ = node.attributes
        start = self._constant(build.IDENTITY[combine](node.dtype))
        work = accumulator(node.dtype).numpy
        operand = self._name(source)
        if source.dtype.is_half:
            operand = f"widened({operand})"
        if source.size > 1:
            whole, size = self._constant(np.broadcast_to), source.size
            operand = f"{whole}({operand}, (len({operand}), {size}))"
        reduce = self._constant(reference.COMBINE[combine].reduce)
        kind = self._constant(work)
        total = f"{reduce}({operand}, 1, {kind}, None, True, {start})"
        return self._typed(total, node, work)
